//! A run of `fit!` or `start!`. Start reading at [`training_loop`], which is the loop and nothing else, then
//! [`loop_state`], what it works on, `driving`, how it is entered and left, and [`hooks`], what happens beside it.
//!
//! `state` is a model's whole state behind its lock, `building` makes the variables of a model that was made without
//! any, `lease` gives the state to one call at a time, `fit` prepares a run, `run_state` is all of a run but the model's
//! state, `progress` the part of it that a snapshot holds, `handle` the value that `start!` returns.
//!
//! `batch_plan` says which examples each batch has, `step_batches` what its tokens count in a step of several batches,
//! `parts` how a batch is divided for which a device has no memory, `auto_batch_size` what `batch_size = auto` takes,
//! `memory` what a step needs, `between_epochs` what happens between two epochs, `watch` what looks wrong.
//!
//! `breakpoints` are the conditions under which a run stops, `edits` and `batch_changes` the changes that a user makes,
//! `variables_by_prefix` the variables that such a change names, `fork` a second run from a place, `what_if` what a step would do with a change. `rewind` turns back to a
//! `snapshot`, `hindsight` looks back from one, and `influence` makes the steps without a training row; all make steps again by `replay`. A `checkpoint` is a snapshot on disk.
//! `profile` makes steps and measures them.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod auto_batch_size;
pub mod batch_changes;
pub(crate) mod batch_plan;
mod between_epochs;
pub mod breakpoints;
pub(crate) mod building;
pub(crate) mod checkpoint;
mod class_weights;
pub mod compare;
mod driving;
pub mod edits;
pub(crate) mod fit;
pub mod fork;
pub mod handle;
pub mod hindsight;
pub(crate) mod hooks;
pub mod influence;
pub(crate) mod lease;
pub(crate) mod loop_state;
mod median;
pub(crate) mod memory;
mod parts;
pub(crate) mod pipeline;
pub mod profile;
pub(crate) mod progress;
pub mod regularization;
mod replay;
pub mod requests;
pub mod rewind;
pub mod row_changes;
pub(crate) mod run_state;
pub(crate) mod snapshot;
pub(crate) mod state;
mod step_batches;
pub(crate) mod training_loop;
mod unfreezing;
mod variables_by_prefix;
pub(crate) mod watch;
pub mod what_if;
