//! `evaluate!(model, data, …)` as written, and what it means.

use stratoscope_diagnostics::Result;

use super::value::{optional_size, size};
use super::{Count, DEFAULT_BATCH_SIZE, IntoCount};

/// The arguments of `evaluate!`, one method each.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvaluateArgs {
    batch_size: Option<Count>,
    steps: Option<Count>,
    max_length: Option<Count>,
    verbose: Option<bool>,
}

/// Every default filled in.
#[derive(Clone, Copy, Debug)]
pub struct EvaluatePlan {
    /// Examples of a batch.
    pub batch_size: usize,
    /// Batches in all; `None`: all of the data.
    pub steps: Option<usize>,
    /// `None`: that of the training, or [`default_max_length`](super::default_max_length) of the model.
    pub max_length: Option<usize>,
    /// Whether a table is shown.
    pub verbose: bool,
}

impl EvaluateArgs {
    /// No argument yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Examples per batch over all replicas together. It changes the time, not the result, but for losses that compare the
    /// examples of a batch. Default: 32.
    pub fn batch_size(mut self, batch_size: impl IntoCount) -> Self {
        self.batch_size = Some(batch_size.into_count());
        self
    }

    /// Evaluates the first so many batches only. Default: all.
    pub fn steps(mut self, batches: impl IntoCount) -> Self {
        self.steps = Some(batches.into_count());
        self
    }

    /// Tokens per example, special ones included. Default: 64.
    pub fn max_length(mut self, tokens: impl IntoCount) -> Self {
        self.max_length = Some(tokens.into_count());
        self
    }

    /// Whether the progress is shown. Default: true.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = Some(verbose);
        self
    }

    /// Fills in the defaults.
    pub fn resolve(self) -> Result<EvaluatePlan> {
        Ok(EvaluatePlan {
            batch_size: size(
                self.batch_size,
                DEFAULT_BATCH_SIZE,
                "evaluate",
                "batch_size",
            )?,
            steps: optional_size(self.steps, "evaluate", "steps")?,
            max_length: optional_size(self.max_length, "evaluate", "max_length")?,
            verbose: self.verbose.unwrap_or(true),
        })
    }
}
