//! One file, or all files that a pattern names: `logs/*.csv`.

use std::fs::File;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::check::suggest;
use stratoscope_diagnostics::{Diagnostic, Result};
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
    if path.is_dir() {
        return Err(folder(call, path));
    }
    if !is_pattern(path) {
        return match path.symlink_metadata().is_err() {
            true => Err(missing(call, path)),
            false => Ok(vec![path.to_owned()]),
        };
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

/// SC0911 for a folder in place of a file: the pattern that names its files.
fn folder(call: &str, path: &Path) -> Box<Diagnostic> {
    let name = path.to_string_lossy();
    let name = name.trim_end_matches('/');
    let files = files_in(path).unwrap_or_default();
    let ending = |file: &String| Some(Path::new(file).extension()?.to_str()?.to_owned());
    let usual = call
        .split("::")
        .nth(1)
        .unwrap_or_default()
        .trim_end_matches("_with")
        .to_owned();
    let endings: Vec<String> = files.iter().filter_map(ending).collect();
    let fix = match endings
        .contains(&usual)
        .then_some(&usual)
        .or(endings.first())
    {
        Some(ending) => format!("name its files by a pattern: `{call}(\"{name}/*.{ending}\")?`"),
        None => format!("name a file; {}", neighbors(&path.join("*"))),
    };
    problem::unreadable_with(call, name, "it is a folder, not a file", &fix)
}

/// SC0911 for a file that is not there: one of a similar name, or those that are.
fn missing(call: &str, path: &Path) -> Box<Diagnostic> {
    let name = path.to_string_lossy();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = files_in(folder_of(path)).unwrap_or_default();
    let similar = suggest::similar(&wanted, files.iter().map(String::as_str));
    let fix = match similar.first() {
        Some(similar) => format!("did you mean `{}`?", folder.join(similar).display()),
        None => format!("check the path: {}", neighbors(path)),
    };
    let reason = match std::env::current_dir() {
        Ok(here) if path.is_relative() => {
            format!(
                "there is no such file; relative paths start at `{}`",
                here.display()
            )
        }
        _ => "there is no such file".to_owned(),
    };
    problem::unreadable_with(call, &name, &reason, &fix)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The names of the files in a folder, sorted; `None` where there is no such folder.
fn files_in(folder: &Path) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(folder).ok()?;
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = files.take(MOST).collect();
    files.sort();
    Some(files)
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
    let folder = folder_of(pattern);
    let name = folder.display();
    let Some(files) = files_in(folder) else {
        return format!("there is no folder `{name}`");
    };
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
