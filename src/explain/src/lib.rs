//! What one asks of a model and its data: why this prediction, which words would change it, and which rows of the data are
//! wrong.
//!
//! [`ExplainPredictions`] gives each word of a text a number by four methods and searches the smallest set of words whose
//! removal changes the class. [`AuditData`] audits a data set with the vectors of a model ([`stratoscope_audit`] has the
//! methods, which know no models); [`out_of_fold`] answers each row by a model that was trained without it.
//!
//! [`InterveneOnActivations`] predicts with changed activations, and finds the heads and layers that make the difference of two
//! texts.
//!
//! Explanations work for every family of encoders that the classifier can hold, as they use its embeddings, its attention and
//! its logits only.
//!
//! Start reading at [`explanation`](crate::Explanation), then `gradients.rs`, `occlusion.rs`, `rollout.rs` and
//! `counterfactual.rs`.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod audit;
mod counterfactual;
mod explanation;
mod gradients;
mod intervention;
mod occlusion;
mod out_of_fold;
mod patching;
mod quadrature;
mod rollout;
mod show;
mod show_changes;
mod text;
mod view;

pub use audit::AuditData;
pub use counterfactual::Counterfactual;
pub use explanation::{ExplainOptions, ExplainPredictions, ExplainedWord, Explanation};
pub use intervention::{
    ActivationEdits, Answer, ChangedPredictions, EditedOutput, InterveneOnActivations,
};
pub use out_of_fold::{OutOfFold, out_of_fold};
pub use patching::PatchMap;
pub use text::ExplainedText;
