//! What this machine reaches, measured once in a process: FLOP/s by a large matrix product and bytes per second by a copy of a block
//! that no cache holds. Source: Williams, Waterman and Patterson 2009, "Roofline: an insightful visual performance model".

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use burn::tensor::{Device, Tensor};
use stratoscope_strategy::{BackendKind, LogicalDevice};

use stratoscope_report::profile::Roofline;

/// The best of this number of runs counts.
const RUNS: usize = 4;
/// The size of the product's matrices: it keeps the device busy and ends within a second.
const PROCESSOR_SIZE: usize = 768;
const GPU_SIZE: usize = 4096;
/// The block that is copied.
const BLOCK_BYTES: usize = 64 << 20;

/// Of the physical device: logical devices share it.
pub(super) fn roofline(device: &LogicalDevice) -> Roofline {
    // A fact about the machine, found once.
    static MEASURED: Mutex<Option<HashMap<String, Roofline>>> = Mutex::new(None);
    let name = match device.backend {
        BackendKind::Flex => device.backend.prefix().to_owned(),
        BackendKind::Wgpu | BackendKind::Cuda => device.name.clone(),
    };
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = measured.get_or_insert_default();
    let found = measured
        .entry(name.clone())
        .or_insert_with(|| measure(device, name));
    found.clone()
}

fn measure(device: &LogicalDevice, name: String) -> Roofline {
    let on_processor = device.backend == BackendKind::Flex;
    let size = match on_processor {
        true => PROCESSOR_SIZE,
        false => GPU_SIZE,
    };
    let flops = 2.0 * (size as f64).powi(3);
    let copied = 2.0 * BLOCK_BYTES as f64;
    let copy = match on_processor {
        true => copy_by_threads(),
        false => copy_on(&device.burn),
    };
    Roofline {
        flops_per_second: flops / product(&device.burn, size),
        bytes_per_second: copied / copy,
        device: name,
    }
}

/// The shortest time of a product, in seconds.
fn product(device: &Device, size: usize) -> f64 {
    let ones = Tensor::<2>::ones([size, size], device);
    shortest(|| {
        let product = ones.clone().matmul(ones.clone());
        // The read waits for the product. A device that fails says so in the run.
        let _ = product.slice([0..1, 0..1]).try_into_data();
    })
}

/// The shortest time of reading and writing a block on a device that computes by itself.
fn copy_on(device: &Device) -> f64 {
    let block = Tensor::<1>::ones([BLOCK_BYTES / size_of::<f32>()], device);
    shortest(|| {
        let copy = block.clone().mul_scalar(2.0_f32);
        let _ = copy.slice(0..1).try_into_data();
    })
}

/// The same on the processor, by as many threads as it has cores.
fn copy_by_threads() -> f64 {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let from = vec![1_u8; BLOCK_BYTES];
    let mut to = vec![0_u8; BLOCK_BYTES];
    let part = BLOCK_BYTES.div_ceil(threads);
    shortest(|| {
        thread::scope(|scope| {
            for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
                scope.spawn(move || to.copy_from_slice(from));
            }
        });
        std::hint::black_box(&to);
    })
}

fn shortest(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64()
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}
