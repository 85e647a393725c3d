//! What each metric says of itself.

use super::applicability::{Answers, Fit};
use super::tally::Tally;

/// A metric: its value for a split, and what the rest of the program has to know of it. The default of a method holds for most.
pub(super) trait Measure {
    /// Its name in tables and as text: `macro_f1`.
    fn name(&self) -> &'static str;

    /// Its value for a split; `None` where it is undefined.
    fn value(&self, tally: &Tally) -> Option<f64>;

    /// Whether it can measure such answers.
    fn fit(&self, answers: Answers) -> Fit;

    /// Has a tally count what only some metrics need.
    fn prepare(&self, _tally: &mut Tally) {}

    /// Whether the mean of the batches' values would be another number (SC0311). What is a mean over
    /// examples is only wrong where the last batch is short.
    fn needs_the_split(&self) -> bool {
        true
    }

    /// Whether it counts classes.
    fn is_of_classes(&self) -> bool {
        true
    }

    /// Whether low values are good.
    fn is_low_good(&self) -> bool {
        false
    }
}
