//! A run of `fit!` or `start!`. Start reading at `training_loop`, which is the loop and nothing else, then
//! [`loop_state`], what it works on, `driving`, how it is entered and left, and [`hooks`], what happens beside it.
//!
//! `state` is a model's whole state behind its lock, `building` makes the variables of a model that was made without
//! any, `lease` gives the state to one call at a time, `fit` prepares a run, `run_state` is all of a run but the model's
//! state, `progress` the part of it that a snapshot holds. What `start!` returns, and what its user does with it, is the
//! crate `run`.
//!
//! `batch_plan` says which examples each batch has, `step_batches` what its tokens count in a step of several batches,
//! `parts` how a batch is divided for which a device has no memory, `auto_batch_size` what `batch_size = auto` takes,
//! `memory` what a step needs, `between_epochs` what happens between two epochs, `watch` what looks wrong.
//!
//! `breakpoints` are the conditions under which a run stops; `edits`, `batch_changes`, `regularization` and `planned` the
//! changes that a user makes, as a run makes, lists and stores them, `variables_by_prefix` the variables that such a change
//! names, `requests` the changes that are asked for from outside of the cells. `replay` makes steps again without a sound. A
//! `checkpoint` is a snapshot on disk.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod auto_batch_size;
pub mod batch_changes;
pub mod batch_plan;
mod between_epochs;
pub mod breakpoints;
pub mod building;
pub mod checkpoint;
mod class_weights;
mod driving;
pub mod edits;
pub mod fit;
pub mod hooks;
pub mod lease;
pub mod loop_state;
mod median;
pub mod memory;
pub mod parts;
pub mod pipeline;
pub mod planned;
pub mod progress;
pub mod regularization;
mod replay;
pub mod requests;
pub mod run_state;
pub mod snapshot;
pub mod state;
mod step_batches;
mod taken_up;
pub(crate) mod training_loop;
mod unfreezing;
mod variables_by_prefix;
pub mod watch;
