//! What a debugger needs to know of the cells.

use std::path::PathBuf;

/// The process that runs the cells, as a debugger sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debuggee {
    /// Its number.
    pub process: u32,
    /// The folder of the formatters for Rust's types that come with the compiler.
    pub formatters: PathBuf,
}

/// A line of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellLine {
    /// The number of the cell.
    pub cell: u64,
    /// As typed, counted from 1.
    pub line: u32,
    /// A statement of the cell that runs begins there.
    pub begins: bool,
}
