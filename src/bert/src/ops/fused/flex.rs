//! Converts tensors of burn's CPU backend to slices and back; the operations without gradients.

use std::ops::Deref;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{Bytes, DType, Shape};
use burn_flex::{Flex, FlexTensor, Layout};

use super::{FusedOps, bf16};
use crate::ops::cpu::attention::{self, Dimensions, Inputs, Projection};
use crate::ops::cpu::linear::Layer;
use crate::ops::cpu::product::MatrixMut;
use crate::ops::cpu::{Unwritten, dropout, embedding, gelu, layer_norm, linear, rotary};
use crate::ops::key::Mask;
use crate::ops::precision::in_bf16;
use crate::ops::rotary::Angles;

/// The elements of a float32 tensor, row-major.
pub(super) struct Floats(FlexTensor);

impl Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // A contiguous copy, or the tensor itself where its buffer is exactly its elements.
        self.0.storage()
    }
}

/// The elements; copied only if they are not contiguous, as in a transposed view.
pub(super) fn floats(tensor: &FlexTensor) -> Floats {
    Floats(tensor.to_contiguous())
}

/// A tensor around a result.
pub(super) fn tensor(data: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(data),
        Layout::contiguous(shape.into()),
        DType::F32,
    )
}

pub(super) fn shape(tensor: &FlexTensor) -> Shape {
    tensor.layout().shape().clone()
}

/// The rows of a tensor seen as a matrix: the product of all dimensions but the last.
pub(super) fn rows(tensor: &FlexTensor) -> usize {
    let shape = tensor.layout().shape();
    (0..shape.num_dims().saturating_sub(1))
        .map(|dim| shape[dim])
        .product()
}

/// The shape with another last dimension.
pub(super) fn with_last(tensor: &FlexTensor, last: usize) -> Shape {
    let shape = tensor.layout().shape();
    let leading = shape.num_dims().saturating_sub(1);
    (0..leading)
        .map(|dim| shape[dim])
        .chain([last])
        .collect::<Vec<_>>()
        .into()
}

/// A layer around its two tensors' elements.
pub(super) fn layer<'a>(weight: &'a Floats, bias: &'a Floats, shape: &Shape) -> Layer<'a> {
    Layer {
        weight,
        bias,
        outputs: shape[0],
        inputs: shape[1],
    }
}

/// The dimensions of an attention over [B, S, H].
pub(super) fn dimensions(x: &FlexTensor, hidden: usize, heads: usize) -> Dimensions {
    let shape = x.layout().shape();
    let size = hidden.checked_div(heads).unwrap_or(0);
    Dimensions {
        batch: shape[0],
        sequence: shape[1],
        heads,
        size,
        window: None,
    }
}

/// Queries, keys and values that lie side by side in rows of 3·H.
pub(super) fn beside(data: &[f32], hidden: usize) -> [Projection<'_>; 3] {
    [0, 1, 2].map(|index| Projection {
        data,
        stride: 3 * hidden,
        first: index * hidden,
    })
}

/// Three layers on the same rows; their outputs side by side, [T, 3·H].
pub(super) fn project(x: &[f32], rows: usize, layers: [Layer; 3]) -> Vec<f32> {
    let hidden = layers[0].outputs;
    let mut projected = Unwritten::new(rows * 3 * hidden);
    let into: [MatrixMut; 3] = MatrixMut::side_by_side(projected.elements(), rows, hidden);
    for (layer, into) in layers.into_iter().zip(into) {
        linear::forward_into(x, rows, layer, into);
    }
    // SAFETY: each layer writes every element of its matrix, and the three have all elements.
    unsafe { projected.written() }
}

/// The elements of an integer tensor as places in a table of `entries`; burn's integers have the type
/// that the device is configured for.
pub(super) fn indices(tensor: &FlexTensor, entries: usize) -> Vec<usize> {
    let tensor = tensor.to_contiguous();
    let indices: Vec<usize> = match tensor.dtype() {
        DType::I64 => tensor
            .storage::<i64>()
            .iter()
            .map(|&index| index as usize)
            .collect(),
        DType::I32 => tensor
            .storage::<i32>()
            .iter()
            .map(|&index| index as usize)
            .collect(),
        DType::U32 => tensor
            .storage::<u32>()
            .iter()
            .map(|&index| index as usize)
            .collect(),
        other => unreachable!("`embedding` takes no indices of type {other:?}"),
    };
    assert!(
        indices.iter().all(|&index| index < entries),
        "every index is below {entries}"
    );
    indices
}

/// Calls `work` with the elements of what is normalized.
fn with_input<T>(
    x: &FlexTensor,
    residual: Option<&FlexTensor>,
    mask: Option<Mask>,
    work: impl FnOnce(layer_norm::Input) -> T,
) -> T {
    let (x, residual) = (floats(x), residual.map(floats));
    work(layer_norm::Input {
        x: &x,
        mask,
        residual: residual.as_deref(),
    })
}

/// The normalized tensor, and what the backward pass needs.
pub(super) fn normalize(
    x: &FlexTensor,
    residual: Option<&FlexTensor>,
    gamma: &FlexTensor,
    beta: &FlexTensor,
    eps: f64,
    mask: Option<Mask>,
) -> (FlexTensor, layer_norm::Kept) {
    let (y, kept) = with_input(x, residual, mask, |input| {
        layer_norm::forward_keeping(input, &floats(gamma), &floats(beta), eps)
    });
    (tensor(y, shape(x)), kept)
}

/// [`normalize`] without a backward pass.
fn normalized(
    x: &FlexTensor,
    residual: Option<&FlexTensor>,
    [gamma, beta]: [&FlexTensor; 2],
    eps: f64,
    mask: Option<Mask>,
) -> FlexTensor {
    let y = with_input(x, residual, mask, |input| {
        layer_norm::forward(input, &floats(gamma), &floats(beta), eps)
    });
    tensor(y, shape(x))
}

impl FusedOps for Flex {
    fn fused_embedding(
        table: FloatTensor<Self>,
        indices: IntTensor<Self>,
        _padding: Option<usize>,
    ) -> FloatTensor<Self> {
        let of_table = shape(&table);
        let places = self::indices(&indices, of_table[0]);
        let data = embedding::forward(&floats(&table), of_table[1], &places);
        let of_indices = shape(&indices);
        tensor(data, [of_indices[0], of_indices[1], of_table[1]])
    }

    fn fused_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            return bf16::linear(&x, &weight, &bias);
        }
        let (w, b) = (floats(&weight), floats(&bias));
        let layer = layer(&w, &b, weight.layout().shape());
        tensor(
            linear::forward(&floats(&x), rows(&x), layer),
            with_last(&x, layer.outputs),
        )
    }

    fn fused_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if in_bf16() {
            return bf16::linear_gelu(&x, &weight, &bias);
        }
        let (w, b) = (floats(&weight), floats(&bias));
        let layer = layer(&w, &b, weight.layout().shape());
        let y = linear::forward_gelu(&floats(&x), rows(&x), layer);
        tensor(y, with_last(&x, layer.outputs))
    }

    fn fused_rotary(x: FloatTensor<Self>, heads: usize, angles: Angles) -> FloatTensor<Self> {
        let hidden = shape(&x)[2];
        let y = rotary::rotated(&floats(&x), heads, &angles.cos, &angles.sin, hidden);
        tensor(y, shape(&x))
    }

    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        tensor(gelu::gelu(&floats(&x)), shape(&x))
    }

    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        tensor(dropout::dropout(&floats(&x), mask), shape(&x))
    }

    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self> {
        normalized(&x, None, [&gamma, &beta], eps, None)
    }

    fn fused_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self> {
        normalized(&x, Some(&residual), [&gamma, &beta], eps, dropped)
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
            return bf16::attention_of([&query, &key, &value], &mask, heads, dropped);
        }
        let hidden = query.layout().shape()[2];
        let d = Dimensions {
            window,
            ..dimensions(&query, hidden, heads)
        };
        let (q, k, v, mask) = (floats(&query), floats(&key), floats(&value), floats(&mask));
        let alone = |data| Projection {
            data,
            stride: hidden,
            first: 0,
        };
        let inputs = Inputs {
            query: alone(&q),
            key: alone(&k),
            value: alone(&v),
            mask: &mask,
            dropped,
        };
        tensor(attention::forward(inputs, d).0, shape(&query))
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
            let weights = [&query_weight, &key_weight, &value_weight];
            let biases = [&query_bias, &key_bias, &value_bias];
            return bf16::self_attention(&x, weights, biases, &mask, heads, dropped);
        }
        let weights = [&query_weight, &key_weight, &value_weight].map(floats);
        let biases = [&query_bias, &key_bias, &value_bias].map(floats);
        let of_weight = query_weight.layout().shape();
        let layers = [0, 1, 2].map(|i| layer(&weights[i], &biases[i], of_weight));
        let hidden = of_weight[0];
        let d = dimensions(&x, hidden, heads);
        let projected = project(&floats(&x), rows(&x), layers);
        let [query, key, value] = beside(&projected, hidden);
        let mask = floats(&mask);
        let inputs = Inputs {
            query,
            key,
            value,
            mask: &mask,
            dropped,
        };
        tensor(attention::forward(inputs, d).0, with_last(&x, hidden))
    }
}
