//! The processor. burn's flex backend has one processor device for all cores.

use std::fs;
use std::sync::OnceLock;
use std::thread;

use super::{BackendKind, DeviceInfo, SixteenBits};

/// The processor as a device.
pub(super) fn info() -> DeviceInfo {
    // Cached: it does not change while the process runs.
    static INFO: OnceLock<DeviceInfo> = OnceLock::new();
    INFO.get_or_init(|| DeviceInfo {
        name: "cpu:0".to_owned(),
        backend: BackendKind::Flex,
        description: model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        driver: String::new(),
        software: false,
        cores: thread::available_parallelism().ok().map(usize::from),
        memory_bytes: memory(),
        sixteen_bits: sixteen_bits(),
    })
    .clone()
}

#[cfg(target_arch = "x86_64")]
fn sixteen_bits() -> SixteenBits {
    match std::arch::is_x86_feature_detected!("avx512bf16") {
        true => SixteenBits::Bfloat16,
        false => SixteenBits::None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn sixteen_bits() -> SixteenBits {
    SixteenBits::None
}

/// The processor's name, on Linux.
fn model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The machine's memory, or the container's limit if that is less.
fn memory() -> Option<u64> {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    match (physical_memory(), limit) {
        (Some(all), Some(limit)) => Some(all.min(limit)),
        (all, limit) => all.or(limit),
    }
}

#[cfg(unix)]
fn physical_memory() -> Option<u64> {
    // SAFETY: `sysconf` takes and returns integers, may be called from any thread, and accesses no memory of the
    // caller.
    let (pages, size) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    u64::try_from(pages)
        .ok()?
        .checked_mul(u64::try_from(size).ok()?)
        .filter(|&bytes| bytes > 0)
}

#[cfg(not(unix))]
fn physical_memory() -> Option<u64> {
    None
}
