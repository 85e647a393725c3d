//! What runs on GPUs only: fused operations of the encoder, the loss and the optimizer as kernels in CubeCL, one source
//! for WGSL (wgpu) and CUDA.
//!
//! Every operation has a portable form elsewhere, composed of burn's operations, which is its reference and its
//! fallback. A function here takes tensors that [`takes`] accepts: float32, on a CubeCL device.
//!
//! Start reading at `differentiable.rs`, which has functions with a gradient, then `kernels` for the code that runs on the
//! GPU.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod attention;
mod cross_entropy;
mod differentiable;
mod embeddings;
mod kernels;
mod launches;
mod linear;
mod optimizer;
mod sum;
#[doc(hidden)]
pub mod testing;

pub use attention::{attention, self_attention};
pub use cross_entropy::{Targets, cross_entropy};
pub use differentiable::{add_layer_norm, dropout, fits_a_row, layer_norm};
pub use embeddings::{Lookup, embed, takes_embeddings};
pub use kernels::attention::Attention;
pub use kernels::mask::{Dropped, MIX_A, MIX_B, SPREAD};
pub use launches::{KernelTime, LaunchTimes, Launches, count_launches, time_launches};
pub use linear::{linear, linear_gelu};
pub use optimizer::{AdamStep, Flat, Slots, adam, squares};
pub use sum::sum;

use std::sync::atomic::{AtomicBool, Ordering};

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::CubeDevice;

/// Whether the kernels are used; see [`set_enabled`].
static ENABLED: AtomicBool = AtomicBool::new(true);

/// Turns the kernels off (or on again) in the whole process, so that the portable forms run: to compare the two.
pub fn set_enabled(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Whether a tensor is one the kernels take: float32, on wgpu or CUDA, not too large, and the kernels are not turned off.
pub fn takes<const D: usize>(tensor: &Tensor<D>) -> bool {
    ENABLED.load(Ordering::Relaxed)
        && tensor.dtype() == DType::F32
        && can_number(tensor.dims())
        && is_gpu(&tensor.device())
}

/// Whether the kernels can number the elements of a tensor with these dimensions: they do it in 32 bits. Of an operation's
/// results the caller asks, where one is larger than what it is computed from.
pub fn can_number<const D: usize>(dims: [usize; D]) -> bool {
    let elements = dims.into_iter().try_fold(1_usize, usize::checked_mul);
    elements.is_some_and(|elements| u32::try_from(elements).is_ok())
}

fn is_gpu(device: &Device) -> bool {
    gpu(device).is_some()
}

/// How many buffers a launch can bind; 0 where the device is no GPU.
fn bindings(device: &Device) -> u32 {
    gpu(device).map_or(0, |gpu| gpu.client().properties().hardware.max_bindings)
}

/// The device of CubeCL that it is, or that it is under autodiff.
fn gpu(device: &Device) -> Option<&CubeDevice> {
    let device = match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => device,
        device => device,
    };
    match device {
        DispatchDevice::Cube(device) => Some(device),
        _ => None,
    }
}
