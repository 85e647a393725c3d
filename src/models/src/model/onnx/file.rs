//! Writing the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::rules::WriteFailed;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_onnx::Model;

/// Writes a file beside the one that it replaces, and renames it: the old one survives a full disk. The folder is created if
/// necessary.
///
/// # Errors
/// SC0908.
pub(super) fn write(path: &Path, model: &Model, bytes: u64) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let outcome = filled(path, &unfinished, model, bytes);
    outcome.map_err(|error| {
        // If this fails too, nothing can be done; the first error is reported.
        let _ = std::fs::remove_file(&unfinished);
        let rule = WriteFailed {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        rule.error()
    })?;
    Ok(path.to_owned())
}

fn filled(path: &Path, unfinished: &Path, model: &Model, bytes: u64) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut out = Shown {
        file: BufWriter::new(File::create(unfinished)?),
        written: 0,
        work: Work::begin(("exporting", "exported"), bytes as usize, Unit::Bytes),
    };
    model.write_to(&mut out)?;
    out.flush()?;
    out.work.finished();
    std::fs::rename(unfinished, path)
}

/// A file that shows how far it is.
struct Shown {
    file: BufWriter<File>,
    written: usize,
    work: Work,
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written += count;
        self.work.shows(self.written);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
