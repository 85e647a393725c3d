//! What a device that fails is called: out of memory, lost, without a compiler for an operation, or failed otherwise.
//!
//! burn's runtimes report an error at the next read of what it has spoiled, as text; some of it they pass on as a panic.
//! Nothing else tells the kinds apart. The texts are those of cubecl 0.11 and wgpu 30 and of its drivers; a test holds
//! them against a real failed allocation.

use std::panic::{self, AssertUnwindSafe};

use stratoscope_diagnostics::rules::{BackendFailed, DeviceLost, KernelNotCompiled, OutOfMemory};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice};

use stratoscope_diagnostics::panics::words;

/// How an error of a device is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OutOfMemory,
    Lost,
    NotCompiled,
}

impl Kind {
    /// Texts in lower case, the more serious kind first: what follows a lost device looks like any other failure.
    const TEXTS: [(Self, &'static [&'static str]); 3] = [
        (
            Self::Lost,
            &[
                "devicepoisoned",
                "was poisoned",
                "device is lost",
                "device lost",
                "device was lost",
            ],
        ),
        (
            Self::OutOfMemory,
            &[
                "out of memory",
                "out of device memory",
                "out-of-memory",
                "outofmemory",
                "not enough memory",
                "can't allocate",
            ],
        ),
        (
            Self::NotCompiled,
            &[
                "compilation failed",
                "compilation error",
                "the device refused the",
            ],
        ),
    ];

    fn of(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let is_in = |known: &&str| text.contains(*known);
        let found = Self::TEXTS
            .iter()
            .find(|(_, texts)| texts.iter().any(is_in));
        found.map(|&(kind, _)| kind)
    }
}

/// The diagnostic of a device that failed while it computed: SC0607, SC0709, SC0710, else SC0907.
pub fn failed(device: &str, said: &str) -> Box<Diagnostic> {
    named(device, said, false).unwrap_or_else(|| unnamed(device, said))
}

/// The same of a device that failed while it changed the weights.
pub(crate) fn failed_update(device: &str, said: &str) -> Box<Diagnostic> {
    named(device, said, true).unwrap_or_else(|| unnamed(device, said))
}

/// SC0907.
fn unnamed(device: &str, said: &str) -> Box<Diagnostic> {
    let rule = BackendFailed {
        device: device.to_owned(),
        reason: line(said).to_owned(),
    };
    rule.error()
}

/// The diagnostic, where the kind of the failure is known.
fn named(device: &str, said: &str, is_update: bool) -> Option<Box<Diagnostic>> {
    let (device, reason) = (device.to_owned(), line(said).to_owned());
    Some(match Kind::of(said)? {
        Kind::OutOfMemory => OutOfMemory {
            device,
            work: String::new(),
            limit: None,
            reason: Some(reason),
            parts: Vec::new(),
            is_update,
            are_copies: false,
        }
        .error(),
        Kind::Lost => DeviceLost { device, reason }.error(),
        Kind::NotCompiled => KernelNotCompiled { device, reason }.error(),
    })
}

/// The line of a long error that says what happened: the first that names a kind of failure, else the first.
fn line(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim);
    let found = lines.find(|line| Kind::of(line).is_some());
    found
        .or_else(|| said.lines().map(str::trim).find(|line| !line.is_empty()))
        .unwrap_or("no reason was given")
}

/// Does what computes on the devices. A panic of a GPU's runtime that names a failure of the device is its diagnostic;
/// any other panic goes on. `is_update`: it changes the weights.
///
/// # Errors
/// SC0607, SC0709 or SC0710 for such a panic, and what `work` returns.
pub fn guarded<T>(
    devices: &[LogicalDevice],
    is_update: bool,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut gpus = devices
        .iter()
        .filter(|device| device.backend != BackendKind::Flex);
    let Some(first) = gpus.next() else {
        return work();
    };
    let name = match gpus.all(|other| other.name == first.name) {
        true => first.name.clone(),
        false => "a GPU".to_owned(),
    };
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let found = words(panic.as_ref()).and_then(|said| named(&name, said, is_update));
        match found {
            Some(problem) => Err(problem),
            None => panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use stratoscope_strategy::{AsStrategy, OneDeviceStrategy, cpu};

    use super::*;

    #[test]
    fn failures_are_recognized_by_what_runtimes_say() {
        let code = |said: &str| failed("wgpu:0", said).code;
        // As cubecl 0.11 writes them.
        let too_large = "An error happened during execution\nCaused by:\n  Several failures at once\nCaused by:\n  \
                         The bytes were never written (failure #32474, still claiming 2 buffer(s))\n  An IO error \
                         happened\nCaused by:\n  can't allocate buffer of size: 200000000\nNo backtrace available";
        let found = failed("wgpu:0", too_large);
        assert_eq!(found.code, "SC0607");
        assert_eq!(
            found.evidence[0].value,
            "can't allocate buffer of size: 200000000"
        );
        assert_eq!(code("wgpu error: Out of Memory"), "SC0607");
        assert_eq!(
            code("out of device memory allocating 64 bytes\n0: frame"),
            "SC0607"
        );
        assert_eq!(
            code("The device was poisoned during launch\nCaused by:\n  Out of memory"),
            "SC0709"
        );
        let refused = "A compilation error happened during launch\nCaused by:\n  WGSL compilation failed for kernel `k`: x";
        assert_eq!(code(refused), "SC0710");
        assert_eq!(code("\nthe bus is on fire\nat 0"), "SC0907");
    }

    #[test]
    fn a_panic_on_the_processor_stays_one() {
        let strategy = OneDeviceStrategy::new(cpu(0)).expect("the processor");
        let devices = strategy.strategy().replicas().to_vec();
        let work = || -> Result<()> { panic!("out of memory, says a layer of a user") };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| guarded(&devices, false, work)));
        assert!(outcome.is_err());
        assert_eq!(guarded(&devices, false, || Ok(1)), Ok(1));
    }
}
