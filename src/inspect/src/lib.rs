//! Looking inside a run: what its coming step would compute, its weights, what its layers put out, its examples.
//!
//! Everything here only reads. [`Inspection`] is a look at where a run stands: its state, its settings, and the batches of the
//! step that comes next. What it computes has the masks and random numbers of that step, so that on the CPU it has
//! the bits that the step will have, and the step has those that it has when nobody looked. The results are values of
//! `stratoscope_report::inspection`. Start reading at `coming.rs`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod attention;
mod coming;
pub mod data_map;
mod effects;
mod examples;
mod hindsight;
mod outputs;
mod ranking;
mod tensors;
mod trace;
mod why;

pub use coming::Inspection;
pub use data_map::{ExampleLog, SAVED_BYTES, data_map, shown_text};
pub use effects::KnownOutput;
pub use effects::StepEffects;
pub use ranking::{Ranking, ranked};
pub use why::WORTH_A_LOOK;
