//! Writes the running line to a file, so that the kernel knows it after the process was killed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The environment variable with the folder of the pipes, which contains the file.
const FOLDER_VARIABLE: &str = "STRATOSCOPE_STREAMS";
/// The file's name. It holds four bytes, the line in native byte order; 0 for no line.
const NAME: &str = "line";

/// Sets the running line.
pub fn set(line: u32) {
    static LINE: OnceLock<Option<File>> = OnceLock::new();
    let file = LINE.get_or_init(|| {
        let folder = PathBuf::from(std::env::var_os(FOLDER_VARIABLE)?);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(folder.join(NAME)).ok()
    });
    if let Some(file) = file {
        // After an error of writing, reports have no line; the cell goes on.
        let _ = file.write_at(&line.to_ne_bytes(), 0);
    }
}
