//! The first operation on a device. A backend that fails to start panics, on this thread or on one
//! of its own; this module turns the panic into a diagnostic.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use burn::tensor::{Device, Tensor};
use stratoscope_diagnostics::Result;

use super::{BackendKind, LogicalDevice, cuda_compiler, kernels};
use crate::problem;

/// Much longer than any start takes: the first kernel of a software adapter is compiled within seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts the device's backend if this process has not yet done so.
///
/// # Errors
/// SC0907, also for a device that failed to start before: the state of a backend after a failed start is undefined, so it
/// is not used again.
pub(super) fn once(device: &LogicalDevice) -> Result<()> {
    attempt(device).map_err(|reason| problem::backend_failed(&device.name, reason))
}

/// [`once`], with the reason alone.
pub(super) fn attempt(device: &LogicalDevice) -> std::result::Result<(), String> {
    // Process-wide, as the backends are.
    static STARTED: LazyLock<Mutex<HashMap<String, std::result::Result<(), String>>>> =
        LazyLock::new(Mutex::default);
    if device.backend == BackendKind::Flex {
        return Ok(());
    }
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = started.entry(device.name.clone()).or_insert_with(|| {
        if device.backend == BackendKind::Cuda {
            cuda_compiler::complete()?;
        }
        kernels::count();
        guarded({
            let device = device.burn.clone();
            move || first_operation(&device)
        })
    });
    outcome.clone()
}

/// One small sum, read back.
fn first_operation(device: &Device) -> std::result::Result<(), String> {
    let sum = Tensor::<1>::from_floats([1.0, 2.0, 3.0], device).sum();
    let data = sum.try_into_data().map_err(|error| error.to_string())?;
    match data.as_slice::<f32>() {
        Ok([sum]) if *sum == 6.0 => Ok(()),
        other => Err(format!("1 + 2 + 3 is 6, the device says {other:?}")),
    }
}

/// Runs on a thread of its own, with a limit; a panic is an error.
fn guarded(
    work: impl FnOnce() -> std::result::Result<(), String> + Send + 'static,
) -> std::result::Result<(), String> {
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let outcome = panic::catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(words(panic.as_ref())));
        // The receiver is gone only if the limit has passed.
        let _ = sender.send(outcome);
    };
    thread::Builder::new()
        .name("device-start".to_owned())
        .spawn(run)
        .map_err(|error| format!("no thread could be started: {error}"))?;
    match receiver.recv_timeout(LIMIT) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("it did not answer within {} s", LIMIT.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err("its thread ended without an answer".to_owned()),
    }
}

/// The first line of a panic's message.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked");
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_first_line() {
        assert_eq!(guarded(|| Ok(())), Ok(()));
        assert_eq!(guarded(|| Err("no".to_owned())), Err("no".to_owned()));
        let found = guarded(|| panic!("no libnvrtc.so\nsecond line"));
        assert_eq!(found, Err("no libnvrtc.so".to_owned()));
    }

    #[test]
    fn the_processor_adds() {
        assert_eq!(first_operation(&Device::flex()), Ok(()));
    }
}
