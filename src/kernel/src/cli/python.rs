//! The Python environment that Jupyter lives in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The file beside this executable with the root of the environment that the kernel was installed for:
/// programs that are started outside of a notebook look for checkpoints there
/// (`src/bert/src/source/environment.rs`), and the commands here know it in every shell.
const RECORD: &str = "stratoscope-python";

/// The environments that a shell has activated.
const ACTIVE: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// The prefix (`sys.prefix`) of the environment: the active one, else the one that the kernel was
/// installed for, else that of the Python which `PATH` finds first. `None`: there is no Python.
pub fn prefix() -> Option<PathBuf> {
    let known = active().or_else(recorded);
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

/// The environment that the kernel was installed for.
pub fn recorded() -> Option<PathBuf> {
    let text = std::fs::read_to_string(record_file()?).ok()?;
    let prefix = PathBuf::from(text.trim_end_matches('\n'));
    let is_one = prefix.is_absolute() && interpreter(&prefix).is_some();
    is_one.then_some(prefix)
}

/// Notes that environment. Where nobody may write beside the executable, the kernel spec has it alone.
pub fn record(prefix: &Path) {
    if let Some(file) = record_file() {
        let _ = std::fs::write(file, format!("{}\n", prefix.display()));
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

/// What a line of Python prints, without the line's end; `None` when it fails.
pub fn evaluate(interpreter: &Path, code: &str) -> Option<String> {
    let mut python = Command::new(interpreter);
    // In a folder where no file can pass for one of Python's modules.
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
