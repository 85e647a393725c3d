//! This executable as rustc's wrapper: cargo calls it as `stratoscope-rustc RUSTC ARGUMENTS…` for
//! everything that evcxr builds. It gives the two halves of evcxr different views of one facade.
//!
//! - The crates of the view (see [`crate::view`]) exist for rust-analyzer. They are not compiled:
//!   cargo gets empty files in the places where it expects their outputs.
//! - `ctx`, the cell, is compiled against the real facade: `--extern stratoscope=…` names the
//!   prebuilt library and `-L` its dependencies. A few lines that evcxr generates around a cell
//!   are replaced by calls into the facade ([`super::generated`]); the cell's own lines keep their
//!   place and columns.
//! - Everything else, such as the crates of `:dep` and cargo's probes, is rustc's own business.
//!
//! It runs once a cell: nothing here may be slow. Where it finds its settings: beside the symbolic
//! link through which it is called (see [`DriverSettings`]).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use stratoscope_os::process::die_with_parent;

use super::arguments;
use super::attempts::Attempts;
use super::evcxr_contract as contract;
use super::invocation;
use super::rustc_call;
use super::rustc_json;
use super::settings::{DriverSettings, WRAPPER};
use super::state::State;

/// Runs as the wrapper if that is the name it was called by.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let link = PathBuf::from(arguments.next()?);
    if link.file_name()? != WRAPPER {
        return None;
    }
    let rustc = arguments.next()?;
    Some(match wrap(&link, &rustc, arguments.collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{WRAPPER}: {error}");
            ExitCode::FAILURE
        }
    })
}

fn wrap(link: &Path, rustc: &OsStr, mut arguments: Vec<OsString>) -> io::Result<ExitCode> {
    match arguments::value_of(&arguments, "--crate-name").and_then(OsStr::to_str) {
        None | Some(contract::PROBE_CRATE) => {}
        Some(name) => {
            let home = link.parent().unwrap_or(Path::new("."));
            let settings = DriverSettings::read(home)?;
            let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
            if Path::new(&manifest).starts_with(&settings.view) {
                pretend(name, &arguments, Path::new(&manifest))?;
                return Ok(ExitCode::SUCCESS);
            }
            if name != contract::CELL_CRATE {
                State::note_crate(home, name);
            }
            if name == contract::CELL_CRATE {
                rustc_call::record(&settings, home, rustc, &arguments);
                match arguments::prepare_cell(&settings, home, &mut arguments) {
                    Ok(source) => return compile_cell(home, rustc, &arguments, source.as_deref()),
                    Err(arguments::Problem::Replaced(error)) => {
                        eprintln!("{error}");
                        return Ok(ExitCode::FAILURE);
                    }
                    Err(arguments::Problem::Io(error)) => return Err(error),
                }
            }
        }
    }
    Err(Command::new(rustc).args(arguments).exec())
}

/// Runs rustc, passes on what it says, and leaves its warnings.
fn compile_cell(
    home: &Path,
    rustc: &OsStr,
    arguments: &[OsString],
    source: Option<&Path>,
) -> io::Result<ExitCode> {
    // evcxr takes every message of a check for an error.
    let is_check = arguments.iter().any(|it| it == contract::EMIT_OF_CHECK);
    let mut attempts = source.map(|it| Attempts::begin(home, it)).transpose()?;
    let (status, messages) = loop {
        let mut command = Command::new(rustc);
        command.args(arguments).stderr(Stdio::piped());
        let mut rustc = die_with_parent(&mut command).spawn()?;
        let mut messages = String::new();
        let status = invocation::listen(&mut rustc, |line| {
            messages += line;
            messages.push('\n');
            Ok(())
        })?;
        let is_refused = status.code().is_some() && !status.success();
        let goes_on = match &mut attempts {
            Some(attempts) if is_refused => attempts.again(&messages)?,
            _ => false,
        };
        if !goes_on {
            break (status, messages);
        }
    };
    for line in messages.lines() {
        if !is_check || !rustc_json::is_warning(line) {
            match &attempts {
                Some(attempts) => eprintln!("{}", attempts.as_of_evcxr(line)),
                None => eprintln!("{line}"),
            }
        }
    }
    if status.success() {
        State::leave_warnings(home, &rustc_json::warnings(&messages));
        return Ok(ExitCode::SUCCESS);
    }
    // cargo tells a compiler that was killed from one that refuses.
    match (status.code(), status.signal()) {
        (_, Some(signal)) => {
            // SAFETY: plain system calls on our own process.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            Ok(ExitCode::FAILURE)
        }
        (code, None) => Ok(ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))),
    }
}

/// Makes, in `folder`, what rustc takes for its own folder when it compiles a cell: the real one
/// without the shared standard library. The facade holds the standard library already, and there
/// must be one; rustc would link cells to the shared one wherever it finds it, and then refuse.
pub fn sysroot(real: &Path, folder: &Path) -> io::Result<()> {
    let targets = Path::new("lib/rustlib");
    for entry in fs::read_dir(real.join(targets))?.flatten() {
        let libraries = entry.path().join("lib");
        if !libraries.is_dir() {
            continue;
        }
        let target = folder.join(targets).join(entry.file_name());
        fs::create_dir_all(target.join("lib"))?;
        for library in fs::read_dir(&libraries)?.flatten() {
            let name = library.file_name();
            if Path::new(&name).extension() != Some(OsStr::new("so")) {
                symlink(library.path(), target.join("lib").join(name))?;
            }
        }
        // The linker that comes with rustc.
        let tools = entry.path().join("bin");
        if tools.is_dir() {
            symlink(tools, target.join("bin"))?;
        }
    }
    Ok(())
}

/// Gives cargo what it expects of a crate that is not compiled: files, and on standard error the
/// message that lets dependents start.
fn pretend(name: &str, arguments: &[OsString], manifest: &Path) -> io::Result<()> {
    let (Some(folder), Some(emit)) = (
        arguments::value_of(arguments, "--out-dir"),
        arguments
            .iter()
            .find_map(|argument| argument.to_str()?.strip_prefix("--emit=")),
    ) else {
        return Ok(());
    };
    let extra = arguments::codegen_option(arguments, "extra-filename").unwrap_or_default();
    let folder = Path::new(folder);
    let metadata = folder.join(format!("lib{name}{extra}.rmeta"));
    let library = folder.join(format!("lib{name}{extra}.rlib"));
    for kind in emit.split(',') {
        match kind {
            "dep-info" => {
                let info = folder.join(format!("{name}{extra}.d"));
                let source = manifest.join("Cargo.toml");
                let rule = format!("{}: {}\n", info.display(), source.display());
                fs::write(info, rule)?;
            }
            "metadata" => artifact(&metadata, kind)?,
            "link" => artifact(&library, kind)?,
            _ => {}
        }
    }
    Ok(())
}

fn artifact(path: &Path, kind: &str) -> io::Result<()> {
    fs::write(path, "")?;
    let message = serde_json::json!({
        "$message_type": "artifact", "artifact": path, "emit": kind,
    });
    writeln!(io::stderr(), "{message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_of_the_view_leaves_what_cargo_expects() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().as_os_str();
        let arguments: Vec<OsString> = [
            "--crate-name",
            "burn",
            "--emit=dep-info,metadata,link",
            "-C",
            "extra-filename=-12",
            "--out-dir",
        ]
        .map(OsString::from)
        .into_iter()
        .chain([out.to_owned()])
        .collect();
        pretend("burn", &arguments, folder.path()).expect("writes");
        for file in ["libburn-12.rmeta", "libburn-12.rlib", "burn-12.d"] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
    }
}
