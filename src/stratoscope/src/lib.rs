//! The facade: the one crate that cells and plain programs import. It re-exports the other crates and burn.
//!
//! It is compiled as one shared library. Every cell of a notebook links to this file, so there is one copy of every
//! static, and a tensor, a device or a logger of one cell works in the next. [`prelude`] is what a notebook has in
//! scope.
//!
//! [`cell`] is called by the code that the kernel writes around a cell, [`result`] shows the last expression of a cell,
//! and [`display`] shows a value at any time. With a kernel (`STRATOSCOPE_WIRE` is set) all three send messages to it,
//! without one they print text: the same program runs in a notebook and with `cargo run`.
//!
//! The facade does not know Jupyter. It computes nothing itself: training is in `train`, drawing in `render`, the
//! contents of messages in `wire`. The process-wide state of all crates is installed here.
//!
//! Start reading at [`cell`], which runs a cell, then `connection.rs` for the messages and [`progress`] for the output
//! of training.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod ahead;
pub mod cell;
pub mod chart;
mod connection;
pub mod course;
pub mod display;
#[doc(hidden)]
pub mod inspect;
mod looking;
mod macros;
pub mod placement;
pub mod prelude;
pub mod progress;
pub mod result;
mod training;
mod worker;

pub use burn;
pub use log;
pub use stratoscope_audit as audit;
pub use stratoscope_bert as bert;
pub use stratoscope_data as data;
pub use stratoscope_diagnostics as diagnostics;
pub use stratoscope_evaluation as evaluation;
pub use stratoscope_explain as explain;
pub use stratoscope_macros::scope;
pub use stratoscope_models as train;
pub use stratoscope_models::warnings;
pub use stratoscope_strategy as strategy;
