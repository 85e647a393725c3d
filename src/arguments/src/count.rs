//! Arguments that are whole numbers of any type.

pub use stratoscope_diagnostics::count::Count;

stratoscope_diagnostics::into_count!();
