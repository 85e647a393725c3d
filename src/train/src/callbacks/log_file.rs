//! A file that a callback writes: a failure ends the log, not the run, and is said once.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::rules::WriteFailed;
use stratoscope_diagnostics::{Result, Rule};

/// The file of a log.
#[derive(Debug)]
pub(super) struct LogFile {
    callback: &'static str,
    path: PathBuf,
    /// `None` once it could not be written.
    file: Option<File>,
}

impl LogFile {
    /// A file that was opened, or could not be.
    ///
    /// # Errors
    /// SC0908 if it could not.
    pub(super) fn begin(
        callback: &'static str,
        path: &Path,
        file: io::Result<File>,
    ) -> Result<Self> {
        match file {
            Ok(file) => Ok(Self {
                callback,
                path: path.to_owned(),
                file: Some(file),
            }),
            Err(error) => {
                let rule = WriteFailed {
                    path: path.display().to_string(),
                    reason: error.to_string(),
                };
                Err(rule.error())
            }
        }
    }

    /// Writes to it, if nothing has failed so far.
    pub(super) fn write(&mut self, work: impl FnOnce(&mut File) -> io::Result<()>) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = work(file) {
            let path = self.path.display();
            eprintln!(
                "{}: `{path}` cannot be written any more: {error}; the run goes on without it",
                self.callback
            );
            self.file = None;
        }
    }
}
