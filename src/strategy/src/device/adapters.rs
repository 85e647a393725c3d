//! The adapters that wgpu finds. They are listed through wgpu itself, which starts no compute
//! queue, and numbered as burn numbers them.

use std::future::Future;
use std::panic;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use burn::tensor::DeviceKind as BurnKind;
use wgpu::{AdapterInfo, Backend, Backends, DeviceType, Features, Instance, InstanceDescriptor};

use super::{BackendKind, DeviceInfo, SixteenBits, processor};

/// Why there is no adapter.
pub(super) const NONE: &str = "no Vulkan, Metal, Direct3D 12 or OpenGL driver was found";

/// An adapter, and burn's name for it.
#[derive(Clone, Debug)]
pub(super) struct Adapter {
    pub info: DeviceInfo,
    pub burn: BurnKind,
    /// Bytes of the largest buffer that a kernel can use. burn's runtime asks for all that the adapter offers.
    pub largest_buffer: u64,
}

/// The graphics interfaces in the order in which burn's runtime tries them.
const INTERFACES: [Backends; 4] = [
    Backends::METAL,
    Backends::VULKAN,
    Backends::DX12,
    Backends::GL,
];

/// The adapters of the first interface that has a GPU, or else of the first that has anything:
/// the choice burn's runtime makes when it is asked for a device.
pub(super) fn adapters() -> &'static [Adapter] {
    static ADAPTERS: OnceLock<Vec<Adapter>> = OnceLock::new();
    ADAPTERS.get_or_init(|| {
        let mut software_only = Vec::new();
        for interface in INTERFACES {
            // A broken driver may panic; it has no adapter then.
            let found = panic::catch_unwind(|| probe(interface)).unwrap_or_default();
            if found
                .iter()
                .any(|(info, _)| info.device_type != DeviceType::Cpu)
            {
                return number(found);
            }
            if software_only.is_empty() {
                software_only = found;
            }
        }
        number(software_only)
    })
}

/// What an adapter offers.
struct Offers {
    /// Its shaders have float16.
    has_half: bool,
    /// Bytes of the largest buffer that a kernel can bind.
    largest_buffer: u64,
}

/// The adapters of an interface, each with what it offers.
fn probe(interface: Backends) -> Vec<(AdapterInfo, Offers)> {
    // Process-wide: some Vulkan loaders crash when instances are created and dropped on several threads.
    static INSTANCES: OnceLock<Instance> = OnceLock::new();
    let instance = INSTANCES.get_or_init(|| {
        Instance::new(InstanceDescriptor {
            backends: Backends::all(),
            ..InstanceDescriptor::new_without_display_handle()
        })
    });
    at_once(instance.enumerate_adapters(interface))
        .unwrap_or_default()
        .iter()
        .map(|adapter| {
            let limits = adapter.limits();
            let bound = limits.max_storage_buffer_binding_size;
            let offers = Offers {
                has_half: adapter.features().contains(Features::SHADER_F16),
                largest_buffer: bound.min(limits.max_buffer_size),
            };
            (adapter.get_info(), offers)
        })
        .collect()
}

/// The value of a future that is always ready, except in browsers.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// burn counts adapters of each type from 0.
fn number(adapters: Vec<(AdapterInfo, Offers)>) -> Vec<Adapter> {
    let (mut discrete, mut integrated, mut virtual_) = (0.., 0.., 0..);
    let next = |counter: &mut std::ops::RangeFrom<usize>| counter.next().unwrap_or_default();
    adapters
        .into_iter()
        .enumerate()
        .map(|(index, (info, offers))| {
            let burn = match info.device_type {
                DeviceType::DiscreteGpu => BurnKind::DiscreteGpu(next(&mut discrete)),
                DeviceType::IntegratedGpu => BurnKind::IntegratedGpu(next(&mut integrated)),
                DeviceType::VirtualGpu => BurnKind::VirtualGpu(next(&mut virtual_)),
                DeviceType::Cpu => BurnKind::Cpu,
                DeviceType::Other => BurnKind::DefaultDevice,
            };
            Adapter {
                info: describe(index, &info, offers.has_half),
                burn,
                largest_buffer: offers.largest_buffer,
            }
        })
        .collect()
}

fn describe(index: usize, adapter: &AdapterInfo, has_half: bool) -> DeviceInfo {
    let software = adapter.device_type == DeviceType::Cpu;
    let interface = match adapter.backend {
        Backend::Vulkan => "Vulkan",
        Backend::Metal => "Metal",
        Backend::Dx12 => "Direct3D 12",
        Backend::Gl => "OpenGL",
        Backend::BrowserWebGpu => "WebGPU",
        Backend::Noop => "no-op",
    };
    let driver = [interface, &adapter.driver, &adapter.driver_info]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    DeviceInfo {
        name: format!("wgpu:{index}"),
        backend: BackendKind::Wgpu,
        description: adapter.name.clone(),
        driver,
        software,
        cores: None,
        // wgpu does not report a GPU's memory; a software adapter uses the machine's.
        memory_bytes: software.then(|| processor::info().memory_bytes).flatten(),
        sixteen_bits: match has_half {
            true => SixteenBits::Float16,
            false => SixteenBits::None,
        },
    }
}
