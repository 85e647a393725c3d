//! Integers of any type as arguments.

stratoscope_diagnostics::into_count!();
