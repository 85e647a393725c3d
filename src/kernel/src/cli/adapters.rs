//! The GPUs that the drivers report. An installed driver does not imply a device: the Vulkan loader comes with Mesa's
//! software device, and NVIDIA's driver is installed on machines without a GPU.
//!
//! Drivers may crash, hang or print, so a process of its own queries them: this executable with the subcommand [`ROLE`],
//! which prints a line of JSON.

use std::ffi::{c_char, c_int, c_void};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::ptr::null;
use std::time::Duration;

use libloading::Library;
use serde::{Deserialize, Serialize};
use stratoscope_os::console::say;
use stratoscope_os::process::output_within;

use super::cuda;

/// The hidden subcommand.
pub const ROLE: &str = "adapters";
/// How long to wait for the drivers.
const LIMIT: Duration = Duration::from_secs(20);
/// The most adapters that are listed.
const MAX_DEVICES: u32 = 64;

/// What the drivers reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapters {
    /// The Vulkan loader is installed.
    pub has_vulkan: bool,
    /// Vulkan devices: the name, and whether it is a software device.
    pub vulkan: Vec<(String, bool)>,
    /// NVIDIA's driver is installed.
    pub has_cuda: bool,
    /// Its GPUs.
    pub cuda: Vec<String>,
}

/// Queries the drivers in a process. `None`: no answer.
pub fn find() -> Option<Adapters> {
    // Some drivers warn without a runtime folder.
    let runtime = stratoscope_os::temporary_folder::find()
        .ok()
        .and_then(|it| {
            let mut builder = tempfile::Builder::new();
            let builder = builder.permissions(fs::Permissions::from_mode(0o700));
            builder.tempdir_in(it.folder).ok()
        });
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg(ROLE);
    if let Some(runtime) = &runtime {
        command.env("XDG_RUNTIME_DIR", runtime.path());
    }
    let output = output_within(&mut command, LIMIT)?;
    // A driver may print lines of its own before it.
    let text = String::from_utf8_lossy(&output);
    serde_json::from_str(text.lines().last()?).ok()
}

/// The subcommand [`ROLE`].
pub fn run() -> anyhow::Result<std::process::ExitCode> {
    let vulkan = load(&["libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"]);
    let cuda = cuda::devices();
    let found = Adapters {
        has_vulkan: vulkan.is_some(),
        vulkan: vulkan
            .as_ref()
            .and_then(|library| vulkan_devices(library).ok())
            .unwrap_or_default(),
        has_cuda: cuda.is_some(),
        cuda: cuda.unwrap_or_default(),
    };
    say(&serde_json::to_string(&found)?);
    // Never unloaded: the drivers' own threads may still be running.
    std::mem::forget(vulkan);
    Ok(std::process::ExitCode::SUCCESS)
}

fn load(names: &[&str]) -> Option<Library> {
    names.iter().find_map(|name| {
        // SAFETY: loading runs the initializers of system drivers, which every program that uses the devices
        // runs.
        let library = unsafe { Library::new(name) };
        library.ok()
    })
}

/// `VkApplicationInfo`
#[repr(C)]
struct Application {
    kind: u32,
    next: *const c_void,
    name: *const c_char,
    version: u32,
    engine: *const c_char,
    engine_version: u32,
    api_version: u32,
}

/// `VkInstanceCreateInfo`
#[repr(C)]
struct Creation {
    kind: u32,
    next: *const c_void,
    flags: u32,
    application: *const Application,
    layers: u32,
    layer_names: *const *const c_char,
    extensions: u32,
    extension_names: *const *const c_char,
}

/// `VkPhysicalDeviceProperties`: the beginning, and room for the rest, which has 824 bytes in all.
#[repr(C, align(8))]
struct Properties {
    versions_and_ids: [u32; 4],
    kind: u32,
    name: [u8; 256],
    rest: [u8; 1024],
}

/// `VK_PHYSICAL_DEVICE_TYPE_CPU`
const IS_PROCESSOR: u32 = 4;

fn vulkan_devices(library: &Library) -> Result<Vec<(String, bool)>, libloading::Error> {
    type Create = unsafe extern "C" fn(*const Creation, *const c_void, *mut *mut c_void) -> c_int;
    type Enumerate = unsafe extern "C" fn(*mut c_void, *mut u32, *mut *mut c_void) -> c_int;
    type Describe = unsafe extern "C" fn(*mut c_void, *mut Properties);
    // SAFETY: Vulkan 1.0 defines these three functions with these signatures.
    let (create, enumerate, describe) = unsafe {
        (
            library.get::<Create>(b"vkCreateInstance")?,
            library.get::<Enumerate>(b"vkEnumeratePhysicalDevices")?,
            library.get::<Describe>(b"vkGetPhysicalDeviceProperties")?,
        )
    };
    let application = Application {
        kind: 0,
        next: null(),
        name: null(),
        version: 0,
        engine: null(),
        engine_version: 0,
        api_version: 1 << 22,
    };
    let creation = Creation {
        kind: 1,
        next: null(),
        flags: 0,
        application: &raw const application,
        layers: 0,
        layer_names: null(),
        extensions: 0,
        extension_names: null(),
    };
    let mut instance = std::ptr::null_mut();
    // SAFETY: the structures live through the call and name no layers and no extensions.
    if unsafe { create(&raw const creation, null(), &raw mut instance) } != 0 {
        return Ok(Vec::new());
    }
    let mut devices = [std::ptr::null_mut(); MAX_DEVICES as usize];
    let mut count = MAX_DEVICES;
    // SAFETY: the array has `count` elements. A status above 0 reports that there are more devices.
    if unsafe { enumerate(instance, &raw mut count, devices.as_mut_ptr()) } < 0 {
        return Ok(Vec::new());
    }
    let named = |device: &*mut c_void| {
        let mut properties = Properties {
            versions_and_ids: [0; 4],
            kind: 0,
            name: [0; 256],
            rest: [0; 1024],
        };
        // SAFETY: the device belongs to the instance, and `properties` is larger than what is written.
        unsafe { describe(*device, &raw mut properties) };
        (c_string(&properties.name), properties.kind == IS_PROCESSOR)
    };
    let found = devices.iter().take(count.min(MAX_DEVICES) as usize);
    Ok(found.map(named).collect())
}

fn c_string(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_say_is_read_behind_what_they_print() {
        let found = Adapters {
            has_vulkan: true,
            vulkan: vec![("llvmpipe".to_owned(), true)],
            ..Adapters::default()
        };
        let text = serde_json::to_string(&found).expect("is JSON");
        assert_eq!(
            serde_json::from_str::<Adapters>(&text).expect("reads"),
            found
        );
        assert_eq!(c_string(b"a\0b"), "a");
        assert!(std::mem::size_of::<Properties>() >= 824);
        assert_eq!(std::mem::offset_of!(Properties, name), 20);
    }
}
