//! This executable as the tools that evcxr calls. evcxr asks `rustup which cargo`, and runs that cargo for every
//! cell; this `rustup` and this `cargo` are links to our executable.
//!
//! The real cargo takes as long to find out that only the cell has changed as rustc takes to compile it. So the
//! first cell goes through the real cargo, and the [wrapper](super::wrapper) records how it calls rustc; all other
//! cells, also those of later kernels, are compiled by the [recorded call](super::rustc_call) until the manifest
//! changes (`:dep`).

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use stratoscope_os::environment;

use super::compiler;
use super::layout;
use super::rustc_call::{RecordedCall, Step};
use super::settings::DriverSettings;

/// The name under which evcxr calls us as cargo.
const CARGO: &str = "stratoscope-cargo";
/// The name under which evcxr asks us where cargo and rustc are.
const RUSTUP: &str = "rustup";
/// The folder, in the private one, that holds [`RUSTUP`] and comes first in `PATH`.
const FOLDER: &str = "bin";

/// Makes the links in the private folder. rust-analyzer asks the `rustc` that PATH finds, which would be
/// rustup's proxy.
pub fn install(home: &Path, executable: &Path, rustc: &Path) -> io::Result<()> {
    fs::create_dir_all(home.join(FOLDER))?;
    symlink(executable, home.join(CARGO))?;
    symlink(rustc, home.join(FOLDER).join("rustc"))?;
    symlink(executable, home.join(FOLDER).join(RUSTUP))
}

/// What `PATH` has to begin with, so that evcxr finds our `rustup`.
pub fn folder(home: &Path) -> PathBuf {
    home.join(FOLDER)
}

/// Runs as one of the tools if that is the name it was called by.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let arguments: Vec<OsString> = arguments.collect();
    let result = match name.file_name()?.to_str()? {
        CARGO => cargo(name.parent()?, &arguments),
        // Found by its name alone, so it does not say where it lies.
        RUSTUP => rustup(&layout::chosen()?, &arguments),
        _ => return None,
    };
    Some(result.unwrap_or_else(|error| {
        eprintln!("{}: {error}", name.display());
        ExitCode::FAILURE
    }))
}

/// Answers `which cargo` and `which rustc`; everything else is for the real one.
fn rustup(home: &Path, arguments: &[OsString]) -> io::Result<ExitCode> {
    let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let path = match words[..] {
        ["which", "cargo"] => home.join(CARGO),
        ["which", "rustc"] => DriverSettings::read(home)?.rustc,
        _ => {
            let mut real = Command::new(RUSTUP);
            environment::clean_env(&mut real).current_dir(compiler::ROOT);
            return Err(real.args(arguments).exec());
        }
    };
    writeln!(io::stdout(), "{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

fn cargo(home: &Path, arguments: &[OsString]) -> io::Result<ExitCode> {
    let settings = DriverSettings::read(home)?;
    let step = arguments.iter().find_map(|word| Step::of_cargo(word));
    if let Some(step) = step
        && let Some(call) = RecordedCall::read(&settings, step)
        && call.holds(home)
    {
        return call.repeat(step, home, &settings);
    }
    // What takes minutes ends with the kernel.
    // SAFETY: a plain system call on our own process; failure changes nothing.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut command = compiler::cargo(&settings.toolchain, Some(&layout::cells(home)), arguments);
    if step.is_some() {
        // What evcxr repeats in the kernel's terminal otherwise is of no use there.
        command.arg("--quiet");
    }
    Err(command.exec())
}
