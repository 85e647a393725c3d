//! The line that runs, in a file: when the process is killed, the kernel still knows where it was.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The variable that names the folder of the pipes, where the file is.
const FOLDER_VARIABLE: &str = "STRATOSCOPE_STREAMS";
/// The file's name: four bytes, the line in this machine's order, 0 for none.
const NAME: &str = "line";

/// This line of the cell runs from now on.
pub fn set(line: u32) {
    static LINE: OnceLock<Option<File>> = OnceLock::new();
    let file = LINE.get_or_init(|| {
        let folder = PathBuf::from(std::env::var_os(FOLDER_VARIABLE)?);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open(folder.join(NAME)).ok()
    });
    if let Some(file) = file {
        // Without it an error has no line, which is no reason to stop the cell.
        let _ = file.write_at(&line.to_ne_bytes(), 0);
    }
}
