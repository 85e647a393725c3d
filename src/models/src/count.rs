//! Integers of any type in the shapes of inputs. The trait is of this crate, so that a shape may also be a list or a pair of them.

pub use stratoscope_diagnostics::count::Count;

stratoscope_diagnostics::into_count!();
