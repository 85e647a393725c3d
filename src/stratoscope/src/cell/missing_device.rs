//! burn's own names of devices, which cells may use (`Device::cuda(0)`), are checked by nobody: burn starts a device on a
//! thread of its own, which panics where there is none, and then the statement that waits for it.

use stratoscope_diagnostics::Diagnostic;
use stratoscope_strategy::cuda;

/// What the panic of a device's thread says where there is no such device.
const NO_CUDA: &str = "dynamically load the \"cuda\" shared library";

/// Whether the message of a panic says that there is no such device.
pub(super) fn is_meant(message: &str) -> bool {
    message.contains(NO_CUDA)
}

/// The diagnostic for a panic of a cell in which a thread of a device has panicked with this message.
pub(super) fn explain(elsewhere: &str) -> Option<Box<Diagnostic>> {
    is_meant(elsewhere).then(|| cuda(0).resolve().err())?
}
