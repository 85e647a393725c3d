//! Parsing on a thread with a deep stack.

use stratoscope_cell_syntax::{MAX_PARSED_BYTES, STACK_BYTES, on_deep_stack};

/// Reads a text that is no cell, such as a part of one, with syn on a thread with a deep stack: syn recurses at every bracket
/// and operator. `None` for a text that is too long.
pub fn parse_deep<T: Send>(code: &str, read: impl FnOnce(&str) -> T + Send) -> Option<T> {
    if code.len() > MAX_PARSED_BYTES {
        return None;
    }
    on_deep_stack("parse", STACK_BYTES, || Some(read(code)))
}
