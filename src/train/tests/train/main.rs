//! Training against the reference implementation, against closed formulas and against mistakes.
//!
//! The tests run in parallel. Observers, warnings and the precision policy belong to a `RunContext`; the strategies
//! that are alive and a requested interrupt belong to the process, and `cargo nextest` gives each test its own.

mod accumulated_tokens;
mod averages;
mod bert_heads;
mod callback_methods;
mod checkpoints;
mod checkpoints_killed;
mod compile_rules;
mod counters;
mod data_rules;
mod edited;
mod example_weights;
mod failed_update;
mod fit_arguments;
mod forked;
mod heads;
mod hindsight;
mod interrupted;
mod interrupted_exactly;
mod layer_rates;
mod length_groups;
mod look;
mod lora;
mod masked_lm;
mod mixed_precision;
mod multi_label;
mod multiple_choice;
mod on_gpu;
mod one_output;
mod out_of_memory;
mod own_losses;
mod parity;
mod question_answering;
mod recompute;
mod rewinding;
mod run_breakpoints;
mod runs;
mod runs_on_gpu;
mod runs_that_go_wrong;
mod saved_layers;
mod scope_table;
mod sentence_pairs;
mod sharded;
mod strategies;
mod streams;
mod support;
mod token_classification;
mod unfreezing;
mod usual_metrics;
mod watch_rules;
mod whole;
mod why;
mod why_operations;
mod workers;
