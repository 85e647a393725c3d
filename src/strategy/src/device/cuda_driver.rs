//! The devices of CUDA, queried from the driver itself. burn cannot be queried: without a driver it panics
//! on a thread of its own at first use.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use libloading::{Library, Symbol};

use super::{BackendKind, DeviceInfo, SixteenBits};

/// The result of the query.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    /// Its devices; none without a driver.
    pub devices: Vec<DeviceInfo>,
    /// If there are none, the reason.
    pub reason: String,
}

/// The driver, queried once per process: the query loads a library that stays loaded.
pub(super) fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| match ask() {
        Ok(devices) if devices.is_empty() => Driver {
            devices,
            reason: "the CUDA driver has no device".to_owned(),
        },
        Ok(devices) => Driver {
            devices,
            reason: String::new(),
        },
        Err(reason) => Driver {
            devices: Vec::new(),
            reason,
        },
    })
}

const LIBRARIES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so.1", "libcuda.so"]
};

type Init = unsafe extern "C" fn(u32) -> c_int;
type Number = unsafe extern "C" fn(*mut c_int) -> c_int;
type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type Memory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`
const CAPABILITY: c_int = 75;

/// By the major number of the compute capability: float16 since 6, bfloat16 since 8.
fn sixteen_bits(capability: c_int) -> SixteenBits {
    match capability {
        8.. => SixteenBits::Both,
        6..8 => SixteenBits::Float16,
        _ => SixteenBits::None,
    }
}

fn ask() -> Result<Vec<DeviceInfo>, String> {
    let library = LIBRARIES
        .iter()
        // SAFETY: loading a library runs its initializers. These names are the CUDA driver's, which the system
        // installs; every CUDA program loads it this way.
        .find_map(|name| unsafe { Library::new(name) }.ok())
        .ok_or_else(|| format!("no CUDA driver ({}) was found", LIBRARIES[0]))?;
    // The driver stays loaded: burn loads the same file again when a device is used.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: names and signatures are those of the CUDA driver API (cuda.h), which is stable; every pointer is to a
    // live local of the type that the function writes, and `text` has room for the 255 bytes asked for and a
    // terminating zero, which is there from the beginning.
    unsafe {
        let init: Symbol<Init> = symbol(library, b"cuInit\0")?;
        let version: Symbol<Number> = symbol(library, b"cuDriverGetVersion\0")?;
        let count: Symbol<Number> = symbol(library, b"cuDeviceGetCount\0")?;
        let get: Symbol<Get> = symbol(library, b"cuDeviceGet\0")?;
        let name: Symbol<Name> = symbol(library, b"cuDeviceGetName\0")?;
        let memory: Symbol<Memory> = symbol(library, b"cuDeviceTotalMem_v2\0")?;

        // Shown in a table only: a driver without it works too.
        let attribute: Option<Symbol<Attribute>> = symbol(library, b"cuDeviceGetAttribute\0").ok();

        succeeded("cuInit", init(0))?;
        let (mut number, mut driver) = (0, 0);
        succeeded("cuDeviceGetCount", count(&mut number))?;
        succeeded("cuDriverGetVersion", version(&mut driver))?;
        let driver = format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10);

        let mut devices = Vec::new();
        for index in 0..number {
            let (mut handle, mut bytes, mut text) = (0, 0_usize, [0 as c_char; 256]);
            succeeded("cuDeviceGet", get(&mut handle, index))?;
            succeeded("cuDeviceGetName", name(text.as_mut_ptr(), 255, handle))?;
            succeeded("cuDeviceTotalMem", memory(&mut bytes, handle))?;
            let mut capability = 0;
            if let Some(attribute) = &attribute {
                attribute(&mut capability, CAPABILITY, handle);
            }
            devices.push(DeviceInfo {
                name: format!("cuda:{index}"),
                backend: BackendKind::Cuda,
                description: CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned(),
                driver: driver.clone(),
                software: false,
                cores: None,
                memory_bytes: u64::try_from(bytes).ok(),
                sixteen_bits: sixteen_bits(capability),
            });
        }
        Ok(devices)
    }
}

/// # Safety
/// `T` must be the type of the function `name`.
unsafe fn symbol<T>(library: &'static Library, name: &[u8]) -> Result<Symbol<'static, T>, String> {
    // SAFETY: by the caller's promise, `T` is the type of the function.
    unsafe { library.get(name) }.map_err(|error| format!("the CUDA driver is incomplete: {error}"))
}

fn succeeded(call: &str, code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        100 => Err("the CUDA driver has no device".to_owned()),
        code => Err(format!("the CUDA driver refused: {call} returned {code}")),
    }
}
