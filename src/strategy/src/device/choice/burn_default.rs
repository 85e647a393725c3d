//! burn's own default device, `Device::default()`, which code that was written for burn asks for. Of the backends that
//! it was built with, burn takes CUDA, whether or not there is a GPU, unless a variable names another one: here the
//! variable follows the default device.

use std::sync::OnceLock;

use crate::device::BackendKind;

/// burn's variable: the kind of a device, without a number.
const VARIABLE: &str = "BURN_DEVICE";

/// Makes burn's default device one of this kind, unless the variable was set by the user.
pub(super) fn set(kind: BackendKind) {
    static IS_FREE: OnceLock<bool> = OnceLock::new();
    let name = match kind {
        BackendKind::Flex => "flex",
        BackendKind::Wgpu => "wgpu",
        BackendKind::Cuda => "cuda",
    };
    let is_free = *IS_FREE.get_or_init(|| std::env::var_os(VARIABLE).is_none());
    if is_free && std::env::var_os(VARIABLE).is_none_or(|now| now != name) {
        // SAFETY: no other thread may access the environment without std's lock. Code of this project and burn access it
        // through `std::env` only; drivers of GPUs, which are C code, have mostly not been started when this is set.
        unsafe { std::env::set_var(VARIABLE, name) };
    }
}
