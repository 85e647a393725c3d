//! The Python environment of Jupyter.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The file beside this executable that names the environment the kernel was installed for. Programs outside of a
/// notebook look for checkpoints there (`src/bert/src/source/environment.rs`), in whichever shell they are started.
const RECORD: &str = "stratoscope-python";

/// The variables of an activated environment.
const ACTIVE: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// The prefix (`sys.prefix`) of the active environment, otherwise of the one that the kernel was installed for, otherwise
/// of the first Python on `PATH`. `None`: there is no Python.
pub fn prefix() -> Option<PathBuf> {
    let known = active().or_else(recorded).or_else(of_wheel);
    known.or_else(|| {
        ["python3", "python"].iter().find_map(|python| {
            evaluate(Path::new(python), "import sys; print(sys.prefix)").map(PathBuf::from)
        })
    })
}

/// The environment that this shell has activated.
fn active() -> Option<PathBuf> {
    let of_variable = |name| std::env::var_os(name).map(PathBuf::from);
    let mut folders = ACTIVE.into_iter().filter_map(of_variable);
    folders.find(|folder| interpreter(folder).is_some())
}

/// The environment that pip installed this executable into.
fn of_wheel() -> Option<PathBuf> {
    let package = stratoscope_compile::packaged::here()?;
    let prefix = package.prefix();
    interpreter(prefix).map(|_| prefix.to_owned())
}

/// The environment that the kernel was installed for.
pub fn recorded() -> Option<PathBuf> {
    let text = std::fs::read_to_string(record_file()?).ok()?;
    let prefix = PathBuf::from(text.trim_end_matches('\n'));
    let is_one = prefix.is_absolute() && interpreter(&prefix).is_some();
    is_one.then_some(prefix)
}

/// Records that environment. Where the executable's folder is not writable, only the kernel spec names it.
pub fn record(prefix: &Path) {
    if let Some(file) = record_file() {
        let _ = std::fs::write(file, format!("{}\n", prefix.display()));
    }
}

/// Removes that record.
pub fn forget() {
    if let Some(file) = record_file() {
        let _ = std::fs::remove_file(file);
    }
}

fn record_file() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    Some(executable.parent()?.join(RECORD))
}

/// The interpreter of an environment.
pub fn interpreter(prefix: &Path) -> Option<PathBuf> {
    let candidates = ["bin/python3", "bin/python"].map(|name| prefix.join(name));
    candidates.into_iter().find(|path| path.is_file())
}

/// The output of a line of Python, without the line end; `None` when it fails.
pub fn evaluate(interpreter: &Path, code: &str) -> Option<String> {
    let mut python = Command::new(interpreter);
    // In a folder whose files cannot shadow Python modules.
    python.current_dir("/").args(["-c", code]);
    let output = python.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim_end().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The version of an installed distribution; `None`: it is not installed there.
pub fn package_version(interpreter: &Path, package: &str) -> Option<String> {
    let code = format!("import importlib.metadata as m; print(m.version('{package}'))");
    evaluate(interpreter, &code)
}
