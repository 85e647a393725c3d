//! What each schedule says of itself.

use std::fmt;

/// A number that makes no schedule: its name, its value and what it must be.
pub(crate) type Problem = (&'static str, f64, &'static str);

/// A learning rate over optimizer steps. The default of a method holds for most.
pub(super) trait Curve {
    /// The rate of the update after `step` updates, in a run of `total_steps` updates.
    fn rate(&self, step: u64, total_steps: u64) -> f64;

    /// The rate it is named by: that of its beginning, or of the end of its warm-up.
    fn named_rate(&self) -> f64;

    /// As it is written.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Whether it is written as a share of the run, and begins again with every `fit!`.
    fn spans_the_run(&self) -> bool {
        false
    }

    /// Whether it is one rate.
    fn is_constant(&self) -> bool {
        false
    }

    /// Optimizer steps in which it rises to [`named_rate`](Self::named_rate), in a run of `total_steps`.
    fn rising_steps(&self, _total_steps: u64) -> u64 {
        0
    }

    /// The first number that makes no schedule, beside the rate that it is named by.
    fn problem(&self) -> Option<Problem> {
        None
    }
}
