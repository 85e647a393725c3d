//! One kernel, loaded and run through the driver alone: what fails here fails whatever computes with the GPU.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use libloading::Symbol;

use super::driver::{Device, Driver};
use super::{Wrong, wrong};

/// With the headers that generated kernels include; it doubles numbers in float16, which is exact for these.
pub const SOURCE: &CStr = c"
#include <cuda_fp16.h>
#include <mma.h>
#include <cuda/barrier>
extern \"C\" __global__ void doubled(float *numbers, unsigned count) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) numbers[at] = __half2float(__float2half(numbers[at]) * __float2half(2.0f)) + 1.0f;
}";
const NAME: &CStr = c"doubled";
const COUNT: usize = 1024;
const THREADS: c_uint = 128;

type Handle = *mut c_void;

/// Loads the kernel, runs it on 1024 numbers and looks at them; what was found, in words.
pub fn run(driver: &Driver, device: &Device, ptx: &[u8]) -> Result<String, Wrong> {
    let given: Vec<f32> = (0..COUNT).map(|number| number as f32).collect();
    let mut numbers = given.clone();
    // SAFETY: the device is one of the driver's, and the PTX ends with a zero.
    unsafe { launch(driver, device, ptx, &mut numbers)? };
    let expected = given.iter().map(|number| number * 2.0 + 1.0);
    let differ = expected
        .zip(&numbers)
        .filter(|(expected, number)| expected != *number);
    match differ.count() {
        0 => Ok(format!("the kernel gave {COUNT} right numbers")),
        count => wrong(
            format!("the kernel ran, and {count} of {COUNT} numbers are wrong"),
            "the GPU or its driver is damaged: run NVIDIA's `dcgmi diag`, and update the driver",
        ),
    }
}

// The functions of the driver API: <https://docs.nvidia.com/cuda/cuda-driver-api/>.
type Retain = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
type Enter = unsafe extern "C" fn(Handle) -> c_int;
type Load = unsafe extern "C" fn(*mut Handle, *const c_void) -> c_int;
type Find = unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> c_int;
type Allocate = unsafe extern "C" fn(*mut u64, usize) -> c_int;
type Free = unsafe extern "C" fn(u64) -> c_int;
type Write = unsafe extern "C" fn(u64, *const c_void, usize, Handle) -> c_int;
type Read = unsafe extern "C" fn(*mut c_void, u64, usize, Handle) -> c_int;
type Wait = unsafe extern "C" fn(Handle) -> c_int;
type Sizes = [c_uint; 3];
type Launch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    *mut Handle,
    *mut Handle,
) -> c_int;

/// # Safety
/// `device` is a device of `driver`; `ptx` ends with a zero.
unsafe fn launch(
    driver: &Driver,
    device: &Device,
    ptx: &[u8],
    numbers: &mut [f32],
) -> Result<(), Wrong> {
    let bytes = std::mem::size_of_val(numbers);
    let (mut context, mut module, mut kernel, mut memory) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: the driver API of CUDA defines the functions with these signatures. Every pointer is to a live local or to
    // the numbers, whose size goes with it; the kernel's parameters are a pointer and a 32-bit number, as declared.
    unsafe {
        let retain: Symbol<Retain> = driver.function(b"cuDevicePrimaryCtxRetain")?;
        succeeded(
            "cuDevicePrimaryCtxRetain",
            retain(&raw mut context, device.handle),
        )?;
        let enter: Symbol<Enter> = driver.function(b"cuCtxSetCurrent")?;
        succeeded("cuCtxSetCurrent", enter(context))?;
        let load: Symbol<Load> = driver.function(b"cuModuleLoadData")?;
        succeeded(
            "cuModuleLoadData",
            load(&raw mut module, ptx.as_ptr().cast()),
        )?;
        let find: Symbol<Find> = driver.function(b"cuModuleGetFunction")?;
        succeeded(
            "cuModuleGetFunction",
            find(&raw mut kernel, module, NAME.as_ptr()),
        )?;
        let allocate: Symbol<Allocate> = driver.function(b"cuMemAlloc_v2")?;
        succeeded("cuMemAlloc", allocate(&raw mut memory, bytes))?;
        let write: Symbol<Write> = driver.function(b"cuMemcpyHtoDAsync_v2")?;
        succeeded(
            "cuMemcpyHtoD",
            write(memory, numbers.as_ptr().cast(), bytes, null_mut()),
        )?;
        let launch: Symbol<Launch> = driver.function(b"cuLaunchKernel")?;
        let mut count = COUNT as c_uint;
        let mut parameters = [(&raw mut memory).cast::<c_void>(), (&raw mut count).cast()];
        let [x, y, z]: Sizes = [count.div_ceil(THREADS), 1, 1];
        let launched = launch(
            kernel,
            x,
            y,
            z,
            THREADS,
            1,
            1,
            0,
            null_mut(),
            parameters.as_mut_ptr(),
            null_mut(),
        );
        succeeded("cuLaunchKernel", launched)?;
        let read: Symbol<Read> = driver.function(b"cuMemcpyDtoHAsync_v2")?;
        succeeded(
            "cuMemcpyDtoH",
            read(numbers.as_mut_ptr().cast(), memory, bytes, null_mut()),
        )?;
        let wait: Symbol<Wait> = driver.function(b"cuStreamSynchronize")?;
        succeeded("cuStreamSynchronize", wait(null_mut()))?;
        let free: Symbol<Free> = driver.function(b"cuMemFree_v2")?;
        succeeded("cuMemFree", free(memory))
    }
}

/// `CUDA_ERROR_OUT_OF_MEMORY`, `…_UNSUPPORTED_PTX_VERSION`.
const OUT_OF_MEMORY: c_int = 2;
const UNSUPPORTED_PTX_VERSION: c_int = 222;

fn succeeded(call: &str, code: c_int) -> Result<(), Wrong> {
    let remedy = match code {
        0 => return Ok(()),
        OUT_OF_MEMORY => "end other programs that use the GPU: `nvidia-smi` lists them",
        UNSUPPORTED_PTX_VERSION => {
            "NVRTC is newer than the driver: update the driver, or install an older NVRTC"
        }
        _ => "restart the machine; if it stays, update NVIDIA's driver",
    };
    wrong(format!("{call} returned {code}"), remedy)
}
