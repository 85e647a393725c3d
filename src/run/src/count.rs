//! Integers of any type as rows of the training data. The trait is of this crate, so that rows may also be lists of them.

pub use stratoscope_diagnostics::count::Count;

stratoscope_diagnostics::into_count!();
