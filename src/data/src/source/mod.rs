//! The sources of data sets: one file per format or collection. A reader gives the rows of a file as they stand in it
//! (`rows.rs`), the layout of its columns says what each is (`layout.rs`), and one pass checks them all and numbers the classes
//! (`pass.rs`). A data set keeps the rows of the pass; a stream keeps an `index.rs` by which any of them is read again.

mod arrow;
mod choices;
mod classes;
mod columnar;
mod columns;
mod conll;
mod csv;
mod debian;
mod encoding;
mod files;
mod foreign;
mod glue;
mod index;
mod jsonl;
mod layout;
mod lines;
mod one_hot;
mod parquet;
mod pass;
mod raw;
mod readers;
mod records;
mod row;
mod rows;
mod squad;
mod squad_rows;
mod values;

pub use columns::Columns;
pub use debian::{debian_entities, debian_pairs, debian_questions, debian_sections};
pub use glue::Glue;

pub(crate) use index::{BLOCK, Index, Names};
pub(crate) use raw::Format;

/// The largest file that is read. A data set is held in memory, so a larger file is refused before
/// the machine starts swapping.
const LARGEST_FILE_BYTES: u64 = 4 << 30;
