//! A run of `start!` in the hand of its user, who looks into it, changes it, turns it back, forks and profiles it between
//! two optimizer steps. The loop that makes the steps is `stratoscope_train`'s, and knows nothing of this crate.
//!
//! Start reading at [`handle`], the value that `start!` returns: it drives the loop, and all other files give it methods.
//! `changes` and `row_changes` are the changes that a user makes, `what_if` says what a step would do with a change, `fork`
//! makes a second run from a place and `compare` says where two part. `rewind` turns back to a snapshot, `hindsight` looks
//! back from one, and `influence` makes the steps without a training row. `layers` goes through the coming
//! step layer by layer. `profile` makes steps and measures them, `request` does what is asked from outside of the cells.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod changes;
pub mod compare;
pub mod count;
pub mod fork;
pub mod handle;
pub mod hindsight;
pub mod influence;
mod layers;
mod micro_batch;
pub mod profile;
mod request;
pub mod rewind;
mod row_changes;
pub mod what_if;
