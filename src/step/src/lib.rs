//! One optimizer step: forward and backward, exchange, update.
//!
//! [`prepare`] makes batches of a data set. Start reading at `state.rs`, what a step reads and changes. A step goes through the
//! files of this folder in this order:
//!
//! 1. `backward`: each replica runs its part of a batch forward and backward and adds the gradients to what it
//!    has `accumulated`. With `gradient_accumulation_steps` above 1 this happens several times.
//! 2. `exchange`: the replicas' gradients become one mean gradient (all-reduce), or stay apart (local SGD,
//!    asynchronous parameter servers).
//! 3. `loss_scale`: under `mixed_float16`, a step whose gradients overflowed is skipped.
//! 4. `update`: clipping, the optimizer's rule, the moments.
//!
//! In a pipeline, `pipeline` computes 1 through the stages, each on its device. `slices` gives 1 the slices of layers that several
//! devices compute together.
//!
//! Where the loss compares the examples of a batch, `across` gives each replica of 1 its part of the loss of all.
//!
//! Where replicas are processes of their own, `workers` gives them their parts of 1, 2 and 4.
//!
//! All that a step reads and changes is in `StepState`; what stays the same from step to step is in
//! `StepSettings`. `forward` and `evaluation` are the same passes without gradients, `failures` names what devices that fail say, `preview` is the step that
//! would come, without making it, `changed` what a user has changed about one step, `timed` notes when each replica computes what, for a profile, and `head` says what outputs mean.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod accumulated;
pub mod across;
pub mod backward;
pub mod changed;
pub mod evaluation;
pub mod exchange;
pub mod failures;
pub mod finite;
pub mod forward;
pub mod gradients;
pub mod head;
pub mod loss_scale;
mod pipeline;
pub mod precision;
pub mod prepare;
pub(crate) mod preview;
pub mod ratio;
mod saved;
mod slices;
mod state;
pub mod timed;
pub mod traced;
mod update;
pub mod workers;

pub use saved::SavedStep;
pub use state::{
    LossSum, NumberedBatch, Proposal, Proposed, StepRecorded, StepSettings, StepState,
    gathered_in_parts,
};
