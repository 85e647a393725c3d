//! What `devices()` returns: the devices of the machine with the default one among them, as a table.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::choice::{self, Choice};
use super::{DeviceInfo, list};
use crate::placement::bytes;

/// The titles of the columns of [`Devices`].
pub const COLUMNS: [&str; 7] = [
    "name",
    "backend",
    "kind",
    "memory",
    "16 bits",
    "default",
    "what it is",
];

/// The devices of this machine: the processor, the adapters of wgpu, the devices of CUDA. A machine without drivers
/// has only its processor.
#[derive(Clone, Debug)]
pub struct Devices {
    found: Vec<DeviceInfo>,
    /// The default device, or why there is none.
    choice: Result<Arc<Choice>>,
}

/// The devices of this machine, and which of them is the default one; the first call decides that.
pub fn devices() -> Devices {
    Devices {
        found: list(),
        choice: choice::choice(),
    }
}

impl Devices {
    /// The default device and why it is that one.
    ///
    /// # Errors
    /// SC0712 where `STRATOSCOPE_DEVICE` names no device of this machine.
    pub fn default(&self) -> std::result::Result<&Choice, &Diagnostic> {
        self.choice.as_deref().map_err(AsRef::as_ref)
    }

    /// The rows of the table, under [`COLUMNS`]: a device each, then the kinds of which there is none.
    pub fn rows(&self) -> Vec<[String; 7]> {
        let verdict = |device: &DeviceInfo| match &self.choice {
            Ok(choice) => choice.verdict(device),
            Err(problem) => format!("none: {}", problem.message),
        };
        let mut rows: Vec<_> = self
            .found
            .iter()
            .map(|device| row(device, verdict(device)))
            .collect();
        let absent = self.choice.iter().flat_map(|choice| choice.absent());
        for (kind, reason) in absent {
            // The device files are not the whole truth: a software adapter has none.
            if self.found.iter().all(|device| device.backend != kind) {
                let blank = String::new;
                let no = format!("no: {reason}");
                let kind = kind.prefix().to_owned();
                rows.push([
                    "–".to_owned(),
                    kind,
                    "not there".to_owned(),
                    blank(),
                    blank(),
                    no,
                    blank(),
                ]);
            }
        }
        rows
    }
}

fn row(device: &DeviceInfo, verdict: String) -> [String; 7] {
    let kind = match device.software {
        true => "software: runs on the processor",
        false => "physical",
    };
    let memory = device.memory_bytes;
    let cores = device.cores.map(|cores| text::count(cores, "core"));
    let parts = [
        Some(device.description.clone()),
        cores,
        Some(device.driver.clone()),
    ];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    [
        device.name.clone(),
        device.backend.word().to_owned(),
        kind.to_owned(),
        memory.map_or_else(|| "unknown".to_owned(), bytes),
        device.sixteen_bits.words().to_owned(),
        verdict,
        parts.collect::<Vec<_>>().join(", "),
    ]
}

impl Deref for Devices {
    type Target = [DeviceInfo];

    fn deref(&self) -> &Self::Target {
        &self.found
    }
}

impl<'a> IntoIterator for &'a Devices {
    type Item = &'a DeviceInfo;
    type IntoIter = std::slice::Iter<'a, DeviceInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.iter()
    }
}

impl IntoIterator for Devices {
    type Item = DeviceInfo;
    type IntoIter = std::vec::IntoIter<DeviceInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

impl fmt::Display for Devices {
    /// A device a line, with whether it is the default one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for [name, _, kind, memory, _, default, what] in self.rows() {
            writeln!(f, "{name:<7} {kind}, {memory}, {what}; default: {default}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{BackendKind, SixteenBits};

    #[test]
    fn every_device_says_what_it_is() {
        let info = DeviceInfo {
            name: "wgpu:0".to_owned(),
            backend: BackendKind::Wgpu,
            description: "llvmpipe".to_owned(),
            driver: "Vulkan".to_owned(),
            software: true,
            cores: None,
            memory_bytes: None,
            sixteen_bits: SixteenBits::Float16,
        };
        let software = "software: runs on the processor";
        let [name, backend, kind, memory, bits, default, what] = row(&info, "no".to_owned());
        assert_eq!(
            [name, backend, kind, memory],
            ["wgpu:0", "wgpu", software, "unknown"]
        );
        assert_eq!([bits, default, what], ["float16", "no", "llvmpipe, Vulkan"]);
    }

    #[test]
    fn one_device_is_the_default() {
        let devices = devices();
        let rows = devices.rows();
        let defaults = rows.iter().filter(|row| row[5].starts_with("yes: "));
        assert_eq!(defaults.count(), 1, "{devices}");
        let others = rows.iter().filter(|row| row[5].starts_with("no: ")).count();
        assert_eq!(others + 1, rows.len(), "{devices}");
    }
}
