//! Layers with weights as checkpoints store them, [outputs, inputs], with gradients. Each is one operation of burn's in either
//! direction, whatever it launches: what burn does for an operation on the processor takes longer than what a GPU does for most
//! of them.
//!
//! Where x and the weights are float16 (or bfloat16), products read and write that type and add in float32, in both
//! directions, and what is kept for the backward pass has it. Biases, outputs and the gradient that comes in are float32.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;

use crate::differentiable::register;
use crate::kernels::linear;

/// `x · weightᵀ + bias`.
///
/// # Shapes
/// x [.., I]; weight [O, I], of the same type; bias `[O]` → [.., O]
pub fn linear<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::gpu_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    ))
}

/// The exact GELU of [`linear`].
pub fn linear_gelu<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::gpu_linear_gelu(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    ))
}

/// Shapes and meanings are those of the functions above.
#[backend_extension(Cube, Autodiff)]
trait Layers: Backend {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

impl Layers for Cube {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        linear::forward(x, weight, bias)
    }

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        linear::gelu_forward(x, weight, bias).0
    }
}

impl<C: CheckpointStrategy> Layers for Autodiff<Cube, C> {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let output = linear::forward(x.clone(), weight.clone(), bias);
        let prepared = LinearBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => prep.finish((x, weight), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let (output, product) = linear::gelu_forward(x.clone(), weight.clone(), bias.clone());
        let prepared = LinearGeluBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = GeluState {
                    x,
                    weight,
                    product,
                    bias,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// `linear`: keeps x and the weights.
#[derive(Debug)]
struct LinearBackward;

impl Backward<Cube, 3> for LinearBackward {
    type State = (Primitive, Primitive);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (x, weight) = ops.state;
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let wanted = parents.map(|parent| parent.is_some());
        let made = linear::backward(gradient, x, weight, None, wanted);
        register(grads, parents, made);
    }
}

/// `linear_gelu`: keeps x, the parameters and the product.
#[derive(Debug)]
struct LinearGeluBackward;

#[derive(Clone, Debug)]
struct GeluState {
    x: Primitive,
    weight: Primitive,
    product: Primitive,
    bias: Primitive,
}

impl Backward<Cube, 3> for LinearGeluBackward {
    type State = GeluState;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let GeluState {
            x,
            weight,
            product,
            bias,
        } = ops.state;
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let wanted = parents.map(|parent| parent.is_some());
        let made = linear::gelu_backward(gradient, x, weight, product, bias, wanted);
        register(grads, parents, made);
    }
}
