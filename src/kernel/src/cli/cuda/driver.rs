//! NVIDIA's driver, the names of its devices, and its first device.

use std::ffi::{CStr, c_char, c_int};

use libloading::{Library, Symbol};

use super::{Wrong, wrong};

const NAME: &str = "libcuda.so.1";
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];
/// The oldest compute capability that NVRTC 13 compiles for: Turing.
const OLDEST: c_int = 75;

/// The driver, loaded and initialized.
pub struct Driver {
    library: Library,
    /// The version of CUDA up to which it loads kernels: 13050 is 13.5.
    pub version: c_int,
}

/// A device of the driver.
pub struct Device {
    /// The driver's handle.
    pub handle: c_int,
    name: String,
    /// 80 is 8.0.
    capability: c_int,
    memory: usize,
}

/// `13.5` of 13050.
pub fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

impl Driver {
    /// Its library, not initialized; `None` where it is not installed.
    pub fn open() -> Option<Self> {
        // SAFETY: loading runs the initializers of the driver, which every program that uses CUDA runs.
        let library = unsafe { Library::new(NAME) }.ok()?;
        Some(Self {
            library,
            version: 0,
        })
    }

    /// Loads and initializes it.
    pub fn load() -> Result<Self, Wrong> {
        type Version = unsafe extern "C" fn(*mut c_int) -> c_int;
        let Some(mut driver) = Self::open() else {
            return wrong(
                format!("{NAME} was not found"),
                "install NVIDIA's driver (Debian: `nvidia-driver`; in a container start it with `--gpus all`); \
                 `nvidia-smi` must list the GPU",
            );
        };
        let mut number = 0;
        // SAFETY: the driver API of CUDA defines the function with this signature; the version is written to a valid
        // pointer.
        unsafe {
            let version: Symbol<Version> = driver.function(b"cuDriverGetVersion")?;
            version(&raw mut number);
        }
        driver.version = number;
        driver.initialize()?;
        Ok(driver)
    }

    fn initialize(&self) -> Result<(), Wrong> {
        type Init = unsafe extern "C" fn(u32) -> c_int;
        // SAFETY: the driver API of CUDA defines the function with this signature; it requires 0.
        let status = unsafe {
            let init: Symbol<Init> = self.function(b"cuInit")?;
            init(0)
        };
        match status {
            0 => Ok(()),
            100 => wrong(
                "the driver is installed and has no device",
                "look for the GPU with `lspci | grep -i nvidia`; in a container start it with `--gpus all`",
            ),
            code => wrong(
                format!("the driver does not start: cuInit returned {code}"),
                "restart the machine; after an update the driver's module and its library must be of one version",
            ),
        }
    }

    /// A function of the driver.
    ///
    /// # Safety
    /// `T` must be the type of the function `name`.
    pub unsafe fn function<T>(&self, name: &[u8]) -> Result<Symbol<'_, T>, Wrong> {
        // SAFETY: by the caller's promise, `T` is the type of the function.
        unsafe { self.library.get(name) }.or_else(|_| {
            wrong(
                format!("{NAME} has no {}", String::from_utf8_lossy(name)),
                "install NVIDIA's driver again: its library is incomplete",
            )
        })
    }

    /// What was found, in words.
    pub fn text(&self) -> String {
        format!("{NAME}, CUDA {}", version_text(self.version))
    }

    /// The names of all devices that it describes. It needs no function but those of the first versions of CUDA.
    pub fn names(&self) -> Result<Vec<String>, Wrong> {
        type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
        self.initialize()?;
        let mut devices = 0;
        // SAFETY: the driver API of CUDA defines the function with this signature; the count is written to a valid
        // pointer.
        let code = unsafe {
            let count: Symbol<Count> = self.function(b"cuDeviceGetCount")?;
            count(&raw mut devices)
        };
        let devices = if code == 0 { devices } else { 0 };
        let names = (0..devices).filter_map(|index| self.handle_and_name(index).ok());
        Ok(names.map(|(_, name)| name).collect())
    }

    fn handle_and_name(&self, index: c_int) -> Result<(c_int, String), Wrong> {
        type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        let (mut handle, mut text) = (0, [0 as c_char; 256]);
        // SAFETY: names and signatures are those of the driver API; every pointer is to a live local of the type that
        // the function writes, and `text` keeps a terminating zero beyond the 255 bytes asked for.
        let (code, name) = unsafe {
            let get: Symbol<Get> = self.function(b"cuDeviceGet")?;
            let name: Symbol<Name> = self.function(b"cuDeviceGetName")?;
            let code = match get(&raw mut handle, index) {
                0 => name(text.as_mut_ptr(), 255, handle),
                code => code,
            };
            (
                code,
                CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned(),
            )
        };
        described(code)?;
        Ok((handle, name))
    }

    /// The first device.
    pub fn device(&self) -> Result<Device, Wrong> {
        type Memory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        let (handle, name) = self.handle_and_name(0)?;
        let (mut memory, mut numbers) = (0, [0; 2]);
        // SAFETY: names and signatures are those of the driver API; every pointer is to a live local of the type that
        // the function writes.
        let code = unsafe {
            let bytes: Symbol<Memory> = self.function(b"cuDeviceTotalMem_v2")?;
            let attribute: Symbol<Attribute> = self.function(b"cuDeviceGetAttribute")?;
            bytes(&raw mut memory, handle)
                .max(attribute(&raw mut numbers[0], CAPABILITY[0], handle))
                .max(attribute(&raw mut numbers[1], CAPABILITY[1], handle))
        };
        described(code)?;
        let device = Device {
            handle,
            name,
            capability: numbers[0] * 10 + numbers[1],
            memory,
        };
        if device.capability < OLDEST {
            return wrong(
                format!("{}: NVRTC compiles for 7.5 and newer", device.text()),
                "use `wgpu(0)`, which runs on this GPU through Vulkan",
            );
        }
        Ok(device)
    }
}

/// What is wrong where a function that describes the first device returned something else than 0.
fn described(code: c_int) -> Result<(), Wrong> {
    match code {
        0 => Ok(()),
        code => wrong(
            format!("the driver does not describe its first device (code {code})"),
            "restart the machine; `nvidia-smi` must list the GPU",
        ),
    }
}

impl Device {
    /// What was found, in words.
    pub fn text(&self) -> String {
        let (major, minor) = (self.capability / 10, self.capability % 10);
        let gigabytes = self.memory as f64 / (1_u64 << 30) as f64;
        format!(
            "cuda:0 is {}, compute capability {major}.{minor}, {gigabytes:.1} GiB",
            self.name
        )
    }

    /// What its kernels are compiled for: `sm_80`, and from 9.0 on with what this chip alone has, as burn does.
    pub fn architecture(&self) -> String {
        let suffix = if self.capability >= 90 { "a" } else { "" };
        format!("sm_{}{suffix}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_architectures_are_nvidias() {
        assert_eq!(version_text(13050), "13.5");
        assert_eq!(version_text(12090), "12.9");
        let device = |capability| Device {
            handle: 0,
            name: "A".to_owned(),
            capability,
            memory: 3 << 29,
        };
        assert_eq!(device(86).architecture(), "sm_86");
        assert_eq!(device(90).architecture(), "sm_90a");
        assert_eq!(
            device(80).text(),
            "cuda:0 is A, compute capability 8.0, 1.5 GiB"
        );
    }
}
