//! The text of a cell: what it consists of, what its magics are, how it is rewritten before it is compiled.
//! Everything here is a function from text to text or to facts; nothing reads a file or knows a notebook's
//! variables. It uses no other crate of the project.
//!
//! Start with [`rewrite`], which makes the source that evcxr compiles from a cell as typed, and remembers
//! where each piece of it came from.

pub mod cursor;
pub mod definitions;
pub mod magic_line;
pub mod nesting;
pub mod rewrite;
