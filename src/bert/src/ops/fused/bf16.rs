//! The fused operations under the policy `mixed_bfloat16`: products of 16-bit inputs with float32 sums. What an operation
//! takes and puts out is float32. What it keeps for the backward pass is held in 16 bits, and the weights, which are
//! kept anyway, in float32.

use std::sync::Arc;

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn_flex::{Flex, FlexTensor};

use super::flex::{Floats, dimensions, floats, normalize, rows, shape, tensor, with_last};
use crate::ops::cpu::attention::Dimensions;
use crate::ops::cpu::bf16::Rows;
use crate::ops::cpu::bf16::attention::{self, Inputs};
use crate::ops::cpu::bf16::linear::{self, Weights};
use crate::ops::cpu::product::MatrixMut;
use crate::ops::cpu::{Unwritten, layer_norm};
use crate::ops::key::Mask;

mod projections;

pub(super) use self::projections::{attention as attention_of, tracked_attention};

type Tracked<C> = FloatTensor<Autodiff<Flex, C>>;

/// The elements of a tensor seen as a matrix, rounded.
fn encode(x: &FlexTensor) -> Rows {
    let elements = floats(x);
    let rows = rows(x);
    let columns = elements.len().checked_div(rows).unwrap_or(0);
    Rows::encode(&elements, rows, columns)
}

/// The weights of layers with equal dimensions, [outputs, inputs] = `of_weight`.
fn weights<'a>(parts: &'a [&'a [f32]], of_weight: &FlexTensor) -> Weights<'a> {
    let shape = of_weight.layout().shape();
    Weights {
        parts,
        outputs: shape[0],
        inputs: shape[1],
    }
}

/// `x · weightᵀ + bias`.
pub(super) fn linear(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    product(&encode(x), x, weight, bias)
}

fn product(rounded: &Rows, x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    let w = floats(weight);
    let parts: [&[f32]; 1] = [&w];
    let y = linear::forward(rounded, weights(&parts, weight), &floats(bias));
    tensor(y, with_last(x, shape(weight)[0]))
}

/// `gelu(x · weightᵀ + bias)`.
pub(super) fn linear_gelu(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    gelu(&encode(x), x, weight, bias, false).0
}

fn gelu(
    rounded: &Rows,
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: &FlexTensor,
    keep_derivative: bool,
) -> (FlexTensor, Option<Rows>) {
    let w = floats(weight);
    let parts: [&[f32]; 1] = [&w];
    let weights = weights(&parts, weight);
    let (y, derivative) = linear::forward_gelu(rounded, weights, &floats(bias), keep_derivative);
    (tensor(y, with_last(x, shape(weight)[0])), derivative)
}

/// `self_attention`: the projections, rounded, then the heads' output and its statistics.
fn attend(
    (x, rounded): (&FlexTensor, &Rows),
    of_layers: ([&FlexTensor; 3], [&FlexTensor; 3]),
    mask: &FlexTensor,
    heads: usize,
    dropped: Option<Mask>,
) -> (FlexTensor, Rows, Vec<f32>, Dimensions) {
    let (of_weights, of_biases) = of_layers;
    let elements = of_weights.map(floats);
    let parts = elements.each_ref().map(|weight| &**weight);
    let biases = of_biases.map(floats);
    let bias = biases.each_ref().map(|bias| &**bias).concat();
    let hidden = shape(of_weights[0])[0];
    let d = dimensions(x, hidden, heads);
    let projected = linear::forward_rounded(rounded, weights(&parts, of_weights[0]), &bias);
    let inputs = Inputs {
        projected: &projected,
        mask: &floats(mask),
        dropped,
    };
    let (y, statistics) = attention::forward(inputs, d);
    (tensor(y, with_last(x, hidden)), projected, statistics, d)
}

/// `self_attention` without gradients.
pub(super) fn self_attention(
    x: &FlexTensor,
    weights: [&FlexTensor; 3],
    biases: [&FlexTensor; 3],
    mask: &FlexTensor,
    heads: usize,
    dropped: Option<Mask>,
) -> FlexTensor {
    attend((x, &encode(x)), (weights, biases), mask, heads, dropped).0
}

/// [`linear`] with gradients.
pub(super) fn tracked_linear<C: CheckpointStrategy>(
    x: Tracked<C>,
    weight: Tracked<C>,
    bias: Tracked<C>,
) -> Tracked<C> {
    let nodes = [x.node(), weight.node(), bias.node()];
    let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
    let rounded = encode(&x);
    let y = product(&rounded, &x, &weight, &bias);
    let x = Arc::new(rounded);
    match LinearBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => {
            let derivative = None;
            prep.finish(
                LinearState {
                    x,
                    weight,
                    derivative,
                },
                y,
            )
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}

/// [`linear_gelu`] with gradients.
pub(super) fn tracked_linear_gelu<C: CheckpointStrategy>(
    x: Tracked<C>,
    weight: Tracked<C>,
    bias: Tracked<C>,
) -> Tracked<C> {
    let nodes = [x.node(), weight.node(), bias.node()];
    let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
    let rounded = encode(&x);
    match LinearBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => {
            let (y, derivative) = gelu(&rounded, &x, &weight, &bias, true);
            let state = LinearState {
                x: Arc::new(rounded),
                weight,
                derivative: derivative.map(Arc::new),
            };
            prep.finish(state, y)
        }
        OpsKind::UnTracked(prep) => prep.finish(gelu(&rounded, &x, &weight, &bias, false).0),
    }
}

/// `linear` and `linear_gelu`, with parents x, weight and bias.
#[derive(Debug)]
struct LinearBackward;

#[derive(Clone, Debug)]
struct LinearState {
    x: Arc<Rows>,
    weight: FlexTensor,
    /// Of the GELU, where there is one.
    derivative: Option<Arc<Rows>>,
}

impl Backward<Flex, 3> for LinearBackward {
    type State = LinearState;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let LinearState {
            x,
            weight,
            derivative,
        } = ops.state;
        let of_weight = shape(&weight);
        let of_x = with_last(&gradient, of_weight[1]);
        let rounded = match derivative {
            Some(derivative) => Rows::products(&floats(&gradient), &derivative),
            None => encode(&gradient),
        };
        drop(gradient);
        let w = floats(&weight);
        let parts: [&[f32]; 1] = [&w];
        let [to_x, to_weight, to_bias] = ops.parents.map(|parent| parent.map(|node| node.id));
        if let Some(parent) = to_x {
            let data = linear::backward_x(&rounded, weights(&parts, &weight));
            grads.register::<Flex>(parent, tensor(data, of_x));
        }
        if let Some(parent) = to_weight {
            let data = linear::backward_weight(&rounded, &x);
            grads.register::<Flex>(parent, tensor(data, of_weight.clone()));
        }
        if let Some(parent) = to_bias {
            grads.register::<Flex>(parent, tensor(rounded.sum(), [of_weight[0]]));
        }
    }
}

/// [`self_attention`] with gradients.
pub(super) fn tracked_self_attention<C: CheckpointStrategy>(
    x: Tracked<C>,
    weights: [Tracked<C>; 3],
    biases: [Tracked<C>; 3],
    mask: FlexTensor,
    heads: usize,
    dropped: Option<Mask>,
) -> Tracked<C> {
    let [query, key, value] = &weights;
    let [of_query, of_key, of_value] = &biases;
    let parents = [&x, query, of_query, key, of_key, value, of_value];
    let nodes = parents.map(|tensor| tensor.node());
    let x = x.into_primitive();
    let weights = weights.map(|weight| weight.into_primitive());
    let biases = biases.map(|bias| bias.into_primitive());
    let rounded = encode(&x);
    let of_layers = (weights.each_ref(), biases.each_ref());
    let (y, projected, statistics, dimensions) =
        attend((&x, &rounded), of_layers, &mask, heads, dropped);
    match SelfAttentionBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => {
            let state = SelfAttentionState {
                x: Arc::new(rounded),
                weights,
                projected: Arc::new(projected),
                mask,
                statistics: Arc::new(statistics),
                dimensions,
                dropped,
            };
            prep.finish(state, y)
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}

/// `self_attention`: parents x, then weight and bias of query, key and value.
#[derive(Debug)]
struct SelfAttentionBackward;

#[derive(Clone, Debug)]
struct SelfAttentionState {
    x: Arc<Rows>,
    weights: [FlexTensor; 3],
    /// [T, 3·H]
    projected: Arc<Rows>,
    mask: FlexTensor,
    statistics: Arc<Vec<f32>>,
    dimensions: Dimensions,
    dropped: Option<Mask>,
}

impl SelfAttentionState {
    /// The gradient of the projections, [T, 3·H], rounded.
    fn of_projected(&self, gradient: &Floats) -> Rows {
        let d = self.dimensions;
        let (rows, hidden) = (d.rows(), d.hidden());
        let mut result = Unwritten::new(rows * 3 * hidden);
        let into = MatrixMut::side_by_side(result.elements(), rows, hidden);
        let inputs = Inputs {
            projected: &self.projected,
            mask: &floats(&self.mask),
            dropped: self.dropped,
        };
        attention::backward(gradient, inputs, &self.statistics, d, into);
        // SAFETY: `backward` writes every element of the three matrices, which have all elements of the result.
        let result = unsafe { result.written() };
        Rows::encode(&result, rows, 3 * hidden)
    }
}

impl Backward<Flex, 7> for SelfAttentionBackward {
    type State = SelfAttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, 7>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let state = ops.state;
        let of_weight = shape(&state.weights[0]);
        let (hidden, inputs) = (of_weight[0], of_weight[1]);
        let of_input = with_last(&gradient, inputs);
        let of_projected = state.of_projected(&floats(&gradient));
        drop(gradient);
        let [of_x, of_layers @ ..] = ops.parents;
        if let Some(parent) = of_x {
            let elements = state.weights.each_ref().map(floats);
            let parts = elements.each_ref().map(|weight| &**weight);
            let data = linear::backward_x(&of_projected, weights(&parts, &state.weights[0]));
            grads.register::<Flex>(parent.id, tensor(data, of_input));
        }
        let wants = |which: usize| of_layers.iter().skip(which).step_by(2).any(Option::is_some);
        let of_weights = wants(0).then(|| linear::backward_weight(&of_projected, &state.x));
        let of_biases = wants(1).then(|| of_projected.sum());
        for (index, parent) in of_layers.into_iter().enumerate() {
            let Some(parent) = parent else { continue };
            let (all, each, shape) = match index % 2 {
                0 => (&of_weights, hidden * inputs, of_weight.clone()),
                _ => (&of_biases, hidden, [hidden].into()),
            };
            let Some(all) = all else { continue };
            let first = index / 2 * each;
            let data = all[first..first + each].to_vec();
            grads.register::<Flex>(parent.id, tensor(data, shape));
        }
    }
}

/// A normalization with gradients: parents x, gamma, beta and, where there is one, the residual.
pub(super) fn tracked_normalize<C: CheckpointStrategy, const N: usize>(
    [x, gamma, beta]: [Tracked<C>; 3],
    residual: Option<Tracked<C>>,
    eps: f64,
    dropped: Option<Mask>,
) -> Tracked<C> {
    let parents = [Some(&x), Some(&gamma), Some(&beta), residual.as_ref()];
    let nodes: Vec<_> = parents.iter().flatten().map(|it| it.node()).collect();
    let nodes: [_; N] = nodes.try_into().expect("there are N parents");
    let residual = residual.map(|residual| residual.into_primitive());
    let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.into_primitive());
    let (y, kept) = normalize(&x, residual.as_ref(), &gamma, &beta, eps, dropped);
    match LayerNormBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => {
            let rows = rows(&x);
            let columns = shape(&gamma)[0];
            let state = LayerNormState {
                normalized: Arc::new(Rows::encode(&kept.normalized, rows, columns)),
                inverse_deviation: Arc::new(kept.inverse_deviation),
                gamma,
                dropped,
            };
            prep.finish(state, y)
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}

/// `layer_norm` and `add_layer_norm`.
#[derive(Debug)]
struct LayerNormBackward;

#[derive(Clone, Debug)]
struct LayerNormState {
    normalized: Arc<Rows>,
    inverse_deviation: Arc<Vec<f32>>,
    gamma: FlexTensor,
    dropped: Option<Mask>,
}

impl<const N: usize> Backward<Flex, N> for LayerNormBackward {
    type State = LayerNormState;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let state = ops.state;
        let result = layer_norm::backward(
            &floats(&gradient),
            &state.normalized.decode(),
            &state.inverse_deviation,
            &floats(&state.gamma),
            state.dropped,
        );
        let of_sum = shape(&gradient);
        let sum = tensor(result.sum, of_sum.clone());
        let x = result.x.map(|x| tensor(x, of_sum));
        let columns = shape(&state.gamma);
        let gamma = tensor(result.gamma, columns.clone());
        let beta = tensor(result.beta, columns);
        let x = x.unwrap_or_else(|| sum.clone());
        for (parent, gradient) in ops.parents.into_iter().zip([x, gamma, beta, sum]) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
