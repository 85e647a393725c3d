//! The Python environment of this installation: the one with Jupyter and, if the setup installed it there, the
//! checkpoint. It is found wherever a program is started, in any shell.

use std::env;
use std::path::{Path, PathBuf};

/// Set by the kernel spec.
const SPEC: &str = "STRATOSCOPE_PYTHON_PREFIX";
/// The environments that a shell has activated.
const ACTIVE: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];
/// The file, beside the library, into which `stratoscope install` writes the environment's root.
const RECORD: &str = "stratoscope-python";
/// An example or a test lies one folder deeper than the library.
const DEPTH: usize = 2;
/// An upper limit for the length of a path.
const MOST_BYTES: u64 = 4096;

/// The roots of Python environments in the order of the search, each with where it comes from.
pub(super) fn known() -> Vec<(String, PathBuf)> {
    let recorded = recorded().map(|prefix| (RECORD.to_owned(), prefix));
    let of_variable = |name: &str| {
        let value = env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), PathBuf::from(value)))
    };
    let mut known: Vec<(String, PathBuf)> = Vec::new();
    let all = of_variable(SPEC).into_iter().chain(recorded);
    for (name, prefix) in all.chain(ACTIVE.into_iter().filter_map(of_variable)) {
        if known.iter().all(|(_, other)| *other != prefix) {
            known.push((name, prefix));
        }
    }
    known
}

/// The root of the environment where checkpoints are searched first. `None`: the one on `PATH`.
pub fn python_environment() -> Option<PathBuf> {
    let known = known().into_iter().map(|(_, prefix)| prefix);
    known.into_iter().find(|it| interpreter(it).is_some())
}

/// The interpreter of an environment.
pub(super) fn interpreter(prefix: &Path) -> Option<PathBuf> {
    let candidates = ["bin/python", "bin/python3"].map(|name| prefix.join(name));
    candidates.into_iter().find(|path| path.is_file())
}

fn recorded() -> Option<PathBuf> {
    let executable = env::current_exe().ok()?;
    let folders = executable.ancestors().skip(1).take(DEPTH);
    folders.into_iter().find_map(recorded_in)
}

/// The content of the record in a folder.
fn recorded_in(folder: &Path) -> Option<PathBuf> {
    let file = folder.join(RECORD);
    let metadata = std::fs::metadata(&file).ok()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let prefix = PathBuf::from(text.trim_end_matches('\n'));
    prefix.is_absolute().then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_one_absolute_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |text: &str, expected: Option<&str>| {
            std::fs::write(folder.path().join(RECORD), text).expect("writes");
            let found = recorded_in(folder.path());
            assert_eq!(found, expected.map(PathBuf::from), "{text:?}");
        };
        assert_eq!(recorded_in(folder.path()), None);
        check("/opt/a b/.venv\n", Some("/opt/a b/.venv"));
        check("relative\n", None);
        check("", None);
        check(&"/x".repeat(4096), None);
    }
}
