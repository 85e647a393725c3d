//! Integers of any type as arguments.

pub use stratoscope_diagnostics::count::Count;

stratoscope_diagnostics::into_count!();
