//! The fused operations as burn sees them: one extension trait, implemented for the CPU backend and
//! for autodiff over it. [`super`] calls them for float32 tensors of that backend only.

mod autodiff;
mod bf16;
mod flex;
mod gradients;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, DispatchDevice, backend_extension};
use burn::tensor::{DType, Device, Tensor};

use super::key::Mask;
use super::rotary::Angles;
use crate::taps;

/// Shapes and meanings are those of the functions in [`super`].
#[backend_extension(Flex, Autodiff)]
pub(super) trait FusedOps: Backend {
    fn fused_embedding(
        table: FloatTensor<Self>,
        indices: IntTensor<Self>,
        padding: Option<usize>,
    ) -> FloatTensor<Self>;

    fn fused_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    fn fused_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;

    fn fused_rotary(x: FloatTensor<Self>, heads: usize, angles: Angles) -> FloatTensor<Self>;

    fn fused_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self>;

    fn fused_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
    ) -> FloatTensor<Self>;

    fn fused_add_layer_norm(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f64,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self>;

    fn fused_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        heads: usize,
        window: Option<usize>,
        dropped: Option<Mask>,
    ) -> FloatTensor<Self>;

    #[allow(clippy::too_many_arguments)]
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
    ) -> FloatTensor<Self>;
}

/// Whether a tensor is one the fused operations take: float32, on the CPU backend. Where somebody looks at single
/// operations there are none.
pub(super) fn takes<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.dtype() == DType::F32 && !taps::is_by_operation() && is_flex(&tensor.device())
}

fn is_flex(device: &Device) -> bool {
    match device.as_dispatch() {
        DispatchDevice::Flex(_) => true,
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Flex(_)),
        _ => false,
    }
}
