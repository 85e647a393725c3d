//! A run of `fit!`: the loop, and the checks that watch it. Start reading at [`epochs`].
//!
//! `state` is a model's whole state behind its lock, `building` makes the variables of a model that was made without
//! any, `lease` lends the state to callbacks, `fit` prepares a run, `epochs` is the loop, `epoch_end` what happens
//! between two epochs, `progress` what an interrupted run needs to go on. `watch` and `memory` look for what would
//! go wrong in silence; no number of a run depends on them.

pub(crate) mod building;
mod epoch_end;
pub(crate) mod epochs;
pub(crate) mod fit;
pub(crate) mod lease;
pub(crate) mod memory;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod state;
pub(crate) mod watch;
