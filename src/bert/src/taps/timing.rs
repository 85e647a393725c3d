//! When the parts of a pass begin and end: the marks of [`Taps::timed`](super::Taps::timed), which a profile is made of.
//!
//! A part is marked where [`within`](super::within) enters and leaves it, and where it hands out its output, which passes through
//! an operation that changes nothing (`ops::arrival`). In the backward pass that operation marks when the gradient of the output
//! arrives: there the backward pass of the part begins. No value is read, so that a device does not wait.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{CURRENT, Inner};
use crate::ops;

/// What a mark says of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It begins.
    Begins,
    /// It has ended.
    Ends,
    /// It has an output of the shape of the mark.
    Output,
    /// The gradient of its output is there: its backward pass begins.
    Gradient,
    /// From here on the pass computes what `layer` names: its loss, its backward pass.
    Stage,
}

/// A moment of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// The part of the network: `bert.encoder.layer.3.attention.self`.
    pub layer: &'a str,
    /// What happens.
    pub moment: Moment,
    /// The shape of an output; else empty.
    pub shape: &'a [usize],
}

pub(super) type Clock = dyn Fn(Mark<'_>) + Send + Sync;

/// The clock of this thread and the part that is running, if the thread is timed.
fn here() -> Option<(Arc<Clock>, String)> {
    CURRENT.with_borrow(|current| {
        let current = current.as_ref()?;
        match &*current.taps.as_ref()?.0 {
            Inner::Timed(clock) => Some((Arc::clone(clock), current.path.clone())),
            Inner::Outputs { .. } | Inner::Watch(_) => None,
        }
    })
}

/// Whether this thread is timed.
pub(super) fn is_timed() -> bool {
    CURRENT.with_borrow(|current| {
        let taps = current.as_ref().and_then(|current| current.taps.as_ref());
        matches!(taps.map(|taps| &*taps.0), Some(Inner::Timed(_)))
    })
}

/// Whether this thread is timed, and nobody changes what its layers put out.
pub(super) fn only_times() -> bool {
    is_timed()
        && CURRENT.with_borrow(|current| {
            let current = current.as_ref();
            current.is_some_and(|current| current.changes.is_none())
        })
}

/// Marks the part that is running.
pub(super) fn mark(moment: Moment) {
    if let Some((clock, layer)) = here() {
        clock(Mark {
            layer: &layer,
            moment,
            shape: &[],
        });
    }
}

/// Marks a stage of the pass.
pub(super) fn stage(name: &str) {
    if let Some((clock, _)) = here() {
        clock(Mark {
            layer: name,
            moment: Moment::Stage,
            shape: &[],
        });
    }
}

/// Marks an output, and in the backward pass when its gradient arrives.
pub(super) fn output<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let Some((clock, layer)) = here() else {
        return x;
    };
    clock(Mark {
        layer: &layer,
        moment: Moment::Output,
        shape: &x.dims(),
    });
    ops::arrival(x, move || {
        clock(Mark {
            layer: &layer,
            moment: Moment::Gradient,
            shape: &[],
        });
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use burn::tensor::Device;

    use super::super::{Taps, inside, looks_at_values, output, stage, within};
    use super::*;

    #[test]
    fn parts_are_marked_forward_and_backward() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let taps = Taps::timed(move |mark| {
            let row = (mark.layer.to_owned(), mark.moment, mark.shape.to_vec());
            sink.lock().expect("no panic").push(row);
        });
        let pass = || {
            let device = Device::flex().autodiff();
            let x = Tensor::<1>::from_floats([2.0, 3.0], &device).require_grad();
            let y = within("a", || {
                inside::<1>("aside", || unreachable!("nobody looks at values"));
                let inner = within("b", || output(x.clone() * 3.0));
                output(inner.clone() * inner)
            });
            stage("backward");
            let gradients = y.sum().backward();
            let data = x.grad(&gradients).expect("a leaf").into_data();
            assert!(!looks_at_values());
            data.iter::<f32>().collect::<Vec<_>>()
        };
        let without = pass();
        assert!(seen.lock().expect("no panic").is_empty());
        assert_eq!(taps.during(pass), without);
        let seen = seen.lock().expect("no panic");
        let found: Vec<(&str, Moment)> = seen.iter().map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(
            found,
            [
                ("a", Moment::Begins),
                ("a.b", Moment::Begins),
                ("a.b", Moment::Output),
                ("a.b", Moment::Ends),
                ("a", Moment::Output),
                ("a", Moment::Ends),
                ("backward", Moment::Stage),
                ("a", Moment::Gradient),
                ("a.b", Moment::Gradient),
            ]
        );
        assert_eq!(seen[2].2, [2]);
    }
}
