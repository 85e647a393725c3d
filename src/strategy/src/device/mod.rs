//! Devices as they are named (`cpu(0)`), as the machine has them, and as a replica uses them.

mod adapters;
pub mod choice;
mod cuda_compiler;
mod cuda_driver;
pub mod kernels;
pub mod listed;
mod processor;
mod spec;
pub(crate) mod start;
pub mod table;
mod window;

use std::fmt;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use crate::problem;

pub use self::choice::{Choice, ChosenBy, choose, default_device};
pub use self::listed::{Devices, devices};
pub use self::spec::{DeviceSpec, cpu, cuda, gpu, wgpu};
pub use self::window::{DeviceTime, DeviceWindow};

/// The backend that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// The processor, through burn's flex backend.
    Flex,
    /// A GPU, or a software adapter, through wgpu.
    Wgpu,
    /// An NVIDIA GPU through CUDA.
    Cuda,
}

impl BackendKind {
    /// The prefix of its devices' names: `cpu`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Flex => "cpu",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// The name in a sentence: `CPU`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Flex => "CPU",
            Self::Wgpu => "wgpu",
            Self::Cuda => "CUDA",
        }
    }
}

/// Whether a device is real hardware of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A device of its own.
    Physical,
    /// A share of a physical device; memory and time are shared with the other shares.
    Logical,
    /// Simulated: its values are computed by the processor, its times are not measured.
    Simulated,
}

impl DeviceKind {
    /// The word on a badge: `logical`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Physical => "physical",
            Self::Logical => "logical",
            Self::Simulated => "simulated",
        }
    }
}

/// A device that a replica runs on.
#[derive(Clone, Debug)]
pub struct LogicalDevice {
    /// Its place among its strategy's devices, counted from 0.
    pub id: usize,
    /// `cpu:0`.
    pub name: String,
    /// The burn device, without autodiff.
    pub burn: Device,
    /// Physical, logical or simulated.
    pub kind: DeviceKind,
    /// The backend.
    pub backend: BackendKind,
    /// Memory it may use, in bytes; a logical device's equal share of the physical one.
    pub capacity_bytes: Option<u64>,
    /// The part of its memory that [`DeviceSpec::memory_limit`] declared, if it did.
    pub memory_limit: Option<u64>,
    /// What it is, in words: `8 cores`, `NVIDIA H200`.
    pub description: String,
    /// How many logical devices share the physical one; 1 for a device of its own.
    pub shared_by: usize,
}

impl LogicalDevice {
    /// The device on which gradients are recorded.
    pub fn training(&self) -> Device {
        self.burn.clone().autodiff()
    }

    /// As a cell writes it: `cpu(0)`. A share of a device is written as the device.
    pub fn in_code(&self) -> String {
        let (kind, number) = self.name.split_once(':').unwrap_or((&self.name, "0"));
        let digits = number.split(|it: char| !it.is_ascii_digit()).next();
        format!("{kind}({})", digits.unwrap_or("0"))
    }

    /// This device with a declared limit of its memory.
    ///
    /// # Errors
    /// SC0915 for a limit of 0.
    fn limited(self, bytes: u64) -> Result<Self> {
        if bytes == 0 {
            let expects = "a number of megabytes ≥ 1";
            return Err(problem::bad_size("memory_limit", 0, expects));
        }
        let bytes = self.capacity_bytes.map_or(bytes, |all| all.min(bytes));
        Ok(Self {
            kind: DeviceKind::Logical,
            capacity_bytes: Some(bytes),
            memory_limit: Some(bytes),
            description: format!(
                "{}, limited to {}",
                self.description,
                crate::placement::bytes(bytes)
            ),
            ..self
        })
    }
}

impl fmt::Display for LogicalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A device that the machine has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The name by which a cell refers to it: `wgpu:0`.
    pub name: String,
    /// The backend.
    pub backend: BackendKind,
    /// What it is: `NVIDIA H200`, `llvmpipe (LLVM 15.0.6, 256 bits)`.
    pub description: String,
    /// Driver and interface in words: `Vulkan, llvmpipe Mesa 22.3.6`; empty for a processor.
    pub driver: String,
    /// Whether it is a software adapter: the processor does the work.
    pub software: bool,
    /// Cores, for a processor.
    pub cores: Option<usize>,
    /// Memory in bytes, if it is known.
    pub memory_bytes: Option<u64>,
    /// The 16-bit numbers that it computes with.
    pub sixteen_bits: SixteenBits,
}

/// The 16-bit numbers that a device computes with by itself. The policies of mixed precision work on every device:
/// they emulate them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SixteenBits {
    /// None.
    #[default]
    None,
    /// float16.
    Float16,
    /// bfloat16.
    Bfloat16,
    /// Both.
    Both,
}

impl SixteenBits {
    /// In words: `float16`.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Both => "float16, bfloat16",
        }
    }
}

impl fmt::Display for DeviceInfo {
    /// One line: `wgpu:0  llvmpipe (software), Vulkan, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7} {}", self.name, self.description)?;
        if self.software {
            f.write_str(" (software: runs on the processor)")?;
        }
        if let Some(cores) = self.cores {
            write!(f, ", {}", stratoscope_render::text::count(cores, "core"))?;
        }
        if let Some(bytes) = self.memory_bytes {
            write!(f, ", {}", crate::placement::bytes(bytes))?;
        }
        if !self.driver.is_empty() {
            write!(f, ", {}", self.driver)?;
        }
        Ok(())
    }
}

/// The devices of this machine: the processor, the adapters of wgpu, the devices of CUDA. Listing them starts no
/// backend.
pub(crate) fn list() -> Vec<DeviceInfo> {
    let mut found = vec![processor::info()];
    found.extend(
        adapters::adapters()
            .iter()
            .map(|adapter| adapter.info.clone()),
    );
    found.extend(cuda_driver::driver().devices.iter().cloned());
    found
}

/// The name by which a cell refers to a burn device: `cpu:0`, `wgpu:1`.
pub fn name_of(device: &Device) -> String {
    if *device == Device::flex() {
        return processor::info().name;
    }
    let cuda = &cuda_driver::driver().devices;
    if let Some(index) = (0..cuda.len()).find(|&index| *device == Device::cuda(index)) {
        return cuda[index].name.clone();
    }
    let wgpu = adapters::adapters().iter();
    let mut found = wgpu.filter(|adapter| *device == Device::wgpu(adapter.burn.clone()));
    match found.next() {
        Some(adapter) => adapter.info.name.clone(),
        None => format!("{device:?}"),
    }
}

/// Bytes of the largest buffer that a kernel of a burn device can use, where it has a limit below its memory: an adapter of
/// wgpu reads a variable through one binding.
pub fn largest_buffer(device: &Device) -> Option<u64> {
    let device = device.clone().inner();
    // Listing the adapters starts drivers.
    if device == Device::flex() {
        return None;
    }
    let mut wgpu = adapters::adapters().iter();
    let found = wgpu.find(|adapter| device == Device::wgpu(adapter.burn.clone()));
    found.map(|adapter| adapter.largest_buffer)
}

/// The names of all devices, for messages.
pub(crate) fn names() -> Vec<String> {
    list().into_iter().map(|device| device.name).collect()
}
