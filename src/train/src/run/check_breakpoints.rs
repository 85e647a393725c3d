//! Where the loop looks at the conditions of a run: when the loss and the gradient of a step are known, before its update.

use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;

use crate::metric::correct;
use crate::report::run_report::{LayerRatio, StepNumbers, StepPoint};
use crate::report::stop::Hit;
use crate::run::epochs::{Drive, Pause};
use crate::run::step_undo::StepUndo;
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

/// What is known of the coming step when conditions are looked at.
#[derive(Clone, Copy)]
struct Known {
    loss: f64,
    /// `None` where the loss is not finite: the gradients are not looked at.
    gradient_norm: Option<f64>,
    learning_rate: f64,
}

impl Seen {
    /// The share of the examples that are answered right.
    pub(super) fn accuracy(&self) -> Option<f64> {
        let right = self.right.filter(|_| self.examples > 0);
        right.map(|right| right as f64 / self.examples as f64)
    }
}

impl Drive<'_, '_, '_> {
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
        let known = Known {
            loss,
            gradient_norm: None,
            learning_rate: rate,
        };
        self.breaks(known, Some(what), None)
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
                let known = Known {
                    loss: *loss,
                    gradient_norm: Some(*norm),
                    learning_rate: *rate,
                };
                self.breaks(known, Some(what), None)
            }
            Proposed::Update(proposal) => {
                let known = Known {
                    loss: proposal.loss,
                    gradient_norm: Some(proposal.norm),
                    learning_rate: proposal.rate,
                };
                self.breaks(known, None, Some(proposal))
            }
        }
    }

    /// Looks at the conditions. If one holds, the step is forgotten and the run is left before it.
    fn breaks(
        &mut self,
        known: Known,
        non_finite: Option<String>,
        proposal: Option<&Proposal>,
    ) -> bool {
        let Some(condition) = self.run.breakpoints.clone() else {
            return false;
        };
        let mut numbers = self.numbers(known, non_finite);
        if condition.needs_update() {
            numbers.update_ratios = self.ratios(proposal);
        }
        let recent: Vec<StepPoint> = self.run.progress.recent.iter().copied().collect();
        let made = self.lease.step.steps;
        let has_passed = self.run.passed == Some(made);
        let holds = || condition.holds(&numbers, &recent, has_passed);
        let found = match condition.is_custom() {
            // A closure may read the model, as it is before the step.
            true => {
                let after = self.lease.step.replicas.running_values();
                if let Some(undo) = &self.undo {
                    self.lease.step.replicas.set_running_values(undo.running());
                }
                let found = self.lease.lent(holds);
                self.lease.step.replicas.set_running_values(&after);
                found
            }
            false => holds(),
        };
        let Some(found) = found else {
            return false;
        };
        if numbers.update_ratios.is_empty() {
            numbers.update_ratios = self.ratios(proposal);
        }
        if found.is_periodic {
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

    /// The numbers of the coming step, but for how much it would change each layer.
    fn numbers(&self, known: Known, non_finite: Option<String>) -> StepNumbers {
        let progress = &self.run.progress;
        let undo = self.undo.as_ref();
        StepNumbers {
            step: self.lease.step.steps + 1,
            epoch: progress.epoch,
            batch: undo.map_or(progress.batch, StepUndo::batch),
            loss: known.loss,
            gradient_norm: known.gradient_norm,
            learning_rate: known.learning_rate,
            accuracy: self.seen.accuracy(),
            best_accuracy: progress.best_accuracy,
            update_ratios: Vec::new(),
            non_finite,
            rows: self.seen.rows.clone(),
        }
    }

    /// How much a proposed step would change each layer.
    fn ratios(&self, proposal: Option<&Proposal>) -> Vec<LayerRatio> {
        let step = &self.lease.step;
        proposal.map_or_else(Vec::new, |it| step.update_ratios(it, &self.run.settings))
    }

    /// A condition that reads the model finds it whole. That is seen to before the gradients are exchanged: afterwards
    /// the step is proposed to the processes that take part in it.
    pub(super) fn gather_for_conditions(&mut self) -> Result<()> {
        match &self.run.breakpoints {
            Some(condition) if condition.is_custom() => self.lease.step.gather(),
            _ => Ok(()),
        }
    }
}
