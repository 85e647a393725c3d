//! [`StepBatches`]: what the batches of an optimizer step have in common before the first of them is computed.
//!
//! The loss of tagged words and of masked tokens is a mean over tokens. With `gradient_accumulation_steps` above 1 it is the
//! mean over the tokens of the whole step, as if its batches were one, and not a mean of the means of batches: a
//! word counts the same in a short and in a long sentence. So all batches of a step are made, and their tokens counted, before
//! its first batch is handed out. Losses of examples need no count: how many examples a step has, the plan knows.
//!
//! transformers divides in the same way since 4.46 (`num_items_in_batch`).

use std::collections::VecDeque;

use stratoscope_data::{Batch, Labels, TokenLabels};
use stratoscope_diagnostics::Result;

/// The same batches, those of a step with one weight for all of their tokens.
pub(crate) struct StepBatches<I> {
    /// From the first batch of a step on.
    batches: I,
    /// Batches of a step.
    accumulation: usize,
    /// Batches of the step that is handed out.
    ready: VecDeque<Batch>,
}

impl<I> StepBatches<I> {
    pub fn new(batches: I, accumulation: usize) -> Self {
        Self {
            batches,
            accumulation: accumulation.max(1),
            ready: VecDeque::new(),
        }
    }
}

impl<I: Iterator<Item = Result<Batch>>> Iterator for StepBatches<I> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.ready.pop_front() {
            return Some(Ok(batch));
        }
        let first = match self.batches.next()? {
            Ok(batch) => batch,
            Err(problem) => return Some(Err(problem)),
        };
        if self.accumulation == 1 || !matches!(first.labels, Labels::Tokens(_)) {
            return Some(Ok(first));
        }
        let others = self.batches.by_ref().take(self.accumulation - 1);
        let step: Result<Vec<Batch>> = std::iter::once(Ok(first)).chain(others).collect();
        match step {
            Ok(mut step) => {
                TokenLabels::weigh_together(&mut step);
                self.ready = step.into();
                self.ready.pop_front().map(Ok)
            }
            Err(problem) => Some(Err(problem)),
        }
    }
}
