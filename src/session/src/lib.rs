//! One evaluator on a thread of its own: what the front ends (the Jupyter kernel, `stratoscope run`) and the
//! evaluator on evcxr share. It knows neither Jupyter nor evcxr.
//!
//! Start with [`Evaluate`], the contract of an evaluator with its threading rules, and [`Session`], which
//! runs one. [`toy`] is an evaluator for tests.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod debuggee;
mod diagnostic_settings;
mod evaluate;
mod failures;
mod past_cells;
mod session;
mod shared;
#[doc(hidden)]
pub mod toy;

pub use debuggee::{CellLine, Debuggee};
pub use diagnostic_settings::DiagnosticSettings;
pub use evaluate::{
    Assist, Backend, Cell, CellError, CellOutcome, Completion, Completions, Evaluate, INTERRUPTED,
    Interrupt, LastError, Lint, MagicCell, OutputSink, SteerRequest, SteerSocket, Stream, Variable,
    interrupted,
};
pub use past_cells::{FoundCells, HistoryChange, PastCell, PastCells};
pub use session::{OwnedCell, Session};
