//! The Python environment that Jupyter lives in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The prefix (`sys.prefix`) of the environment: that of `VIRTUAL_ENV`, else that of the Python
/// which `PATH` finds first. `None`: there is no Python.
pub fn prefix() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from)
        && interpreter(&folder).is_some()
    {
        return Some(folder);
    }
    let answer = evaluate(Path::new("python3"), "import sys; print(sys.prefix)");
    answer
        .or_else(|| evaluate(Path::new("python"), "import sys; print(sys.prefix)"))
        .map(PathBuf::from)
}

/// The interpreter of an environment.
pub fn interpreter(prefix: &Path) -> Option<PathBuf> {
    let candidates = ["bin/python3", "bin/python"].map(|name| prefix.join(name));
    candidates.into_iter().find(|path| path.is_file())
}

/// What a line of Python prints, without the line's end; `None` when it fails.
pub fn evaluate(interpreter: &Path, code: &str) -> Option<String> {
    let output = Command::new(interpreter).args(["-c", code]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim_end().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The version of an installed distribution; `None`: it is not installed there.
pub fn package_version(interpreter: &Path, package: &str) -> Option<String> {
    let code = format!("import importlib.metadata as m; print(m.version({package:?}))");
    evaluate(interpreter, &code)
}
