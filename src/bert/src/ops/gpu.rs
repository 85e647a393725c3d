//! The operations with kernels for wgpu and CUDA (`stratoscope_gpu`), each one operation of burn's. Shapes and
//! meanings are those of the functions in [`super`].

use burn::tensor::{DType, Tensor};
use stratoscope_gpu::{self as kernels, Attention, Dropped, Lookup};

pub(super) use self::kernels::can_number;
use super::key::Mask;
use super::precision::half;
use crate::taps;

/// Whether a tensor is one the kernels take. Where somebody looks at single operations there are none.
pub(super) fn takes<const D: usize>(tensor: &Tensor<D>) -> bool {
    !taps::is_by_operation() && kernels::takes(tensor)
}

impl From<Mask> for Dropped {
    fn from(mask: Mask) -> Self {
        Self {
            first: mask.first,
            second: mask.second,
            threshold: mask.threshold,
            scale: mask.scale,
        }
    }
}

/// Whether the embeddings are one launch.
pub(super) fn embeds(lookup: &Lookup) -> bool {
    !taps::is_by_operation() && kernels::takes_embeddings(lookup)
}

pub(super) fn embed(
    lookup: Lookup,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropped: Option<Mask>,
) -> Tensor<3> {
    kernels::embed(lookup, gamma, beta, eps, dropped.map(Dropped::from))
}

pub(super) fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    kernels::linear(factor(x), factor(weight), bias)
}

pub(super) fn linear_gelu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    kernels::linear_gelu(factor(x), factor(weight), bias)
}

/// What a product multiplies: numbers of 16 bits under such a precision, so that products read and keep 16 bits.
fn factor<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    match half() {
        Some(half) if tensor.dtype() == DType::F32 => tensor.cast(half),
        _ => tensor,
    }
}

/// Whether rows of x fit the kernels of LayerNorm.
pub(super) fn fits_a_row(x: &Tensor<3>) -> bool {
    kernels::fits_a_row(x.dims()[2])
}

pub(super) fn normalize(
    x: Tensor<3>,
    residual: Option<Tensor<3>>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropped: Option<Mask>,
) -> Tensor<3> {
    match residual {
        Some(residual) => {
            let dropped = dropped.map(Dropped::from);
            kernels::add_layer_norm(x, residual, gamma, beta, eps, dropped)
        }
        None => kernels::layer_norm(x, gamma, beta, eps),
    }
}

pub(super) fn dropout(x: Tensor<3>, mask: Mask) -> Tensor<3> {
    kernels::dropout(x, mask.into())
}

/// Whether kernels know the numbers of the elements of this mask: they have all heads of a layer.
pub(super) fn numbers(dropped: Option<Mask>) -> bool {
    dropped.is_none_or(|mask| mask.heads.is_none())
}

pub(super) fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: usize,
    mask: Tensor<2>,
    dropped: Option<Mask>,
) -> Tensor<3> {
    let attention = arguments(query.dims()[2], heads, dropped);
    kernels::attention([query, key, value].map(factor), mask, attention)
}

pub(super) fn self_attention(
    x: Tensor<3>,
    layers: [(Tensor<2>, Tensor<1>); 3],
    heads: usize,
    mask: Tensor<2>,
    dropped: Option<Mask>,
) -> Tensor<3> {
    let attention = arguments(layers[0].0.dims()[0], heads, dropped);
    let layers = layers.map(|(weight, bias)| (factor(weight), bias));
    kernels::self_attention(factor(x), layers, mask, attention)
}

fn arguments(hidden: usize, heads: usize, dropped: Option<Mask>) -> Attention {
    Attention {
        heads,
        scale: (1.0 / ((hidden / heads) as f64).sqrt()) as f32,
        dropped: dropped.map(Dropped::from),
    }
}
