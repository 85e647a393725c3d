//! Arrow's IPC files: the stream format, which Hugging Face's `datasets` keeps its data in (`*.arrow`), and the file format,
//! which is Feather's second version (`*.feather`) and what polars writes: a footer says where its messages begin.
//!
//! `arrow-ipc` decodes the messages, after they were found and checked here: its own readers go by the lengths that a file
//! states, and read the bodies of batches that are only counted. Source: Apache Arrow, "Serialization and Interprocess
//! Communication".

mod batches;
mod check;
mod messages;
mod saved;

use std::path::Path;

use stratoscope_diagnostics::Result;

use super::columnar::{Read, WholeFile};
use super::{Columns, files};
use crate::dataset::Dataset;

pub(super) use self::batches::look_through;
pub(crate) use self::saved::files_of;

const CALL: &str = "Dataset::arrow";
const DAMAGED: &str = "it is a damaged Arrow file";

/// Why a file that says something impossible is not read.
fn damaged<T>() -> Read<T> {
    Err(DAMAGED.to_owned())
}

impl Dataset {
    /// Reads an Arrow file: one of the cache of Hugging Face's `datasets` (the stream format), or of polars or Feather (the
    /// file format), compressed with LZ4 or zstd or not at all; or a folder of `save_to_disk`. Its columns decide what is made,
    /// as with [`Self::parquet`]. In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn arrow(path: impl AsRef<Path>) -> Result<Self> {
        let paths = files_of(CALL, path.as_ref())?;
        files::read_all(CALL, path.as_ref(), paths, |path| {
            let file = WholeFile::open(CALL, path, look_through)?;
            file.records().dataset(&file)
        })
    }

    /// [`Self::arrow`] of texts, with named columns.
    ///
    /// # Errors
    /// As [`Self::arrow`].
    pub fn arrow_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        let paths = files_of(CALL, path.as_ref())?;
        files::read_all(CALL, path.as_ref(), paths, |path| {
            let file = WholeFile::open(CALL, path, look_through)?;
            file.records().table(&file, columns)
        })
    }
}
