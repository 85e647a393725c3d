//! Looking at what layers compute, and changing it where somebody asks for that ([`Changes`]).
//!
//! Each layer says by which part of the checkpoint's keys it is known ([`within`]) and hands out what it has
//! computed ([`output`]). Outside of [`Taps::during`] both do nothing but read one thread-local flag, so that a pass
//! without taps has the speed and the bits that it has without this module. Inside, whatever the taps want is given
//! to their sink: detached from the graph of the backward pass, which stays as it is.
//!
//! The taps belong to a thread, as `ops::Precision` does, because replicas compute on threads of their own.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use burn::tensor::{Device, Tensor};
//! use stratoscope_bert::taps::{self, Taps};
//!
//! let seen = Arc::new(Mutex::new(Vec::new()));
//! let sink = Arc::clone(&seen);
//! let all = Taps::new(|_| true, move |name, shape, _| {
//!     sink.lock().expect("no panic").push((name.to_owned(), shape.to_vec()));
//! });
//! let layer = || taps::within("encoder", || taps::output(Tensor::<2>::zeros([2, 3], &Device::flex())));
//! layer(); // nobody looks
//! all.during(layer);
//! assert_eq!(*seen.lock().expect("no panic"), [("encoder".to_owned(), vec![2, 3])]);
//! ```

mod change;
mod timing;
mod watch;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;

pub use change::{
    Activations, Change, Changes, EMBEDDINGS, NewValue, Number, Selection, is_named, of_heads,
    of_layer,
};
pub use timing::{Mark, Moment};
pub use watch::{Operation, Sighting, begin, gradient_of};

use watch::Watch;

thread_local! {
    /// Whether this thread has taps or changes: the one thing that a pass without them looks at.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// Whether they look at single operations.
    static BY_OPERATION: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The taps and changes of a pass, and where the pass is.
struct Current {
    taps: Option<Taps>,
    changes: Option<Changes>,
    /// `bert.encoder.layer.3`
    path: String,
}

/// Which outputs are wanted, and what is done with them. A clone has the same sink.
#[derive(Clone)]
pub struct Taps(Arc<Inner>);

enum Inner {
    Outputs {
        wants: Box<dyn Fn(&str) -> bool + Send + Sync>,
        sink: Box<Sink>,
    },
    Watch(Watch),
    Timed(Arc<timing::Clock>),
}

/// Gets the name of an output, its shape, and its elements in their order.
type Sink = dyn Fn(&str, &[usize], Tensor<1>) + Send + Sync;

impl Taps {
    /// Gives the outputs whose names are wanted to `sink`, in the order of computing, on the thread that computes.
    /// The sink must not run layers itself.
    pub fn new(
        wants: impl Fn(&str) -> bool + Send + Sync + 'static,
        sink: impl Fn(&str, &[usize], Tensor<1>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner::Outputs {
            wants: Box::new(wants),
            sink: Box::new(sink),
        }))
    }

    /// Gives every output of a layer to `sink`, and in the backward pass the gradient of the loss by it. Operations are
    /// those of a pass without taps, so that the values have its bits.
    pub fn of_layers(sink: impl Fn(&Sighting<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner::Watch(Watch::new(false, sink))))
    }

    /// Gives every input and output of every operation to `sink`, in the backward pass their gradients. Fused operations
    /// are computed one by one for this, and may have other roundings.
    pub fn of_operations(sink: impl Fn(&Sighting<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner::Watch(Watch::new(true, sink))))
    }

    /// Calls `clock` when parts of the network begin and end, forward and backward. No value is read, and the operations are
    /// those of a pass without taps.
    pub fn timed(clock: impl Fn(Mark<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner::Timed(Arc::new(clock))))
    }

    /// Who watches, where somebody does.
    fn watch(&self) -> Option<&Watch> {
        match &*self.0 {
            Inner::Watch(watch) => Some(watch),
            Inner::Outputs { .. } | Inner::Timed(_) => None,
        }
    }

    /// Runs a pass on this thread with these taps. Changes that the thread has stay in force.
    pub fn during<T>(&self, pass: impl FnOnce() -> T) -> T {
        let changes = CURRENT.with_borrow(|current| current.as_ref()?.changes.clone());
        let current = Current {
            taps: Some(self.clone()),
            changes,
            path: String::new(),
        };
        run_with(current, pass)
    }
}

/// Runs a pass on this thread with these taps and changes.
fn run_with<T>(current: Current, pass: impl FnOnce() -> T) -> T {
    struct Restored(Option<Current>, bool, bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            CURRENT.replace(self.0.take());
            ACTIVE.set(self.1);
            BY_OPERATION.set(self.2);
        }
    }
    let watch = current.taps.as_ref().and_then(Taps::watch);
    let by_operation = watch.is_some_and(Watch::is_by_operation);
    let before = CURRENT.replace(Some(current));
    let by_operation = BY_OPERATION.replace(by_operation);
    let _restored = Restored(before, ACTIVE.replace(true), by_operation);
    pass()
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Taps")
    }
}

/// Runs a part of a network. What is handed out inside has its key before its name.
pub fn within<T>(part: &str, work: impl FnOnce() -> T) -> T {
    match ACTIVE.get() {
        false => work(),
        true => entered(&part, work),
    }
}

/// [`within`] a layer that is known by its number.
pub fn within_layer<T>(number: usize, work: impl FnOnce() -> T) -> T {
    match ACTIVE.get() {
        false => work(),
        true => entered(&number, work),
    }
}

/// Hands out the output of the part that is running, and returns it.
pub fn output<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    output_of_heads(1, x)
}

/// [`output`] of a part whose last dimension is that of so many heads, side by side.
pub fn output_of_heads<const D: usize>(heads: usize, x: Tensor<D>) -> Tensor<D> {
    if !ACTIVE.get() {
        return x;
    }
    let x = change::changed(heads, x);
    match watch::here(None) {
        Some(place) => place.sees(None, x),
        None if timing::is_timed() => timing::output(x),
        None => {
            hand_out(None, || x.clone());
            x
        }
    }
}

/// From here on the pass computes something else than layers: its loss, its backward pass. For a profile.
pub fn stage(name: &str) {
    if ACTIVE.get() {
        timing::stage(name);
    }
}

/// Hands out a tensor under a name, and returns it: for a network of one's own, whose layers say nothing by themselves.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use stratoscope_bert::taps::tap;
///
/// let hidden = Tensor::<2>::ones([2, 3], &Device::flex());
/// let hidden = tap("hidden", hidden); // `run.activations("hidden")` sees it
/// ```
pub fn tap<const D: usize>(name: &str, x: Tensor<D>) -> Tensor<D> {
    within(name, || output(x))
}

/// Whether anybody looks at what this thread computes.
pub fn is_active() -> bool {
    ACTIVE.get()
}

/// Whether somebody looks at values or changes them. A profile does not: it only notes when parts begin and end.
pub fn looks_at_values() -> bool {
    ACTIVE.get() && !timing::only_times()
}

/// Whether somebody looks at single operations: fused ones are then computed one by one.
pub fn is_by_operation() -> bool {
    BY_OPERATION.get()
}

/// Hands out something that a part computes on its way under a name of its own. `x` is called only where it is wanted:
/// it may compute what the pass itself does not need.
pub fn inside<const D: usize>(name: &str, x: impl FnOnce() -> Tensor<D>) {
    // Of an operation that is computed anyway nothing is computed twice.
    if !ACTIVE.get() || BY_OPERATION.get() {
        return;
    }
    match watch::here(Some(name)) {
        Some(place) => place.sees_value(None, x()),
        None => hand_out(Some(name), x),
    }
}

fn entered<T>(part: &dyn fmt::Display, work: impl FnOnce() -> T) -> T {
    /// Cuts the path to its length before.
    struct Left(usize);
    impl Drop for Left {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| {
                if let Some(current) = current {
                    current.path.truncate(self.0);
                }
            });
        }
    }
    let before = CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return 0 };
        let before = current.path.len();
        current.path = joined(&current.path, part);
        before
    });
    let _left = Left(before);
    timing::mark(Moment::Begins);
    let value = work();
    timing::mark(Moment::Ends);
    value
}

fn joined(path: &str, part: &dyn fmt::Display) -> String {
    match path {
        "" => part.to_string(),
        path => format!("{path}.{part}"),
    }
}

fn hand_out<const D: usize>(name: Option<&str>, x: impl FnOnce() -> Tensor<D>) {
    let wanted = CURRENT.with_borrow(|current| {
        let current = current.as_ref()?;
        let name = match name {
            Some(name) => joined(&current.path, &name),
            None => current.path.clone(),
        };
        let taps = current.taps.as_ref()?;
        let Inner::Outputs { wants, .. } = &*taps.0 else {
            return None;
        };
        wants(&name).then(|| (name, taps.clone()))
    });
    let Some((name, taps)) = wanted else { return };
    let x = x();
    let x = match x.device().is_autodiff() {
        true => x.inner(),
        false => x,
    };
    let shape = x.dims();
    let elements = x.reshape([shape.iter().product::<usize>()]);
    if let Inner::Outputs { sink, .. } = &*taps.0 {
        sink(&name, &shape, elements);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use burn::tensor::Device;

    use super::*;

    type Seen = Arc<Mutex<Vec<(String, f32)>>>;

    fn taps(wants: impl Fn(&str) -> bool + Send + Sync + 'static) -> (Taps, Seen) {
        let seen = Seen::default();
        let sink = Arc::clone(&seen);
        let taps = Taps::new(wants, move |name, _, x| {
            let sum = x.sum().into_scalar::<f32>();
            sink.lock().expect("no panic").push((name.to_owned(), sum));
        });
        (taps, seen)
    }

    fn ones(device: &Device) -> Tensor<2> {
        Tensor::ones([2, 2], device)
    }

    #[test]
    fn names_are_paths_and_only_what_is_wanted_is_computed() {
        let (taps, seen) = taps(|name| name != "a.1.unwanted");
        let device = Device::flex().autodiff();
        let pass = || {
            within("a", || {
                within_layer(1, || {
                    inside("wanted", || ones(&device) * 2.0);
                    inside::<2>("unwanted", || unreachable!("nobody wants it"));
                    output(ones(&device))
                });
                output(ones(&device))
            })
        };
        pass();
        taps.during(pass);
        pass();
        taps.during(|| tap("mine", ones(&device)));
        let expected = [("a.1.wanted", 8.0), ("a.1", 4.0), ("a", 4.0), ("mine", 4.0)];
        let expected = expected.map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(*seen.lock().expect("no panic"), expected);
    }

    #[test]
    fn taps_end_with_the_pass_also_by_a_panic() {
        let (all, seen) = taps(|_| true);
        let panics = || within("a", || -> u8 { std::panic::panic_any("on purpose") });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            all.during(panics);
        }));
        assert!(outcome.is_err() && !ACTIVE.get());
        // Within other taps a panic leaves the path as it was.
        all.during(|| {
            let again = || within("a", || -> u8 { std::panic::panic_any("again") });
            let inner = std::panic::catch_unwind(again);
            assert!(inner.is_err());
            within("b", || output(ones(&Device::flex())));
        });
        assert_eq!(*seen.lock().expect("no panic"), [("b".to_owned(), 4.0)]);
    }
}
