//! One optimizer step: forward and backward, exchange, update.
//!
//! A step goes through the files of this folder in this order:
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

pub(crate) mod accumulated;
pub(crate) mod across;
pub(crate) mod backward;
pub(crate) mod changed;
pub(crate) mod evaluation;
pub(crate) mod exchange;
pub(crate) mod failures;
pub(crate) mod finite;
pub(crate) mod forward;
pub mod gradients;
pub(crate) mod head;
pub(crate) mod loss_scale;
mod pipeline;
pub mod precision;
pub(crate) mod preview;
pub(crate) mod ratio;
mod saved;
mod slices;
mod state;
pub(crate) mod timed;
pub(crate) mod traced;
mod update;
pub(crate) mod workers;

pub(crate) use saved::SavedStep;
pub(crate) use state::{
    LossSum, NumberedBatch, Proposal, Proposed, StepRecorded, StepSettings, StepState,
    gathered_in_parts,
};
