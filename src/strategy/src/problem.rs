//! The diagnostics of this crate, in its own words.

use stratoscope_diagnostics::rules::{BackendFailed, DeviceNotFound, InvalidSize};
use stratoscope_diagnostics::{Diagnostic, Rule};

pub(crate) fn bad_size(what: &str, given: impl ToString, expects: &str) -> Box<Diagnostic> {
    InvalidSize {
        what: what.to_owned(),
        given: given.to_string(),
        expects: expects.to_owned(),
        place: None,
    }
    .error()
}

pub(crate) fn device_not_there(
    device: &str,
    found: Vec<String>,
    reason: &str,
    instead: Vec<String>,
) -> Box<Diagnostic> {
    let reason = (!reason.is_empty()).then(|| reason.to_owned());
    DeviceNotFound {
        device: device.to_owned(),
        found,
        reason,
        instead,
    }
    .error()
}

pub(crate) fn backend_failed(device: &str, reason: impl ToString) -> Box<Diagnostic> {
    BackendFailed {
        device: device.to_owned(),
        reason: reason.to_string(),
    }
    .error()
}
