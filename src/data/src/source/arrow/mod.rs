//! Arrow's IPC files: the stream format, which Hugging Face's `datasets` keeps its data in (`*.arrow`), and the file format,
//! which is Feather's second version (`*.feather`) and what polars writes: a footer says where its messages begin.
//!
//! `arrow-ipc` decodes the messages, after they were found and checked here: its own readers go by the lengths that a file
//! states, and read the bodies of batches that are only counted. Source: Apache Arrow, "Serialization and Interprocess
//! Communication".

mod batches;
mod check;
mod messages;
pub(super) mod saved;

use super::columnar::Read;

pub(super) use self::batches::look_through;

const DAMAGED: &str = "it is a damaged Arrow file";

/// Why a file that says something impossible is not read.
fn damaged<T>() -> Read<T> {
    Err(DAMAGED.to_owned())
}
