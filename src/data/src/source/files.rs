//! One file, or all files that a pattern names: `logs/*.csv`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use crate::dataset::Dataset;
use crate::problem;

/// More files than this are not what a pattern was meant to name.
const MOST: usize = 10_000;
/// Signs of a pattern.
const SIGNS: [char; 3] = ['*', '?', '['];

/// Reads a file by `one`; where the path is a pattern and no file has that name, each file that it names, in the order of
/// their names, as one data set.
///
/// # Errors
/// SC0911 for a pattern that names no file, or is none; what `one` ends with; SC0915 for files of different kinds.
pub(super) fn read(
    call: &str,
    path: &Path,
    one: impl Fn(&Path) -> Result<Dataset>,
) -> Result<Dataset> {
    let of_file = |path: &Path| {
        let mut data = one(path)?;
        let file: Arc<str> = path.to_string_lossy().into();
        for example in &mut data.examples {
            example.file = Some(Arc::clone(&file));
        }
        Ok(data)
    };
    if !is_pattern(path) {
        return of_file(path);
    }
    let files = named(call, path)?;
    let parts: Result<Vec<Dataset>> = files.iter().map(|file| of_file(file)).collect();
    Dataset::of_parts(parts?, path.to_string_lossy().into_owned())
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(SIGNS) && !path.exists()
}

/// The file of a path, or the files that a pattern names, in the order of their names.
///
/// # Errors
/// SC0911 for a pattern that names no file, or is none.
pub(crate) fn named(call: &str, path: &Path) -> Result<Vec<PathBuf>> {
    if !is_pattern(path) {
        return Ok(vec![path.to_owned()]);
    }
    let pattern = path.to_string_lossy();
    let unreadable = |reason: String| problem::unreadable(call, &pattern, None, reason);
    let found = glob::glob(&pattern)
        .map_err(|error| unreadable(format!("it is no pattern of names: {}", error.msg)))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for file in found {
        let file = file.map_err(|error| unreadable(error.to_string()))?;
        if file.is_file() {
            files.push(file);
        }
        if files.len() > MOST {
            let reason = format!("it names more than {} files", text::thousands(MOST));
            return Err(unreadable(reason));
        }
    }
    if files.is_empty() {
        return Err(unreadable(format!(
            "no file has such a name; {}",
            neighbors(path)
        )));
    }
    files.sort();
    Ok(files)
}

/// The files beside those that a pattern would name.
fn neighbors(pattern: &Path) -> String {
    let folder = match pattern.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = folder.display();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("there is no folder `{name}`");
    };
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = files.take(MOST).collect();
    files.sort();
    match files.is_empty() {
        true => format!("`{name}` has no file"),
        false => format!("`{name}` has {}", text::names(&files, 8)),
    }
}
