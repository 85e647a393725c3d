//! What cells and plain programs import: every crate of the project under one name, burn included.
//!
//! It is compiled as one shared library. Every cell of a notebook links to that one file, so that
//! a tensor, a device or a logger made in one cell is the same thing in the next: there is one
//! copy of every static. [`prelude`] is what a notebook has in scope from the start.
//!
//! [`cell`] is called by the code that the kernel writes around a cell, [`result`] shows a cell's
//! last expression, [`display`] shows anything at any time. All three speak to a kernel when one
//! listens (`STRATOSCOPE_WIRE` is set) and write plain text otherwise: the same program runs in a
//! notebook and with `cargo run`.
//!
//! What is computed is left to the crates below; how it is drawn is left to the kernel.

mod ahead;
pub mod cell;
mod connection;
pub mod display;
mod macros;
pub mod placement;
pub mod prelude;
pub mod progress;
pub mod result;
mod training;

pub use burn;
pub use log;
pub use stratoscope_bert as bert;
pub use stratoscope_data as data;
pub use stratoscope_diagnostics as diagnostics;
pub use stratoscope_macros::scope;
pub use stratoscope_strategy as strategy;
pub use stratoscope_train as train;
pub use stratoscope_train::warnings;
