//! The attention of all heads, alone and with the projections of what it attends to, with gradients: one operation of burn's in
//! either direction.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::Tensor;

use crate::differentiable::register;
use crate::kernels::attention::{self as kernels, Attention, Left};

/// `dropout(softmax(Q·Kᵀ · scale + mask)) · V` of each head, where mask 0 is padding. Products multiply and keep numbers of the
/// type that query, key and value have.
///
/// # Shapes
/// query, key and value [B, S, H], of one type; mask [B, S], 1 = token, 0 = padding → [B, S, H], in float32
pub fn attention(
    [query, key, value]: [Tensor<3>; 3],
    mask: Tensor<2>,
    attention: Attention,
) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::gpu_attention(
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
        mask.into_dispatch(),
        attention,
    ))
}

/// [`attention`] of three projections of the same x, weights and biases of query, key and value.
///
/// # Shapes
/// x [B, S, I]; weights [H, I], of the type of x, and biases `[H]`; mask [B, S] → [B, S, H], in float32
pub fn self_attention(
    x: Tensor<3>,
    [query, key, value]: [(Tensor<2>, Tensor<1>); 3],
    mask: Tensor<2>,
    attention: Attention,
) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::gpu_self_attention(
        x.into_dispatch(),
        query.0.into_dispatch(),
        query.1.into_dispatch(),
        key.0.into_dispatch(),
        key.1.into_dispatch(),
        value.0.into_dispatch(),
        value.1.into_dispatch(),
        mask.into_dispatch(),
        attention,
    ))
}

/// As the functions above.
#[backend_extension(Cube, Autodiff)]
trait Attends: Backend {
    fn gpu_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self>;

    #[allow(clippy::too_many_arguments)]
    fn gpu_self_attention(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self>;
}

impl Attends for Cube {
    fn gpu_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        kernels::forward([query, key, value], mask, attention).0
    }

    fn gpu_self_attention(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        let layers = [
            [query_weight, query_bias],
            [key_weight, key_bias],
            [value_weight, value_bias],
        ];
        kernels::project(x, layers, mask, attention).0
    }
}

impl<C: CheckpointStrategy> Attends for Autodiff<Cube, C> {
    fn gpu_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        let nodes = [query.node(), key.node(), value.node()];
        let inputs = [query, key, value].map(|tensor| tensor.into_primitive());
        let mask = mask.into_primitive();
        let (output, probabilities) = kernels::forward(inputs.clone(), mask.clone(), attention);
        let prepared = AttentionBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = Attended {
                    inputs,
                    mask,
                    probabilities,
                    attention,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
    fn gpu_self_attention(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        let tensors = [
            x,
            query_weight,
            query_bias,
            key_weight,
            key_bias,
            value_weight,
            value_bias,
        ];
        let nodes = tensors.each_ref().map(|tensor| tensor.node());
        let [x, qw, qb, kw, kb, vw, vb] = tensors.map(|tensor| tensor.into_primitive());
        let (mask, weights) = (mask.into_primitive(), [qw, kw, vw]);
        let [qw, kw, vw] = weights.clone();
        let layers = [[qw, qb], [kw, kb], [vw, vb]];
        let (output, left) = kernels::project(x, layers, mask.clone(), attention);
        let prepared = SelfAttentionBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = Projected {
                    left,
                    weights,
                    mask,
                    attention,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

/// Keeps the inputs and the probabilities before dropout; those after it are computed again.
#[derive(Debug)]
struct AttentionBackward;

#[derive(Clone, Debug)]
struct Attended {
    inputs: [Primitive; 3],
    mask: Primitive,
    probabilities: Primitive,
    attention: Attention,
}

impl Backward<Cube, 3> for AttentionBackward {
    type State = Attended;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let Attended {
            inputs,
            mask,
            probabilities,
            attention,
        } = ops.state;
        let made = kernels::backward(gradient, inputs, probabilities, mask, attention);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        register(grads, parents, made);
    }
}

/// Keeps x and the weights beside what [`AttentionBackward`] keeps.
#[derive(Debug)]
struct SelfAttentionBackward;

#[derive(Clone, Debug)]
struct Projected {
    left: Left,
    weights: [Primitive; 3],
    mask: Primitive,
    attention: Attention,
}

impl Backward<Cube, 7> for SelfAttentionBackward {
    type State = Projected;

    fn backward(
        self,
        ops: Ops<Self::State, 7>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let Projected {
            left,
            weights,
            mask,
            attention,
        } = ops.state;
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let wanted = parents.map(|parent| parent.is_some());
        let (of_x, layers) =
            kernels::project_backward(gradient, left, weights, mask, attention, wanted);
        let [query, key, value] = layers;
        let made = [[of_x].as_slice(), &query, &key, &value].concat();
        register(grads, parents, made);
    }
}
