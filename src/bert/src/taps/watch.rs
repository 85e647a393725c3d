//! Watching single operations, forward and backward: [`crate::operation!`] says what an operation is called and what it
//! takes, and [`Taps::of_operations`](super::Taps::of_operations) sees each input and output, and later of their
//! gradients.
//!
//! A tensor that is watched goes through an operation that changes nothing (`ops::probed`), whose backward pass hands
//! out the gradient. The gradient of an input is what this one operation adds to it; that of an output is the sum over
//! all that use the output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn::tensor::Tensor;

use super::{ACTIVE, CURRENT, joined};
use crate::ops;

/// Something that is seen of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// The part of the network that is running: `bert.encoder.layer.3.attention.self`. The name of a parameter, where
    /// it is the gradient of one.
    pub layer: &'a str,
    /// The operation: `softmax`. `None` where it is the output of a layer, or a parameter.
    pub operation: Option<&'a str>,
    /// Which input of the operation it is; `None` for its output.
    pub input: Option<&'a str>,
    /// Counts the operations and outputs of the pass: what has the same number is of the same one.
    pub call: u64,
    /// Whether it is the gradient of the loss by the value, and not the value.
    pub is_gradient: bool,
    /// The shape of the value.
    pub shape: &'a [usize],
    /// The elements in their order.
    pub elements: &'a [f32],
}

type Sink = dyn Fn(&Sighting<'_>) + Send + Sync;

/// Who watches a pass.
pub(super) struct Watch {
    sink: Arc<Sink>,
    by_operation: bool,
    calls: AtomicU64,
}

impl Watch {
    pub(super) fn new(
        by_operation: bool,
        sink: impl Fn(&Sighting<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            sink: Arc::new(sink),
            by_operation,
            calls: AtomicU64::new(0),
        }
    }

    pub(super) fn is_by_operation(&self) -> bool {
        self.by_operation
    }

    fn place(&self, layer: String, operation: Option<String>) -> Place {
        Place {
            sink: Arc::clone(&self.sink),
            layer,
            operation,
            call: self.calls.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// An operation or an output of a layer, in one pass.
#[derive(Clone)]
pub(super) struct Place {
    sink: Arc<Sink>,
    layer: String,
    operation: Option<String>,
    call: u64,
}

/// The part that is running, or `name` in it, if this thread is watched.
pub(super) fn here(name: Option<&str>) -> Option<Place> {
    CURRENT.with_borrow(|current| {
        let current = current.as_ref()?;
        let layer = match name {
            Some(name) => joined(&current.path, &name),
            None => current.path.clone(),
        };
        Some(current.taps.as_ref()?.watch()?.place(layer, None))
    })
}

impl Place {
    fn hand(&self, input: Option<&str>, is_gradient: bool, shape: &[usize], elements: &[f32]) {
        (self.sink)(&Sighting {
            layer: &self.layer,
            operation: self.operation.as_deref(),
            input,
            call: self.call,
            is_gradient,
            shape,
            elements,
        });
    }

    /// Hands out a value.
    pub(super) fn sees_value<const D: usize>(&self, input: Option<&str>, x: Tensor<D>) {
        let x = match x.device().is_autodiff() {
            true => x.inner(),
            false => x,
        };
        let shape = x.dims();
        // Of a device that fails the pass itself tells.
        if let Ok(data) = x.try_into_data() {
            let elements: Vec<f32> = data.iter::<f32>().collect();
            self.hand(input, false, &shape, &elements);
        }
    }

    /// Hands out a value, and in the backward pass its gradient.
    pub(super) fn sees<const D: usize>(
        &self,
        input: Option<&'static str>,
        x: Tensor<D>,
    ) -> Tensor<D> {
        self.sees_value(input, x.clone());
        self.sees_gradient(input, x)
    }

    fn sees_gradient<const D: usize>(
        &self,
        input: Option<&'static str>,
        x: Tensor<D>,
    ) -> Tensor<D> {
        let place = self.clone();
        ops::probed(x, move |shape, elements| {
            place.hand(input, true, shape, elements);
        })
    }
}

/// An operation that has begun; see [`crate::operation!`].
pub struct Operation(Option<Place>);

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operation")
    }
}

/// An operation begins. For [`crate::operation!`].
#[inline]
pub fn begin(name: &str) -> Operation {
    match ACTIVE.get() {
        false => Operation(None),
        true => Operation(begun(name)),
    }
}

fn begun(name: &str) -> Option<Place> {
    CURRENT.with_borrow(|current| {
        let current = current.as_ref()?;
        let watch = current.taps.as_ref()?.watch();
        let watch = watch.filter(|it| it.is_by_operation())?;
        Some(watch.place(current.path.clone(), Some(name.to_owned())))
    })
}

impl Operation {
    /// Something that the operation takes.
    #[inline]
    pub fn input<const D: usize>(&self, name: &'static str, x: Tensor<D>) -> Tensor<D> {
        match &self.0 {
            None => x,
            Some(place) => place.sees(Some(name), x),
        }
    }

    /// What it computes.
    #[inline]
    pub fn output<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match &self.0 {
            None => x,
            Some(place) => place.sees(None, x),
        }
    }
}

/// Hands out the gradient by a parameter in the backward pass of a watched pass. To be called inside of
/// [`Taps::during`](super::Taps::during), with the tensor that the pass then uses.
pub fn gradient_of<const D: usize>(name: &str, parameter: Tensor<D>) -> Tensor<D> {
    let place = CURRENT.with_borrow(|current| {
        let watch = current.as_ref()?.taps.as_ref()?.watch()?;
        Some(watch.place(name.to_owned(), None))
    });
    match place {
        Some(place) => place.sees_gradient(None, parameter),
        None => parameter,
    }
}

/// Says what an operation is called and which tensors it takes, so that `run.why()` can look at it by itself. Where nobody
/// looks it is the operation and nothing else.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use stratoscope_bert::operation;
///
/// let x = Tensor::<2>::ones([2, 3], &Device::flex());
/// let y = Tensor::<2>::ones([2, 3], &Device::flex());
/// // A name in the brackets is a variable, moved into the operation, or a new one for an expression.
/// let share = operation!("divide", [x, sum = y + 1.0], x / sum);
/// ```
#[macro_export]
macro_rules! operation {
    (@ $x:ident) => { $x };
    (@ $x:ident $value:expr) => { $value };
    ($name:expr, [$($x:ident $(= $value:expr)?),* $(,)?], $body:expr) => {{
        let operation = $crate::taps::begin($name);
        $(let $x = operation.input(stringify!($x), $crate::operation!(@ $x $($value)?));)*
        operation.output($body)
    }};
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use burn::tensor::Device;

    use super::super::{Taps, tap, within};
    use super::*;

    type Seen = Arc<Mutex<Vec<(String, bool, Vec<f32>)>>>;

    fn sink(seen: &Seen) -> impl Fn(&Sighting<'_>) + Send + Sync + 'static {
        let seen = Arc::clone(seen);
        move |it| {
            let parts = [Some(it.layer), it.operation, it.input];
            let name: Vec<&str> = parts.into_iter().flatten().collect();
            let row = (name.join(" "), it.is_gradient, it.elements.to_vec());
            seen.lock().expect("no panic").push(row);
        }
    }

    /// `(3x)² + 3x` at 2: 42, with the slopes 13 by 3x and 39 by x.
    fn pass() -> f32 {
        let device = Device::flex().autodiff();
        let x = Tensor::<1>::from_floats([2.0], &device).require_grad();
        let of_x = gradient_of("x", x.clone());
        let sum = within("a", || {
            let tripled = operation!("triple", [of_x], of_x * 3.0);
            let tripled = tap("out", tripled);
            operation!(
                "square",
                [one = tripled.clone(), other = tripled.clone()],
                one * other
            ) + tripled
        });
        let gradients = sum.backward();
        let data = x.grad(&gradients).expect("it is a leaf").into_data();
        data.iter::<f32>().next().expect("one element")
    }

    #[test]
    fn values_and_gradients_of_operations() {
        assert_eq!(pass(), 39.0);
        let seen = Seen::default();
        assert_eq!(Taps::of_operations(sink(&seen)).during(pass), 39.0);
        let forward = |name: &str, value: f32| (name.to_owned(), false, vec![value]);
        let backward = |name: &str, value: f32| (name.to_owned(), true, vec![value]);
        let mut seen = std::mem::take(&mut *seen.lock().expect("no panic"));
        let gradients = seen.split_off(6);
        assert_eq!(
            seen,
            [
                forward("a triple of_x", 2.0),
                forward("a triple", 6.0),
                forward("a.out", 6.0),
                forward("a square one", 6.0),
                forward("a square other", 6.0),
                forward("a square", 36.0),
            ]
        );
        for expected in [
            backward("a square", 1.0),
            backward("a square one", 6.0),
            backward("a square other", 6.0),
            backward("a.out", 13.0),
            backward("a triple", 13.0),
            backward("a triple of_x", 39.0),
            backward("x", 39.0),
        ] {
            assert!(gradients.contains(&expected), "{expected:?}: {gradients:?}");
        }
        assert_eq!(gradients.len(), 7);
        assert_eq!(gradients[6].0, "x", "in the order of the backward pass");
    }

    #[test]
    fn of_layers_single_operations_are_not_seen() {
        let seen = Seen::default();
        Taps::of_layers(sink(&seen)).during(pass);
        let seen = seen.lock().expect("no panic");
        let names: Vec<&str> = seen.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["a.out", "a.out", "x"]);
    }
}
