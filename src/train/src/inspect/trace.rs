//! All outputs of a pass in their order, and which of them is the first that is not finite.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use stratoscope_bert::taps::Taps;

use crate::report::inspection::{Statistics, TensorRow};

/// An output of a layer, and its first element that is not finite: one that is NaN or ∞ before one that is −∞.
#[derive(Clone)]
pub(super) struct Tapped {
    pub row: TensorRow,
    pub bad: Option<(usize, f32)>,
}

impl Tapped {
    pub(super) fn of(name: &str, shape: &[usize], elements: &[f32]) -> Self {
        let first = |harmful: &dyn Fn(f32) -> bool| {
            let mut all = elements.iter().copied().enumerate();
            all.find(|(_, element)| harmful(*element))
        };
        let harmful = first(&|element| element.is_nan() || element == f32::INFINITY);
        Self {
            row: row(name, shape, elements),
            bad: harmful.or_else(|| first(&|element| element == f32::NEG_INFINITY)),
        }
    }

    /// Whether it has a value that is wrong by itself. One of −∞ may be a mask.
    pub(super) fn is_harmful(&self) -> bool {
        self.bad
            .is_some_and(|(_, value)| value != f32::NEG_INFINITY)
    }
}

/// What the taps of a replica have seen, in the order of computing.
pub(super) type Trace = Arc<Mutex<Vec<Tapped>>>;

pub(super) fn taps(trace: &Trace) -> Taps {
    let trace = Arc::clone(trace);
    Taps::new(
        |_| true,
        move |name, shape, elements: Tensor<1>| {
            let data = elements.into_data().convert::<f32>();
            let elements: Vec<f32> = data.iter::<f32>().collect();
            let tapped = Tapped::of(name, shape, &elements);
            trace
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(tapped);
        },
    )
}

pub(super) fn row(name: &str, shape: &[usize], elements: &[f32]) -> TensorRow {
    TensorRow {
        name: name.to_owned(),
        shape: shape.to_vec(),
        statistics: Statistics::of(elements),
        by_replica: Vec::new(),
        compared_norm: None,
    }
}

/// Where the values that are not finite begin that reach the end: the first of the last outputs that all have one. An
/// output before that, such as scores with a mask of −∞, has led to finite numbers and is none; nor is one of −∞ the
/// culprit where NaN follows.
pub(super) fn culprit(trace: &[Tapped]) -> Option<usize> {
    let begins = |fine: &dyn Fn(&Tapped) -> bool| {
        let first = trace.iter().rposition(fine).map_or(0, |at| at + 1);
        (first < trace.len()).then_some(first)
    };
    begins(&|tapped| !tapped.is_harmful()).or_else(|| begins(&|tapped| tapped.bad.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_finite_numbers_is_no_culprit() {
        const MASK: f32 = f32::NEG_INFINITY;
        let check = |values: &[f32], expected: Option<usize>| {
            let trace = values
                .iter()
                .map(|&value| Tapped::of("a", &[2], &[1.0, value]));
            let trace: Vec<Tapped> = trace.collect();
            assert_eq!(culprit(&trace), expected, "{values:?}");
        };
        check(&[1.0, 1.0], None);
        check(&[1.0, f32::NAN, f32::INFINITY], Some(1));
        check(&[f32::NAN, f32::NAN], Some(0));
        // A mask before a softmax, of some of a line and of all of it.
        check(&[MASK, 1.0, 1.0], None);
        check(&[1.0, MASK, f32::NAN, f32::NAN], Some(2));
        check(&[MASK, 1.0, f32::NAN], Some(2));
        check(&[1.0, MASK, MASK], Some(1));
        check(&[], None);
        let both = Tapped::of("a", &[3], &[MASK, 0.0, f32::NAN]);
        assert_eq!(both.bad.map(|(at, _)| at), Some(2));
    }
}
