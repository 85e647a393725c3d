//! The syntax of a cell: its tokens and its statements, parsed once and read by all that ask.
//!
//! Parsers recurse with the nesting of a text, and what they return cannot leave its thread: a span of proc-macro2 points
//! into a source map that each thread has for itself. So a [`CellSyntax`] has a thread of its own with a deep stack. It parses
//! the text when it is first asked, runs whatever reads the [`Syntax`], and ends with the value.
//!
//! Start reading at `syntax.rs`, what is parsed; `shared.rs` is the thread.
//!
//! Everything here is below the checks and the rewriting, so that both read one tree. It knows neither magics nor the DSL.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod deep_stack;
mod shared;
mod syntax;

pub use deep_stack::on_deep_stack;
pub use shared::CellSyntax;
pub use syntax::{MAX_PARSED_BYTES, STACK_BYTES, Syntax, blank_everywhere, parsed_texts};
