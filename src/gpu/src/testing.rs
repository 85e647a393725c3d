//! The GPU that tests of GPUs use: the first one of wgpu, for which Mesa's software device is enough, or the first one of
//! CUDA if `STRATOSCOPE_TEST_GPU` is `cuda`.

use burn::tensor::{Device, DeviceType};

/// Whether it is a GPU of CUDA.
pub fn is_cuda() -> bool {
    std::env::var_os("STRATOSCOPE_TEST_GPU").is_some_and(|name| name == "cuda")
}

/// The GPU, without autodiff; `None`, and a line that `tests/run.sh` counts, if there is none.
pub fn device() -> Option<Device> {
    let (kind, name) = match is_cuda() {
        true => (DeviceType::Cuda, "CUDA"),
        false => (DeviceType::Wgpu, "wgpu"),
    };
    let found = Device::enumerate(kind).into_iter().next();
    if found.is_none() {
        println!("skipped: {name} finds no device");
    }
    found
}
