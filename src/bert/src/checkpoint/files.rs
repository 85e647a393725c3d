//! Reads the files of a checkpoint, whose names come from the user or from the hub: never one that has no end, such as a
//! pipe or a device, and never one of another kind, such as the page of a web server.

use std::fs::{self, File, FileType};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use crate::problem;

/// How many bytes are read between two checks for an interrupt.
const PORTION: u64 = 16 << 20;
/// Bytes that show what a file is.
const BEGIN: usize = 256;

/// Whether something has this name, also a link that leads nowhere: reading it says what it is.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The text of a file of at most `largest` bytes.
///
/// # Errors
/// As [`read_bytes`]; SC0902 if it is not UTF-8.
pub(crate) fn read_text(path: &Path, largest: u64) -> Result<String> {
    let bytes = read_bytes(path, largest)?;
    String::from_utf8(bytes)
        .map_err(|_| problem::malformed(path, "it is not valid UTF-8 text".to_owned()))
}

/// The bytes of a regular file of at most `largest` bytes.
///
/// # Errors
/// As [`checked`]; SC0902 if it is larger or cannot be read, SC0520 if it is interrupted.
pub(crate) fn read_bytes(path: &Path, largest: u64) -> Result<Vec<u8>> {
    let length = checked(path)?;
    let unreadable = |error: std::io::Error| problem::unreadable(path, error.to_string());
    if length > largest {
        let reason = format!("it has {length} bytes, at most {largest} are expected");
        return Err(problem::unreadable(path, reason));
    }
    let length = length as usize;
    let mut bytes = Vec::with_capacity(length);
    let mut work = Work::begin(("reading", "read"), length, Unit::Bytes);
    let mut file = File::open(path).map_err(unreadable)?;
    loop {
        // The limit also holds if the file grows while it is read.
        let room = (largest + 1).saturating_sub(bytes.len() as u64);
        let mut portion = file.by_ref().take(room.min(PORTION));
        if portion.read_to_end(&mut bytes).map_err(unreadable)? == 0 {
            work.finished();
            return Ok(bytes);
        }
        work.reached(bytes.len())?;
    }
}

/// The length of a file that may be read: a regular one that does not begin like something else.
///
/// # Errors
/// SC0902 that says what the file is.
pub(super) fn checked(path: &Path) -> Result<u64> {
    let unreadable = |reason: String| problem::unreadable(path, reason);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_there(path) => {
            let reason = if path.is_symlink() {
                format!("it is a link that leads nowhere: {error}")
            } else {
                error.to_string()
            };
            return Err(unreadable(reason));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let fix = "give the folder of a complete checkpoint";
            return Err(problem::absent(path, fix));
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    if let Some(other) = other_than_file(metadata.file_type()) {
        return Err(unreadable(format!("it is {other}, not a regular file")));
    }
    let mut begin = Vec::with_capacity(BEGIN);
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let read = file.take(BEGIN as u64).read_to_end(&mut begin);
    read.map_err(|error| unreadable(error.to_string()))?;
    match foreign(&begin) {
        Some((reason, fix)) => Err(problem::foreign(path, reason, fix)),
        None => Ok(metadata.len()),
    }
}

/// What stands in a folder beside regular files.
fn other_than_file(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        return None;
    }
    Some(if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    })
}

/// What a file is that was stored under the name of another one, and what to do. Source: git-lfs v3 `docs/spec.md`.
fn foreign(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
    if begin.starts_with(POINTER) {
        return Some((
            "it is a Git LFS pointer, not the file that it stands for",
            "run `git lfs install` and `git lfs pull` in the repository, which fetch the files themselves",
        ));
    }
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let begin = begin.trim_ascii_start().to_ascii_lowercase();
    let is_page = [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| begin.starts_with(tag));
    is_page.then_some((
        "it is an HTML page, not the file",
        "download the file itself: its address on the hub has `/resolve/` where that of its page has `/blob/`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_kinds_are_recognized() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 133\n";
        for (begin, expected) in [
            (&pointer[..], Some("Git LFS pointer")),
            (b"\n  <!DOCTYPE html>\n<html>", Some("HTML page")),
            (b"\xef\xbb\xbf<HTML lang=\"en\">", Some("HTML page")),
            (b"{\"model_type\": \"bert\"}", None),
            (b"version", None),
            (b"", None),
        ] {
            let reason = foreign(begin).map(|(reason, _)| reason);
            match expected {
                Some(words) => assert!(reason.is_some_and(|it| it.contains(words)), "{reason:?}"),
                None => assert_eq!(reason, None),
            }
        }
    }
}
