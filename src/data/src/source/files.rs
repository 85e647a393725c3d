//! One file, or all files that a pattern names: `logs/*.csv`.

use std::fs::File;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::arrow::saved;
use super::raw::Format;
use crate::problem;

/// More files than this are not what a pattern was meant to name.
const MOST: usize = 10_000;
/// Signs of a pattern.
const SIGNS: [char; 3] = ['*', '?', '['];

/// The files that a path stands for: itself, those that a pattern names, or those of a folder of `save_to_disk`.
///
/// # Errors
/// SC0911 for a pattern that names no file, or is none; for a folder that has no rows.
pub(super) fn of(call: &str, format: Format, path: &Path) -> Result<Vec<PathBuf>> {
    match format {
        Format::Arrow if path.is_dir() => saved::files_of(call, path),
        _ => named(call, path),
    }
}

/// The bytes of some files.
pub(super) fn bytes(files: &[PathBuf]) -> usize {
    let sizes = files
        .iter()
        .map(|path| path.metadata().map_or(0, |it| it.len()));
    usize::try_from(sizes.sum::<u64>()).unwrap_or(usize::MAX)
}

/// Opens a file that has an end. A pipe waits for its writer and a device goes on for ever, beyond any interrupt.
///
/// # Errors
/// What the system says of the file, or what it is instead.
pub(super) fn open(path: &Path) -> std::result::Result<File, String> {
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a folder, not a file".to_owned());
    }
    if !metadata.is_file() {
        let reason = "it is no regular file but a device or a pipe: write its content to a file";
        return Err(reason.to_owned());
    }
    File::open(path).map_err(|error| error.to_string())
}

/// The kind of an address in place of a path: `https`.
fn address(path: &Path) -> Option<&str> {
    let (kind, _) = path.to_str()?.split_once("://")?;
    ["http", "https", "ftp", "s3", "gs", "hf", "az"]
        .contains(&kind)
        .then_some(kind)
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(SIGNS) && !path.exists()
}

/// The file of a path, or the files that a pattern names, in the order of their names.
///
/// # Errors
/// SC0911 for a pattern that names no file, or is none.
fn named(call: &str, path: &Path) -> Result<Vec<PathBuf>> {
    if let Some(address) = address(path) {
        let reason = "it is an address, and files are read from this machine";
        let fix = match address {
            "http" | "https" => format!(
                "download it first: `!curl -LO {}`, then read the file by its name",
                path.display()
            ),
            _ => "copy it to this machine first, then read the file by its name".to_owned(),
        };
        return Err(problem::unreadable_with(
            call,
            &path.to_string_lossy(),
            reason,
            &fix,
        ));
    }
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
    if let Some(skipped) = not_utf8(path) {
        return Err(unreadable(format!(
            "the name of `{skipped}` is no UTF-8, which no pattern finds: rename it"
        )));
    }
    files.sort();
    Ok(files)
}

/// A file that the pattern may mean, by its ending, and whose name is no UTF-8: a pattern leaves it out without a word.
fn not_utf8(pattern: &Path) -> Option<String> {
    let folder = pattern.parent().filter(|it| !it.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names = entries
        .flatten()
        .map(|entry| PathBuf::from(entry.file_name()));
    let mut names =
        names.filter(|name| name.to_str().is_none() && name.extension() == pattern.extension());
    names.next().map(|name| name.to_string_lossy().into_owned())
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
    if files.is_empty() {
        format!("`{name}` has no file")
    } else {
        let listed = format!("`{name}` has {}", text::names(&files, 8));
        match not_utf8(pattern) {
            Some(other) => format!(
                "{listed}; the name of `{other}` is no UTF-8, which no pattern finds: rename it"
            ),
            None => listed,
        }
    }
}
