//! The folder of the files: how much they take together.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How the name of a file ends.
pub(super) const EXTENSION: &str = "tokens";
/// How the name of a file ends that is being written.
pub(super) const NEW: &str = "new";
/// A file that nobody has written to for so long was left by a process that ended.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Removes what was used least recently, until there is room for so many bytes more. A file is used when it is written and
/// when it is read, which its time of modification says. Files that another process removes at the same time are no
/// problem, and a process that reads one goes on reading it.
pub(super) fn make_room(folder: &Path, bytes: u64, most: u64) {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let ends_with = |wanted: &str| path.extension().is_some_and(|it| it == wanted);
        if ends_with(EXTENSION) && metadata.is_file() {
            files.push((used, metadata.len(), path));
        } else if ends_with(NEW) && used.elapsed().is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(path);
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, of_file, path) in files {
        if total.saturating_add(bytes) <= most {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= of_file;
        }
    }
}
