//! NVRTC, which compiles every kernel at run time, and the headers that kernels include.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::time::Instant;

use libloading::{Library, Symbol};

use super::driver::{Device, Driver, version_text};
use super::{Wrong, wrong};

/// The names under which burn looks for it.
const NAMES: [&str; 4] = [
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
];
/// What generated kernels include, and the package of Python that brings it; all are part of the CUDA toolkit.
const HEADERS: [(&str, &str); 3] = [
    ("cuda_fp16.h", "nvidia-cuda-runtime"),
    ("crt/mma.h", "nvidia-cuda-crt"),
    ("cuda/barrier", "nvidia-cuda-cccl"),
];

/// NVRTC, loaded.
pub struct Nvrtc {
    library: Library,
    file: String,
    version: c_int,
}

/// A kernel in the form that the driver loads.
pub struct Compiled {
    /// PTX with a terminating zero.
    pub ptx: Vec<u8>,
    /// The time that it took.
    pub seconds: f64,
}

type Program = *mut c_void;

impl Nvrtc {
    /// Loads it. It must compile for the device, and not be newer than the driver, which would refuse its kernels.
    pub fn load(driver: &Driver, device: &Device) -> Result<Self, Wrong> {
        // SAFETY: the initializers of NVRTC have no requirements.
        let load = |name: &&str| unsafe { Library::new(*name) }.ok();
        let found = NAMES.iter().find_map(|name| Some((load(name)?, *name)));
        let wanted = version_text(driver.version);
        let Some((library, name)) = found else {
            return wrong(
                format!("NVRTC ({}) was not found", NAMES[1]),
                install(&wanted),
            );
        };
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: NVRTC defines it with this signature; both pointers are to live numbers.
        unsafe {
            let version: Symbol<Version> = function(&library, b"nvrtcVersion")?;
            version(&raw mut major, &raw mut minor);
        }
        let nvrtc = Self {
            library,
            file: mapped(name).unwrap_or_else(|| name.to_owned()),
            version: major * 1000 + minor * 10,
        };
        if nvrtc.version > driver.version {
            return wrong(
                format!(
                    "{} is newer than the driver, which loads kernels up to CUDA {wanted}",
                    nvrtc.text()
                ),
                format!(
                    "update NVIDIA's driver, or take an older NVRTC: {}",
                    install(&wanted)
                ),
            );
        }
        if !nvrtc.compiles_for(device)? {
            return wrong(
                format!(
                    "{} does not compile for {}",
                    nvrtc.text(),
                    device.architecture()
                ),
                install(&wanted),
            );
        }
        Ok(nvrtc)
    }

    /// What was found, in words.
    pub fn text(&self) -> String {
        format!("{}, CUDA {}", self.file, version_text(self.version))
    }

    fn compiles_for(&self, device: &Device) -> Result<bool, Wrong> {
        type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
        type List = unsafe extern "C" fn(*mut c_int) -> c_int;
        let mut count = 0;
        // SAFETY: NVRTC defines both functions with these signatures; the list has room for `count` numbers.
        let list = unsafe {
            let number: Symbol<Count> = function(&self.library, b"nvrtcGetNumSupportedArchs")?;
            number(&raw mut count);
            let mut list = vec![0; usize::try_from(count).unwrap_or(0)];
            let fill: Symbol<List> = function(&self.library, b"nvrtcGetSupportedArchs")?;
            fill(list.as_mut_ptr());
            list
        };
        let wanted = device.architecture();
        let plain = wanted.trim_start_matches("sm_").trim_end_matches('a');
        Ok(list.iter().any(|known: &c_int| known.to_string() == plain))
    }

    /// Compiles a program of one kernel.
    pub fn compile(
        &self,
        source: &CStr,
        architecture: &str,
        toolkit: &Path,
    ) -> Result<Compiled, Wrong> {
        let begun = Instant::now();
        let include = toolkit.join("include");
        let option = |text: String| CString::new(text).unwrap_or_default();
        let options = [
            option(format!("--gpu-architecture={architecture}")),
            option(format!("--include-path={}", include.display())),
            option(format!("--include-path={}", include.join("cccl").display())),
        ];
        let options = options.each_ref().map(|option| option.as_ptr());
        let none: Strings = null();
        let mut program: Program = std::ptr::null_mut();
        // SAFETY: NVRTC defines the functions with these signatures; the strings are terminated and live through the
        // calls, and the buffers have the sizes that NVRTC asks for.
        unsafe {
            let create: Symbol<Create> = function(&self.library, b"nvrtcCreateProgram")?;
            create(&raw mut program, source.as_ptr(), null(), 0, none, none);
            let compile: Symbol<Compile> = function(&self.library, b"nvrtcCompileProgram")?;
            let status = compile(program, options.len() as c_int, options.as_ptr());
            if status != 0 {
                let log =
                    self.text_of(program, [b"nvrtcGetProgramLogSize", b"nvrtcGetProgramLog"])?;
                let log = String::from_utf8_lossy(&log).replace('\0', "");
                let first = log.lines().find(|line| line.contains("error"));
                return wrong(
                    format!(
                        "a kernel with the headers of CUDA does not compile: {}",
                        first.unwrap_or("NVRTC gives no reason").trim()
                    ),
                    "let NVRTC and the headers in CUDA_PATH be of one version of CUDA",
                );
            }
            let ptx = self.text_of(program, [b"nvrtcGetPTXSize", b"nvrtcGetPTX"])?;
            Ok(Compiled {
                ptx,
                seconds: begun.elapsed().as_secs_f64(),
            })
        }
    }

    /// What two functions give: the first its size, the second the bytes.
    ///
    /// # Safety
    /// `names` are functions of NVRTC that take a program and a pointer to a size or to the bytes.
    unsafe fn text_of(&self, program: Program, names: [&[u8]; 2]) -> Result<Vec<u8>, Wrong> {
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Bytes = unsafe extern "C" fn(Program, *mut u8) -> c_int;
        // SAFETY: by the caller's promise; the buffer has the size that the first function gives.
        unsafe {
            let size: Symbol<Size> = function(&self.library, names[0])?;
            let bytes: Symbol<Bytes> = function(&self.library, names[1])?;
            let mut length = 0;
            size(program, &raw mut length);
            let mut buffer = vec![0; length];
            bytes(program, buffer.as_mut_ptr());
            Ok(buffer)
        }
    }
}

type Strings = *const *const c_char;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    Strings,
    Strings,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, Strings) -> c_int;

/// A function of NVRTC.
///
/// # Safety
/// `T` must be the type of the function `name`.
unsafe fn function<'a, T>(library: &'a Library, name: &[u8]) -> Result<Symbol<'a, T>, Wrong> {
    // SAFETY: by the caller's promise, `T` is the type of the function.
    unsafe { library.get(name) }.or_else(|_| {
        wrong(
            format!("NVRTC has no {}", String::from_utf8_lossy(name)),
            "install NVRTC again: its library is incomplete",
        )
    })
}

/// How NVRTC and its headers are installed for a driver that loads kernels up to this version of CUDA.
fn install(version: &str) -> String {
    let major: u32 = version
        .split('.')
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    if major < 13 {
        return format!(
            "install the CUDA toolkit {version} (or an older one) and set CUDA_PATH to its folder; NVIDIA's packages for Python \
             hold all headers in one folder from CUDA 13 on, which needs driver 580 or newer"
        );
    }
    let packages =
        ["nvrtc", "runtime", "crt"].map(|name| format!("'nvidia-cuda-{name}=={version}.*'"));
    format!(
        "`pip install {} nvidia-cuda-cccl`, then `export CUDA_PATH=…/site-packages/nvidia/cu13 LD_LIBRARY_PATH=$CUDA_PATH/lib`; \
         for notebooks `stratoscope install --env CUDA_PATH=… --env LD_LIBRARY_PATH=…`",
        packages.join(" ")
    )
}

/// The folder of the CUDA toolkit, as burn looks for it; its `include` must have the headers.
pub fn headers() -> Result<PathBuf, Wrong> {
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    let usual = || usual.into_iter().find(|folder| folder.exists());
    let nvcc = || Path::new("/usr/bin/nvcc").exists();
    let named = std::env::var_os("CUDA_PATH").map(PathBuf::from);
    let found = named
        .or_else(usual)
        .or_else(|| nvcc().then(|| PathBuf::from("/usr")));
    let remedy = "set CUDA_PATH to the folder of the CUDA toolkit, or to nvidia/cu13 in the site-packages of the Python that \
                  has NVIDIA's packages";
    let Some(folder) = found else {
        return wrong(
            "CUDA_PATH, the folder of the headers that kernels include, is not set",
            remedy,
        );
    };
    let include = folder.join("include");
    let lacks =
        |name: &str| !include.join(name).exists() && !include.join("cccl").join(name).exists();
    match HEADERS.iter().find(|(name, _)| lacks(name)) {
        None => Ok(folder),
        Some((name, package)) => wrong(
            format!("{name} is not in {}", include.display()),
            format!("`pip install {package}`, or {remedy}"),
        ),
    }
}

/// The path of a loaded library.
fn mapped(name: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let stem = name.split(".so").next()?.to_owned() + ".so";
    let mut paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let path = paths.find(|path| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.starts_with(&stem)
    })?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_drivers_get_another_instruction() {
        assert!(install("12.4").contains("toolkit 12.4"));
        let new = install("13.0");
        assert!(new.contains("'nvidia-cuda-nvrtc==13.0.*'") && new.contains("--env CUDA_PATH"));
    }
}
