//! An operation that changes nothing and hands out the gradient that comes back through it. On every backend, so that a
//! replay can look at the backward pass where the run computes.

use std::fmt;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Cube, Dispatch, TensorMetadata, backend_extension, read_sync,
};
use burn::tensor::Tensor;
use burn_flex::Flex;

/// Gets the shape of a gradient and its elements.
type See = dyn Fn(&[usize], &[f32]) + Send + Sync;

/// Who looks at a gradient, or only wants to know when it is there.
#[derive(Clone)]
pub(super) enum Observer {
    Elements(Arc<See>),
    Arrival(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// The tensor as it is. `see` gets its gradient in the backward pass, if there is one.
pub(crate) fn probed<const D: usize>(
    x: Tensor<D>,
    see: impl Fn(&[usize], &[f32]) + Send + Sync + 'static,
) -> Tensor<D> {
    observed(x, || Observer::Elements(Arc::new(see)))
}

/// The tensor as it is. `arrived` is called when its gradient is there, if there is one. The gradient is not read: on a device
/// that computes by itself it may not be computed yet.
pub(crate) fn arrival<const D: usize>(
    x: Tensor<D>,
    arrived: impl Fn() + Send + Sync + 'static,
) -> Tensor<D> {
    observed(x, || Observer::Arrival(Arc::new(arrived)))
}

fn observed<const D: usize>(x: Tensor<D>, observer: impl FnOnce() -> Observer) -> Tensor<D> {
    if !(x.device().is_autodiff() && x.is_tracked()) {
        return x;
    }
    Tensor::from_dispatch(Dispatch::with_observer(x.into_dispatch(), observer()))
}

#[backend_extension(Flex, Cube, Autodiff)]
pub(super) trait Probes: Backend {
    fn with_observer(x: FloatTensor<Self>, observer: Observer) -> FloatTensor<Self>;
}

impl Probes for Flex {
    fn with_observer(x: FloatTensor<Self>, _: Observer) -> FloatTensor<Self> {
        x
    }
}

impl Probes for Cube {
    fn with_observer(x: FloatTensor<Self>, _: Observer) -> FloatTensor<Self> {
        x
    }
}

impl<B: Backend, C: CheckpointStrategy> Probes for Autodiff<B, C> {
    fn with_observer(x: FloatTensor<Self>, observer: Observer) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match ProbeBackward
            .prepare::<C>([node])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(observer, x),
            OpsKind::UnTracked(prep) => prep.finish(x),
        }
    }
}

#[derive(Debug)]
struct ProbeBackward;

impl<B: Backend> Backward<B, 1> for ProbeBackward {
    type State = Observer;

    fn backward(self, ops: Ops<Observer, 1>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        match &ops.state {
            Observer::Arrival(arrived) => arrived(),
            Observer::Elements(see) => {
                let shape = gradient.shape();
                if let Ok(data) = read_sync(B::float_into_data(gradient.clone())) {
                    let elements: Vec<f32> = data.iter::<f32>().collect();
                    see(&shape, &elements);
                }
            }
        }
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            gradients.register::<B>(parent.id, gradient);
        }
    }
}
