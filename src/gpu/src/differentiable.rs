//! The operations with gradients, on tensors.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;

use crate::kernels::mask::{Dropped, drop_elements};
use crate::kernels::norm::{self, Normalized, Place};

/// The most columns of a row that [`layer_norm`] takes: each unit of a cube keeps its share of them in registers.
const MOST_COLUMNS: usize = 4096;

/// Whether rows of so many columns fit the kernels of LayerNorm.
pub fn fits_a_row(columns: usize) -> bool {
    (1..=MOST_COLUMNS).contains(&columns)
}

/// Normalizes the last dimension to mean 0 and variance 1, then scales by `gamma` and shifts by `beta`.
///
/// # Shapes
/// x [B, S, H], H as in [`fits_a_row`]; gamma and beta `[H]` → [B, S, H]
pub fn layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f64) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::gpu_layer_norm(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        eps as f32,
    ))
}

/// [`layer_norm`] of `dropout(x) + residual`; element i of the mask is that of the flat index i.
pub fn add_layer_norm(
    x: Tensor<3>,
    residual: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropped: Option<Dropped>,
) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::gpu_add_layer_norm(
        x.into_dispatch(),
        residual.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        eps as f32,
        dropped,
    ))
}

/// Sets dropped elements to 0 and multiplies the others by the mask's factor; element i of the mask is that of the flat
/// index i. Nothing is kept for the way back.
pub fn dropout<const D: usize>(x: Tensor<D>, dropped: Dropped) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::gpu_dropout(x.into_dispatch(), dropped))
}

/// Shapes and meanings are those of the functions above.
#[backend_extension(Cube, Autodiff)]
trait Differentiable: Backend {
    fn gpu_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self>;

    fn gpu_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self>;

    fn gpu_dropout(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self>;
}

impl Differentiable for Cube {
    fn gpu_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self> {
        norm::forward(x, None, gamma, beta, eps, None).output
    }

    fn gpu_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self> {
        norm::forward(x, Some(residual), gamma, beta, eps, dropped).output
    }

    fn gpu_dropout(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self> {
        drop_elements(x, dropped)
    }
}

impl<C: CheckpointStrategy> Differentiable for Autodiff<Cube, C> {
    fn gpu_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), gamma.node(), beta.node()];
        let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.into_primitive());
        let Normalized {
            output,
            normalized,
            inverse,
        } = norm::forward(x, None, gamma.clone(), beta, eps, None);
        let prepared = NormBackward.prepare::<C>(nodes).compute_bound().stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = NormState {
                    normalized,
                    inverse,
                    gamma,
                    dropped: None,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn gpu_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), gamma.node(), beta.node(), residual.node()];
        let [x, residual, gamma, beta] =
            [x, residual, gamma, beta].map(|tensor| tensor.into_primitive());
        let Normalized {
            output,
            normalized,
            inverse,
        } = norm::forward(x, Some(residual), gamma.clone(), beta, eps, dropped);
        let prepared = NormBackward.prepare::<C>(nodes).compute_bound().stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = NormState {
                    normalized,
                    inverse,
                    gamma,
                    dropped,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn gpu_dropout(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self> {
        let nodes = [x.node()];
        let output = drop_elements(x.into_primitive(), dropped);
        let prepared = DropoutBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => prep.finish(dropped, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

/// Hands on the gradients of those parents that want one.
pub(crate) fn register(
    grads: &mut Gradients,
    parents: impl IntoIterator<Item = Option<NodeId>>,
    made: impl IntoIterator<Item = Primitive>,
) {
    for (parent, gradient) in parents.into_iter().zip(made) {
        if let Some(parent) = parent {
            grads.register::<Cube>(parent, gradient);
        }
    }
}

/// LayerNorm, with parents x, gamma, beta and, where there is one, the residual.
#[derive(Debug)]
struct NormBackward;

#[derive(Clone, Debug)]
struct NormState {
    normalized: Primitive,
    inverse: Primitive,
    gamma: Primitive,
    dropped: Option<Dropped>,
}

impl<const N: usize> Backward<Cube, N> for NormBackward {
    type State = NormState;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let NormState {
            normalized,
            inverse,
            gamma,
            dropped,
        } = ops.state;
        let made = norm::backward(gradient, normalized, inverse, gamma, Place::Input(dropped));
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        register(grads, parents, [made.x, made.gamma, made.beta, made.sum]);
    }
}

/// Dropout: the mask is computed again.
#[derive(Debug)]
struct DropoutBackward;

impl Backward<Cube, 1> for DropoutBackward {
    type State = Dropped;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        if let [Some(parent)] = ops.parents {
            grads.register::<Cube>(parent.id, drop_elements(gradient, ops.state));
        }
    }
}
