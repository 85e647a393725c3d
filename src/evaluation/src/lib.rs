//! How sure a result is: intervals, calibration and errors of a model's answers, the difference between two models, and
//! results over several seeds, folds or settings.
//!
//! Nothing here knows models or tensors: answers are classes, probabilities and texts ([`Answer`]), results are names
//! and numbers ([`Scores`]). `train` makes the former from predictions, the facade's `sweep!` runs the latter. Random
//! numbers are counter-based, so that the same answers have the same intervals everywhere.
//!
//! Start reading at [`Assessment`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod answer;
mod assessment;
mod bootstrap;
mod calibration;
mod difference;
mod folds;
pub mod page;
mod scores;
mod seeds;
mod spread;
mod sweep;
mod threshold;

pub use answer::Answer;
pub use assessment::{Assessment, ClassScore, WrongAnswers};
pub use bootstrap::{Interval, interval_of};
pub use calibration::{Bin, Calibration};
pub use difference::Difference;
pub use folds::{FoldRuns, over_folds};
pub use scores::{IntoScores, Scores};
pub use seeds::{SeedRuns, over_seeds};
pub use sweep::{Axis, Search, Sweep, Trial, sweep};
pub use threshold::Threshold;

use stratoscope_diagnostics::{Diagnostic, problem};

/// SC0103: a value that this call cannot have.
fn bad_value(call: &str, argument: &str, given: String, expects: String) -> Box<Diagnostic> {
    Box::new(problem::bad_value(call, argument, given, expects))
}
