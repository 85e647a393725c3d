//! The fused operations with gradients: the forward pass, and the state that it saves for `gradients`.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::ops::{Backward, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn_flex::Flex;

use super::flex::{
    beside, dimensions, floats, indices as places, layer, normalize, project, rows, shape, tensor,
    with_last,
};
use super::gradients::*;
use super::{FusedOps, bf16};
use crate::ops::cpu::attention::{self, Dimensions, Inputs, Projection};
use crate::ops::cpu::{gelu, linear};
use crate::ops::key::Mask;
use crate::ops::precision::in_bf16;
use crate::ops::rotary::Angles;

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn fused_embedding(
        table: FloatTensor<Self>,
        indices: IntTensor<Self>,
        padding: Option<usize>,
    ) -> FloatTensor<Self> {
        let nodes = [table.node()];
        let table = table.into_primitive();
        let of_table = shape(&table);
        match EmbeddingBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let state = EmbeddingState {
                    indices: places(&indices, of_table[0]),
                    table: of_table,
                    padding,
                };
                prep.finish(state, Flex::fused_embedding(table, indices, padding))
            }
            OpsKind::UnTracked(prep) => prep.finish(Flex::fused_embedding(table, indices, padding)),
        }
    }

    fn fused_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            return bf16::tracked_linear::<C>(x, weight, bias);
        }
        let nodes = [x.node(), weight.node(), bias.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let y = Flex::fused_linear(x.clone(), weight.clone(), bias.into_primitive());
        match LinearBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish((x, weight), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            return bf16::tracked_linear_gelu::<C>(x, weight, bias);
        }
        let nodes = [x.node(), weight.node(), bias.node()];
        let (x, weight, bias) = (
            x.into_primitive(),
            weight.into_primitive(),
            bias.into_primitive(),
        );
        match LinearGeluBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (w, b) = (floats(&weight), floats(&bias));
                let layer = layer(&w, &b, weight.layout().shape());
                let (y, derivative) =
                    linear::forward_gelu_with_derivative(&floats(&x), rows(&x), layer);
                let shape = with_last(&x, layer.outputs);
                let derivative = tensor(derivative, shape.clone());
                prep.finish((x, weight, derivative), tensor(y, shape))
            }
            OpsKind::UnTracked(prep) => prep.finish(Flex::fused_linear_gelu(x, weight, bias)),
        }
    }

    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node()];
        let x = x.into_primitive();
        match GeluBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (y, derivative) = gelu::with_derivative(&floats(&x));
                prep.finish(tensor(derivative, shape(&x)), tensor(y, shape(&x)))
            }
            OpsKind::UnTracked(prep) => prep.finish(Flex::fused_gelu(x)),
        }
    }

    fn fused_rotary(x: FloatTensor<Self>, heads: usize, angles: Angles) -> FloatTensor<Self> {
        let nodes = [x.node()];
        let y = Flex::fused_rotary(x.into_primitive(), heads, angles.clone());
        match RotaryBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish((heads, angles), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let nodes = [x.node()];
        let y = Flex::fused_dropout(x.into_primitive(), mask);
        match DropoutBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(mask, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            return bf16::tracked_normalize::<C, 3>([x, gamma, beta], None, eps, None);
        }
        let nodes = [x.node(), gamma.node(), beta.node()];
        let [x, gamma, beta] = [x, gamma, beta].map(|tensor| tensor.into_primitive());
        let (y, kept) = normalize(&x, None, &gamma, &beta, eps, None);
        match LayerNormBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(LayerNormState::new(&x, kept, gamma, None), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            let of_norm = [x, gamma, beta];
            return bf16::tracked_normalize::<C, 4>(of_norm, Some(residual), eps, dropped);
        }
        let nodes = [x.node(), gamma.node(), beta.node(), residual.node()];
        let [x, residual, gamma, beta] =
            [x, residual, gamma, beta].map(|tensor| tensor.into_primitive());
        let (y, kept) = normalize(&x, Some(&residual), &gamma, &beta, eps, dropped);
        match LayerNormBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => prep.finish(LayerNormState::new(&x, kept, gamma, dropped), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        heads: usize,
        window: Option<usize>,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            let mask = mask.into_primitive();
            return bf16::tracked_attention::<C>([query, key, value], mask, heads, dropped);
        }
        let nodes = [query.node(), key.node(), value.node()];
        let projections = [query, key, value].map(|tensor| tensor.into_primitive());
        let mask = mask.into_primitive();
        let [query, key, value] = projections.each_ref().map(floats);
        let stride = shape(&projections[0])[2];
        let dimensions = Dimensions {
            window,
            ..dimensions(&projections[0], stride, heads)
        };
        let of_mask = floats(&mask);
        let alone = |data| Projection {
            data,
            stride,
            first: 0,
        };
        let inputs = Inputs {
            query: alone(&query),
            key: alone(&key),
            value: alone(&value),
            mask: &of_mask,
            dropped,
        };
        let (y, statistics) = attention::forward(inputs, dimensions);
        let count = statistics.len();
        let y = tensor(y, shape(&projections[0]));
        match AttentionBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let statistics = tensor(statistics, [count]);
                let state = AttentionState {
                    projections,
                    mask,
                    statistics,
                    dimensions,
                    dropped,
                };
                prep.finish(state, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn fused_self_attention(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        heads: usize,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            let weights = [query_weight, key_weight, value_weight];
            let biases = [query_bias, key_bias, value_bias];
            let mask = mask.into_primitive();
            return bf16::tracked_self_attention::<C>(x, weights, biases, mask, heads, dropped);
        }
        let nodes = [
            x.node(),
            query_weight.node(),
            query_bias.node(),
            key_weight.node(),
            key_bias.node(),
            value_weight.node(),
            value_bias.node(),
        ];
        let (x, mask) = (x.into_primitive(), mask.into_primitive());
        let weights = [query_weight, key_weight, value_weight].map(|w| w.into_primitive());
        let biases = [query_bias, key_bias, value_bias].map(|bias| floats(bias.primitive()));
        let of_weights = weights.each_ref().map(floats);
        let of_weight = shape(&weights[0]);
        let layers = [0, 1, 2].map(|i| layer(&of_weights[i], &biases[i], &of_weight));
        let hidden = of_weight[0];
        let dimensions = dimensions(&x, hidden, heads);
        let projected = project(&floats(&x), rows(&x), layers);
        let of_mask = floats(&mask);
        let [query, key, value] = beside(&projected, hidden);
        let inputs = Inputs {
            query,
            key,
            value,
            mask: &of_mask,
            dropped,
        };
        let (y, statistics) = attention::forward(inputs, dimensions);
        let y = tensor(y, with_last(&x, hidden));
        match SelfAttentionBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let of_projected = [rows(&x), 3 * hidden];
                let count = statistics.len();
                prep.finish(
                    SelfAttentionState {
                        x,
                        weights,
                        projected: tensor(projected, of_projected),
                        mask,
                        statistics: tensor(statistics, [count]),
                        dimensions,
                        dropped,
                    },
                    y,
                )
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}
