//! Where the loop looks at the conditions of a run: when the loss and the gradient of a step are known, before its update.

use stratoscope_data::Batch;

use crate::metric::correct;
use crate::network::{Files, Network};
use crate::report::run_report::{StepNumbers, StepPoint};
use crate::report::stop::Hit;
use crate::run::epochs::{Drive, Pause};
use crate::run::mark::Mark;
use crate::step::forward::BatchOutputs;
use crate::step::{Proposal, Proposed};

/// What was seen of the batches of the coming step.
#[derive(Default)]
pub(crate) struct Seen {
    /// Examples that are answered right, where outputs are classes.
    right: Option<usize>,
    /// The rows of its examples, where conditions are set.
    rows: Vec<usize>,
    examples: usize,
}

impl Seen {
    /// The share of the examples that are answered right.
    pub(super) fn accuracy(&self) -> Option<f64> {
        let right = self.right.filter(|_| self.examples > 0);
        right.map(|right| right as f64 / self.examples as f64)
    }
}

impl<N: Network> Drive<'_, '_, '_, N> {
    /// Notes what a condition may ask for.
    pub(super) fn see(&mut self, batch: &Batch, outputs: &BatchOutputs) {
        let classes = self.lease.files.classes();
        let threshold = self.run.settings.loss.threshold();
        let right = outputs
            .iter()
            .map(|(part, output)| correct(&part.labels, &output.outputs, classes, threshold));
        let right: Option<usize> = right.sum();
        if let Some(right) = right {
            self.seen.right = Some(self.seen.right.unwrap_or(0) + right);
        }
        self.seen.examples += batch.size();
        if self.run.breakpoints.is_some() {
            self.seen.rows.extend_from_slice(&batch.rows);
        }
    }

    /// Whether the run stops before a step whose loss is not finite.
    pub(super) fn breaks_at_loss(&mut self, loss: f64) -> bool {
        let rate = self.lease.step.rate(&self.run.settings);
        let what = format!(
            "the loss of batch {} is {loss}",
            self.run.progress.batch + 1
        );
        self.breaks((loss, None, rate), Some(what), None)
    }

    /// Whether the run stops before a step that was proposed.
    pub(super) fn breaks_at(&mut self, proposed: &Proposed) -> bool {
        match proposed {
            // It makes no update, and the next one has a smaller scale.
            Proposed::Skipped => false,
            Proposed::NotFinite {
                found,
                rate,
                loss,
                norm,
            } => {
                let what = format!("the gradient of `{}` is {}", found.name, found.value);
                self.breaks((*loss, Some(*norm), *rate), Some(what), None)
            }
            Proposed::Update(proposal) => {
                let Proposal {
                    loss, rate, norm, ..
                } = *proposal;
                self.breaks((loss, Some(norm), rate), None, Some(proposal))
            }
        }
    }

    /// Looks at the conditions. If one holds, the step is forgotten and the run is left before it.
    fn breaks(
        &mut self,
        (loss, norm, rate): (f64, Option<f64>, f64),
        non_finite: Option<String>,
        proposal: Option<&Proposal>,
    ) -> bool {
        let Some(condition) = self.run.breakpoints.clone() else {
            return false;
        };
        let (step, run) = (&self.lease.step, &*self.run);
        let ratios = || match proposal {
            Some(proposal) => step.update_ratios(proposal, &run.settings),
            None => Vec::new(),
        };
        let begun = self.mark.as_ref().map_or(run.progress.batch, Mark::batch);
        let mut numbers = StepNumbers {
            step: step.steps + 1,
            epoch: run.progress.epoch,
            batch: begun,
            loss,
            gradient_norm: norm,
            learning_rate: rate,
            accuracy: self.seen.accuracy(),
            best_accuracy: run.progress.best_accuracy,
            update_ratios: match condition.needs_update() {
                true => ratios(),
                false => Vec::new(),
            },
            non_finite,
            rows: self.seen.rows.clone(),
        };
        let recent: Vec<StepPoint> = run.progress.recent.iter().copied().collect();
        let has_passed = run.passed == Some(step.steps);
        let Some(found) = condition.holds(&numbers, &recent, has_passed) else {
            return false;
        };
        if numbers.update_ratios.is_empty() {
            numbers.update_ratios = ratios();
        }
        let made = step.steps;
        if found.is_mark {
            self.run.passed = Some(made);
        }
        self.pause = Some(Pause::Breakpoint(Box::new(Hit {
            condition: found.written,
            why: found.why,
            step: numbers,
        })));
        self.forget_step();
        true
    }
}
