//! Whether training is asked to stop: [`stratoscope_diagnostics::work`], under the name by which this crate
//! and its users know it.
//!
//! `fit` ends after the batch at work: the model, the moments and the place in the data are kept, and
//! `fit!(…, resume = true)` goes on. A batch that takes longer than `PATIENCE` is given up and computed again when
//! the run goes on. `predict` and `evaluate`, which have no half results, end with SC0520.

use std::time::{Duration, Instant};

use stratoscope_bert::ops::Stop;
use stratoscope_diagnostics::rules;
pub use stratoscope_diagnostics::work::{Listening, is_listening, listen_to, request, requested};
use stratoscope_diagnostics::{Diagnostic, Rule};

/// A batch of training that takes no longer is finished first.
const PATIENCE: Duration = Duration::from_secs(1);

/// For the passes of a batch that has no use unless it is whole.
pub fn at_once() -> Stop {
    Stop::when(requested)
}

/// For the passes of a batch of training.
pub fn after_patience() -> Stop {
    let begun = Instant::now();
    Stop::when(move || begun.elapsed() >= PATIENCE && requested())
}

/// Whether this is the error of something that was interrupted.
pub fn is_interruption(problem: &Diagnostic) -> bool {
    problem.code == <rules::Interrupted as Rule>::PAGE.code
}
