//! The text of a cell: what it consists of, which of its lines are magics, how it is rewritten before it is
//! compiled. Everything here is a function from text to text or to facts; nothing reads a file or knows the
//! variables of a notebook.
//!
//! Start with [`ParsedCell`], which is made once for each cell; [`rewrite`] makes the source that evcxr compiles
//! and remembers where each piece of it came from.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod cursor;
pub mod definitions;
pub mod header;
pub mod macro_rules;
pub mod magic;
mod nesting;
mod parsed;
pub mod program;
pub mod rewrite;
pub mod tokens;

pub use parsed::{ParsedCell, Rewriting};
