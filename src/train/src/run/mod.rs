//! A run of `fit!` or `start!`: the loop, and the checks that watch it. Start reading at [`epochs`].
//!
//! `state` is a model's whole state behind its lock, `building` makes the variables of a model that was made without
//! any, `lease` gives the state to one call at a time, `fit` prepares a run, `run_state` is all of a run but the model's
//! state, `handle` the value that `start!` returns, `epochs` the loop, `step_undo` how a step that is not made is
//! forgotten, `breakpoints` the conditions under which a run stops, `check_breakpoints` where the loop looks at them,
//! `batch_plan` which examples each batch has, `step_batches` what its tokens count in a step of several batches,
//! `edits` and `batch_changes` the changes that a user makes,
//! `variables_by_prefix` the variables that such a change names, `fork` a second run from a place, `parts` how a batch is
//! divided for which a device has no memory, `auto_batch_size` what `batch_size = auto` takes, `epoch_end` what happens
//! between two epochs, `progress` where a run is, `pace` how fast it is. `keep` calls what is kept between two steps:
//! a `snapshot` in a `ring`, to which `rewind` turns back and from which `hindsight` looks back, and a `checkpoint` on disk.
//! Both of them make steps again by `replay`. `watch` and `memory` look for what would go wrong in silence, `controls` does
//! what the buttons below the table ask; no number of a run depends on them.

mod auto_batch_size;
pub mod batch_changes;
pub(crate) mod batch_plan;
pub mod breakpoints;
pub(crate) mod building;
mod check_breakpoints;
pub(crate) mod checkpoint;
mod class_weights;
pub mod compare;
mod controls;
pub mod edits;
mod epoch_end;
pub(crate) mod epochs;
pub(crate) mod fit;
pub mod fork;
pub mod handle;
pub mod hindsight;
pub(crate) mod keep;
pub(crate) mod lease;
mod median;
pub(crate) mod memory;
pub(crate) mod pace;
mod parts;
pub(crate) mod progress;
mod replay;
pub mod rewind;
pub(crate) mod ring;
pub(crate) mod run_state;
pub(crate) mod snapshot;
pub(crate) mod state;
mod step_batches;
mod step_undo;
mod unfreezing;
mod variables_by_prefix;
pub(crate) mod watch;
