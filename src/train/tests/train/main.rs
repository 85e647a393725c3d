//! Training against the reference implementation, against closed formulas and against mistakes, in one
//! process. Strategies, scopes and interrupts are the process's: tests take turns.

mod averages;
mod callback_methods;
mod compile_rules;
mod counters;
mod data_rules;
mod fit_arguments;
mod heads;
mod interrupted;
mod interrupted_exactly;
mod mixed_precision;
mod one_output;
mod parity;
mod scope_table;
mod sharded;
mod strategies;
mod support;
mod usual_metrics;
mod watch_rules;
mod whole;
