//! A device as it is written in a cell (`cpu(0)`, `"cuda:1"`), and its resolution to a device of the machine.

use std::fmt;

use burn::tensor::Device;
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::{Diagnostic, Result, raise};

use super::{DeviceKind, LogicalDevice};
use super::{adapters, cuda_driver, names, processor, start};
use crate::problem;

/// A device by name, not yet resolved.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum DeviceSpec {
    /// The processor; there is only number 0.
    Cpu(usize),
    /// An adapter of wgpu.
    Wgpu(usize),
    /// A device of CUDA.
    Cuda(usize),
    /// A name given as text that is none of the above.
    Unknown(String),
    /// A device with a limit on its memory, in bytes.
    Limited(Box<DeviceSpec>, u64),
}

/// The processor: `cpu(0)`.
pub fn cpu(index: usize) -> DeviceSpec {
    DeviceSpec::Cpu(index)
}

/// An adapter that wgpu finds, in the order of [`super::devices`].
pub fn wgpu(index: usize) -> DeviceSpec {
    DeviceSpec::Wgpu(index)
}

/// An NVIDIA GPU, in the driver's order.
pub fn cuda(index: usize) -> DeviceSpec {
    DeviceSpec::Cuda(index)
}

/// TensorFlow's name for a GPU. Here GPUs are named `cuda(0)` or `wgpu(0)`.
///
/// # Panics
/// Always. A notebook shows it as SC0906, which names the right form.
#[doc(hidden)]
pub fn gpu(index: usize) -> DeviceSpec {
    raise(unknown(&format!("gpu:{index}")))
}

impl From<&str> for DeviceSpec {
    /// `"cuda:1"`, and TensorFlow's `"/cpu:0"`; upper and lower case are the same.
    fn from(text: &str) -> Self {
        let name = text.trim().trim_start_matches('/').to_ascii_lowercase();
        let name = name.strip_prefix("device:").unwrap_or(&name).to_owned();
        let (prefix, index) = name.rsplit_once(':').unwrap_or((&name, "0"));
        match (prefix, index.parse()) {
            ("cpu", Ok(index)) => Self::Cpu(index),
            ("wgpu", Ok(index)) => Self::Wgpu(index),
            ("cuda", Ok(index)) => Self::Cuda(index),
            _ => Self::Unknown(text.to_owned()),
        }
    }
}

impl From<&DeviceSpec> for DeviceSpec {
    fn from(spec: &DeviceSpec) -> Self {
        spec.clone()
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(index) => write!(f, "cpu:{index}"),
            Self::Wgpu(index) => write!(f, "wgpu:{index}"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
            Self::Unknown(name) => f.write_str(name),
            // A limit does not make it another device.
            Self::Limited(device, _) => device.fmt(f),
        }
    }
}

impl fmt::Debug for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl DeviceSpec {
    /// A logical device with at most this many megabytes (2²⁰ bytes) of the device's memory.
    /// TensorFlow: `LogicalDeviceConfiguration(memory_limit = …)`. A run holds it against its memory plan before
    /// each batch, and divides batches that pass it (SC0608); allocations themselves are not counted.
    #[must_use]
    pub fn memory_limit(self, megabytes: u64) -> Self {
        let bytes = megabytes.saturating_mul(1 << 20);
        match self {
            Self::Limited(device, _) => Self::Limited(device, bytes),
            device => Self::Limited(Box::new(device), bytes),
        }
    }

    /// Finds the device and starts its backend.
    ///
    /// # Errors
    /// SC0906 if the machine has no such device, SC0907 if its backend does not start.
    pub fn resolve(&self) -> Result<LogicalDevice> {
        let device = self.find()?;
        start::once(&device)?;
        Ok(device)
    }

    fn find(&self) -> Result<LogicalDevice> {
        let absent = |reason: &str| {
            problem::device_not_there(&self.to_string(), names(), reason, Vec::new())
        };
        let (info, burn) = match self {
            Self::Cpu(0) => (processor::info(), Device::flex()),
            Self::Cpu(_) => {
                let reason = "the processor is one device with all of its cores";
                return Err(absent(reason));
            }
            Self::Wgpu(index) => {
                let Some(adapter) = adapters::adapters().get(*index) else {
                    let reason = if adapters::adapters().is_empty() {
                        adapters::NONE
                    } else {
                        ""
                    };
                    return Err(absent(reason));
                };
                (adapter.info.clone(), Device::wgpu(adapter.burn.clone()))
            }
            Self::Cuda(index) => {
                let driver = cuda_driver::driver();
                let Some(info) = driver.devices.get(*index) else {
                    return Err(absent(&driver.reason));
                };
                (info.clone(), Device::cuda(*index))
            }
            Self::Limited(device, bytes) => return device.find()?.limited(*bytes),
            Self::Unknown(name) => return Err(unknown(name)),
        };
        let cores = info
            .cores
            .map(|n| stratoscope_render::text::count(n, "core"));
        let description = match (cores, info.software) {
            (Some(cores), _) => cores,
            (None, true) => format!("{} (software)", info.description),
            (None, false) => info.description,
        };
        Ok(LogicalDevice {
            id: 0,
            name: info.name,
            burn,
            kind: DeviceKind::Physical,
            backend: info.backend,
            capacity_bytes: info.memory_bytes,
            memory_limit: None,
            description,
            shared_by: 1,
        })
    }

    /// [`Self::resolve`] for the choice of the default device: the reason alone.
    pub(super) fn start(&self) -> std::result::Result<(), String> {
        let device = self.find().map_err(|problem| problem.one_line())?;
        start::attempt(&device)
    }
}

/// SC0906 for a name of no kind of device, with what was probably meant.
fn unknown(name: &str) -> Box<Diagnostic> {
    let (prefix, index) = name.rsplit_once(':').unwrap_or((name, "0"));
    let prefix = prefix.rsplit(['/', ':']).next().unwrap_or(prefix);
    let prefix = prefix.to_ascii_lowercase();
    let index: usize = index.parse().unwrap_or(0);
    let write = |kind: &str| format!("{kind}({index})");
    let (reason, instead) = match prefix.as_str() {
        "gpu" | "xla_gpu" | "vulkan" | "metal" => {
            let there = names();
            let mut known = vec!["cuda", "wgpu"];
            // Those that are there come first.
            known.sort_by_key(|kind| !there.contains(&format!("{kind}:{index}")));
            let reason = "a GPU is `cuda(N)`, of NVIDIA, or `wgpu(N)`, of any maker";
            (reason, known.into_iter().map(write).collect())
        }
        // TensorFlow's TPU is a strategy here.
        "tpu" => ("a device is `cpu:0`, `wgpu:N` or `cuda:N`", Vec::new()),
        other => {
            let near = similar(other, ["cpu", "wgpu", "cuda"]);
            let near = near.iter().map(|kind| write(kind));
            ("a device is `cpu:0`, `wgpu:N` or `cuda:N`", near.collect())
        }
    };
    problem::device_not_there(name, names(), reason, instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let check = |text: &str, spec: DeviceSpec| assert_eq!(DeviceSpec::from(text), spec);
        check("cpu:0", cpu(0));
        check("cpu", cpu(0));
        check("/CPU:0", cpu(0));
        check("wgpu:2", wgpu(2));
        check("cuda:1", cuda(1));
        check("tpu:0", DeviceSpec::Unknown("tpu:0".to_owned()));
        check("cuda:-1", DeviceSpec::Unknown("cuda:-1".to_owned()));
    }

    #[test]
    fn a_limit_makes_a_logical_device_of_that_size() {
        let resolve = |megabytes| cpu(0).memory_limit(megabytes).resolve();
        let device = resolve(64).expect("the processor has as much");
        assert_eq!(
            (device.name.as_str(), device.kind),
            ("cpu:0", DeviceKind::Logical)
        );
        assert_eq!(device.capacity_bytes, Some(64 << 20));
        assert_eq!(device.memory_limit, Some(64 << 20));
        assert!(
            device.description.ends_with("limited to 64.0 MiB"),
            "{}",
            device.description
        );
        // More than there is, is what there is.
        let all = cpu(0).resolve().expect("the processor").capacity_bytes;
        let device = resolve(u64::MAX).expect("the processor");
        assert_eq!(device.capacity_bytes.filter(|_| all.is_some()), all);
        assert_eq!(
            resolve(0).map_err(|error| error.code).err().as_deref(),
            Some("SC0915")
        );
    }

    #[test]
    fn a_device_that_is_not_there_is_a_diagnostic() {
        let check = |spec: DeviceSpec, message: &str| {
            let error = spec.resolve().expect_err("no machine has it");
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                ("SC0906", message)
            );
        };
        check(cpu(1), "there is no device cpu:1");
        check(wgpu(99), "there is no device wgpu:99");
        check(cuda(99), "there is no device cuda:99");
        check("tpu:0".into(), "there is no device tpu:0");
    }

    #[test]
    fn a_gpu_is_written_as_it_is_called_here() {
        let fixes = |spec: DeviceSpec| -> Vec<String> {
            let error = spec.resolve().expect_err("no such kind of device");
            assert_eq!(error.code, "SC0906");
            error.fixes.into_iter().map(|fix| fix.title).collect()
        };
        let meant = |kind: &str, index| format!("did you mean `{kind}({index})`?");
        for spec in ["gpu:1".into(), "/GPU:1".into(), "/device:GPU:1".into()] {
            let fixes = fixes(spec);
            assert!(fixes[..2].contains(&meant("cuda", 1)), "{fixes:?}");
            assert!(fixes[..2].contains(&meant("wgpu", 1)), "{fixes:?}");
            assert!(!fixes.iter().any(|fix| fix.contains("cpu(")), "{fixes:?}");
        }
        let raised = std::panic::catch_unwind(|| gpu(1));
        assert!(raised.is_err());
        let error = stratoscope_diagnostics::take_raised();
        assert_eq!(error.map(|error| error.code).as_deref(), Some("SC0906"));
        assert_eq!(fixes("cuad:0".into())[0], meant("cuda", 0));
        assert!(!fixes("tpu:0".into())[0].contains("did you mean"));
    }
}
