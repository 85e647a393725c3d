//! The gradients of the fused operations.
//!
//! Each operation is a `Backward`: what it keeps of the forward pass is its state, and its parents are
//! in the order of the arguments. Gradients that are not needed are not computed.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops};
use burn::tensor::Shape;
use burn_flex::{Flex, FlexTensor};

use super::FusedOps;
use super::flex::{beside, floats, rows, shape, tensor};
use crate::ops::cpu::attention::{self, Dimensions, Inputs, Projection};
use crate::ops::cpu::layer_norm::Kept;
use crate::ops::cpu::linear::{self, Layer};
use crate::ops::cpu::product::MatrixMut;
use crate::ops::cpu::{Unwritten, dropout, embedding, gelu, layer_norm};
use crate::ops::key::Mask;
use crate::ops::rotary::Angles;

/// `embedding`: keeps the indices and the table's size.
#[derive(Debug)]
pub(super) struct EmbeddingBackward;

#[derive(Clone, Debug)]
pub(super) struct EmbeddingState {
    pub indices: Vec<usize>,
    pub table: Shape,
    pub padding: Option<usize>,
}

impl Backward<Flex, 1> for EmbeddingBackward {
    type State = EmbeddingState;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let EmbeddingState {
            indices,
            table,
            padding,
        } = ops.state;
        if let [Some(parent)] = ops.parents {
            let data = embedding::backward(&gradient, table[0], table[1], &indices, padding);
            grads.register::<Flex>(parent.id, tensor(data, table));
        }
    }
}

/// `linear`: keeps x and the weight.
#[derive(Debug)]
pub(super) struct LinearBackward;

impl Backward<Flex, 3> for LinearBackward {
    type State = (FlexTensor, FlexTensor);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let (x, weight) = ops.state;
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let [dx, dw, db] = linear_gradients(&gradient, &x, &weight, parents.map(|id| id.is_some()));
        for (parent, gradient) in parents.into_iter().zip([dx, dw, db]) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent, gradient);
            }
        }
    }
}

/// The gradients of x, weight and bias, as far as they are needed.
fn linear_gradients(
    gradient: &[f32],
    x: &FlexTensor,
    weight: &FlexTensor,
    wanted: [bool; 3],
) -> [Option<FlexTensor>; 3] {
    let w = floats(weight);
    let of_weight = shape(weight);
    let (outputs, inputs, rows) = (of_weight[0], of_weight[1], rows(x));
    let layer = Layer {
        weight: &w,
        bias: &[],
        inputs,
        outputs,
    };
    let [wants_x, wants_weight, wants_bias] = wanted;
    [
        wants_x.then(|| {
            let data = linear::backward_x(gradient, rows, layer, 0, outputs);
            tensor(data, shape(x))
        }),
        wants_weight.then(|| {
            let sizes = (inputs, outputs);
            let data = linear::backward_weight(gradient, &floats(x), rows, sizes, 0, outputs);
            tensor(data, of_weight.clone())
        }),
        wants_bias.then(|| tensor(linear::backward_bias(gradient, outputs), [outputs])),
    ]
}

/// `linear_gelu`: keeps x, the weight and the GELU's derivative.
#[derive(Debug)]
pub(super) struct LinearGeluBackward;

impl Backward<Flex, 3> for LinearGeluBackward {
    type State = (FlexTensor, FlexTensor, FlexTensor);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let (x, weight, derivative) = ops.state;
        let gradient = gelu::backward(&gradient, &floats(&derivative));
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let [dx, dw, db] = linear_gradients(&gradient, &x, &weight, parents.map(|id| id.is_some()));
        for (parent, gradient) in parents.into_iter().zip([dx, dw, db]) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent, gradient);
            }
        }
    }
}

/// `gelu`: keeps the derivative.
#[derive(Debug)]
pub(super) struct GeluBackward;

impl Backward<Flex, 1> for GeluBackward {
    type State = FlexTensor;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        if let [Some(parent)] = ops.parents {
            let data = gelu::backward(&floats(&gradient), &floats(&ops.state));
            grads.register::<Flex>(parent.id, tensor(data, shape(&gradient)));
        }
    }
}

/// `dropout`: keeps the mask's key, not the mask.
#[derive(Debug)]
pub(super) struct DropoutBackward;

impl Backward<Flex, 1> for DropoutBackward {
    type State = Mask;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        if let [Some(parent)] = ops.parents {
            let data = dropout::dropout(&floats(&gradient), ops.state);
            grads.register::<Flex>(parent.id, tensor(data, shape(&gradient)));
        }
    }
}

/// `layer_norm`, with parents x, gamma, beta and, where there is one, the residual.
#[derive(Debug)]
pub(super) struct LayerNormBackward;

#[derive(Clone, Debug)]
pub(super) struct LayerNormState {
    pub normalized: FlexTensor,
    pub inverse_deviation: FlexTensor,
    pub gamma: FlexTensor,
    pub dropped: Option<Mask>,
}

impl LayerNormState {
    pub fn new(x: &FlexTensor, kept: Kept, gamma: FlexTensor, dropped: Option<Mask>) -> Self {
        let rows = [kept.inverse_deviation.len()];
        Self {
            normalized: tensor(kept.normalized, shape(x)),
            inverse_deviation: tensor(kept.inverse_deviation, rows),
            gamma,
            dropped,
        }
    }
}

impl<const N: usize> Backward<Flex, N> for LayerNormBackward {
    type State = LayerNormState;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let state = ops.state;
        let result = layer_norm::backward(
            &gradient,
            &floats(&state.normalized),
            &floats(&state.inverse_deviation),
            &floats(&state.gamma),
            state.dropped,
        );
        let of_sum = shape(&state.normalized);
        let sum = tensor(result.sum, of_sum.clone());
        let x = match result.x {
            Some(x) => tensor(x, of_sum),
            None => sum.clone(),
        };
        let columns = shape(&state.gamma);
        let gamma = tensor(result.gamma, columns.clone());
        let beta = tensor(result.beta, columns);
        for (parent, gradient) in ops.parents.into_iter().zip([x, gamma, beta, sum]) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

/// `rotary`: keeps the angles. A rotation has no length to change, so its gradient is rotated back.
#[derive(Debug)]
pub(super) struct RotaryBackward;

impl Backward<Flex, 1> for RotaryBackward {
    type State = (usize, Angles);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let (heads, angles) = ops.state;
        if let [Some(parent)] = ops.parents {
            let gradient = Flex::fused_rotary(gradient, heads, angles.reversed());
            grads.register::<Flex>(parent.id, gradient);
        }
    }
}

/// `attention` on three projections: keeps them and two numbers per row of scores.
#[derive(Debug)]
pub(super) struct AttentionBackward;

#[derive(Clone, Debug)]
pub(super) struct AttentionState {
    pub projections: [FlexTensor; 3],
    pub mask: FlexTensor,
    pub statistics: FlexTensor,
    pub dimensions: Dimensions,
    pub dropped: Option<Mask>,
}

impl Backward<Flex, 3> for AttentionBackward {
    type State = AttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let state = ops.state;
        let stride = state.dimensions.hidden();
        let [q, k, v] = state.projections.each_ref().map(floats);
        let mask = floats(&state.mask);
        let alone = |data| Projection {
            data,
            stride,
            first: 0,
        };
        let inputs = Inputs {
            query: alone(&q),
            key: alone(&k),
            value: alone(&v),
            mask: &mask,
            dropped: state.dropped,
        };
        let rows = state.dimensions.rows();
        let mut results = [(); 3].map(|()| Unwritten::new(rows * stride));
        let into = results
            .each_mut()
            .map(|result| MatrixMut::new(result.elements(), rows, stride));
        attention::backward(
            &gradient,
            inputs,
            &floats(&state.statistics),
            state.dimensions,
            into,
        );
        // SAFETY: `backward` writes every element of the three matrices, which have all elements of the results.
        let results = results.map(|result| unsafe { result.written() });
        let shapes = state.projections.each_ref().map(shape);
        for ((parent, data), shape) in ops.parents.into_iter().zip(results).zip(shapes) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, tensor(data, shape));
            }
        }
    }
}

/// `self_attention`: parents x, then weight and bias of query, key and value.
#[derive(Debug)]
pub(super) struct SelfAttentionBackward;

#[derive(Clone, Debug)]
pub(super) struct SelfAttentionState {
    pub x: FlexTensor,
    pub weights: [FlexTensor; 3],
    /// [T, 3·H]
    pub projected: FlexTensor,
    pub mask: FlexTensor,
    pub statistics: FlexTensor,
    pub dimensions: Dimensions,
    pub dropped: Option<Mask>,
}

impl Backward<Flex, 7> for SelfAttentionBackward {
    type State = SelfAttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, 7>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = floats(&grads.consume::<Flex>(&ops.node));
        let state = ops.state;
        let hidden = state.dimensions.hidden();
        let stride = 3 * hidden;
        let (projected, mask) = (floats(&state.projected), floats(&state.mask));
        let [query, key, value] = beside(&projected, hidden);
        let inputs = Inputs {
            query,
            key,
            value,
            mask: &mask,
            dropped: state.dropped,
        };
        let (x, rows) = (floats(&state.x), rows(&state.x));
        let mut of_projected = Unwritten::new(rows * stride);
        let into = MatrixMut::side_by_side(of_projected.elements(), rows, hidden);
        attention::backward(
            &gradient,
            inputs,
            &floats(&state.statistics),
            state.dimensions,
            into,
        );
        // SAFETY: `backward` writes every element of the three matrices, which have all elements of the result.
        let of_projected = unsafe { of_projected.written() };

        let weights = state.weights.each_ref().map(floats);
        let inputs = shape(&state.weights[0])[1];
        let [of_x, of_layers @ ..] = ops.parents;
        if let Some(parent) = of_x {
            let layers = weights.each_ref().map(|weight| Layer {
                weight,
                bias: &[],
                inputs,
                outputs: hidden,
            });
            let g = &of_projected;
            let mut result = linear::backward_x(g, rows, layers[0], 0, stride);
            for (index, layer) in layers.into_iter().enumerate().skip(1) {
                linear::add_backward_x(g, rows, layer, index * hidden, stride, &mut result);
            }
            grads.register::<Flex>(parent.id, tensor(result, shape(&state.x)));
        }
        let biases = linear::backward_bias(&of_projected, stride);
        for (index, parent) in of_layers.into_iter().enumerate() {
            let Some(parent) = parent else { continue };
            let first = index / 2 * hidden;
            let gradient = if index % 2 == 0 {
                let sizes = (inputs, hidden);
                let data = linear::backward_weight(&of_projected, &x, rows, sizes, first, stride);
                tensor(data, [hidden, inputs])
            } else {
                tensor(biases[first..first + hidden].to_vec(), [hidden])
            };
            grads.register::<Flex>(parent.id, gradient);
        }
    }
}
