//! Training against the reference implementation, against closed formulas and against mistakes.
//!
//! The tests run in parallel. Observers, warnings and the precision policy belong to a `RunContext`; the strategies
//! that are alive and a requested interrupt belong to the process, and `cargo nextest` gives each test its own.

mod averages;
mod callback_methods;
mod compile_rules;
mod counters;
mod data_rules;
mod fit_arguments;
mod heads;
mod interrupted;
mod interrupted_exactly;
mod look;
mod mixed_precision;
mod one_output;
mod parity;
mod runs;
mod scope_table;
mod sharded;
mod strategies;
mod support;
mod usual_metrics;
mod watch_rules;
mod whole;
mod why;
