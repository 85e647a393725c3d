//! Where the loop looks at the conditions of a run: when the loss and the gradient of a step are known, before its update.

use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::RunningValues;

use super::{At, Hook};
use crate::breakpoints::Condition;
use crate::loop_state::{LoopState, Pause, loss_of};
use stratoscope_report::run_report::{LayerRatio, StepNumbers, StepPoint};
use stratoscope_report::stop::Hit;
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::{Proposal, Proposed};

/// Stops a run before a step for which a condition holds.
#[derive(Clone, Default)]
pub struct Breakpoints {
    condition: Option<Condition>,
    /// That of the debugger panel, which replaces its own only.
    of_panel: Option<Condition>,
    /// The number of steps at which [`every`](crate::breakpoints::every) has stopped the run last, or to which it was
    /// turned back.
    passed: Option<u64>,
    coming: ComingStep,
}

/// What was seen of the coming step, where conditions are set.
#[derive(Clone, Default)]
struct ComingStep {
    /// The rows of its examples.
    rows: Vec<usize>,
    /// Its first batch in the epoch.
    batch: u64,
    /// The running states before it, for conditions that read the model.
    running: Option<RunningValues>,
}

/// What is known of the coming step when conditions are looked at.
#[derive(Clone, Copy)]
struct Known {
    loss: f64,
    /// `None` where the loss is not finite: the gradients are not looked at.
    gradient_norm: Option<f64>,
    learning_rate: f64,
}

impl Breakpoints {
    /// Stops also where this condition holds.
    pub fn add(&mut self, condition: Condition) {
        self.condition = Some(match self.condition.take() {
            Some(others) => others | condition,
            None => condition,
        });
    }

    /// The panel's condition, instead of the one that it has set before.
    pub fn set_of_panel(&mut self, condition: Option<Condition>) {
        self.of_panel = condition;
    }

    /// All conditions.
    fn all(&self) -> Option<Condition> {
        match (self.condition.clone(), self.of_panel.clone()) {
            (Some(own), Some(of_panel)) => Some(own | of_panel),
            (own, of_panel) => own.or(of_panel),
        }
    }

    /// The run stands after this number of steps and is not stopped there by [`every`](crate::breakpoints::every).
    pub fn pass(&mut self, steps: u64) {
        self.passed = Some(steps);
    }

    fn is_custom(&self) -> bool {
        self.condition.as_ref().is_some_and(Condition::is_custom)
    }
}

impl Hook for Breakpoints {
    fn before_step(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        let running = || at.lease.step.replicas.running_values();
        self.coming = ComingStep {
            rows: Vec::new(),
            batch: at.run.progress.batch,
            running: self.is_custom().then(running),
        };
        Ok(())
    }

    fn computed(
        &mut self,
        at: At<'_, '_, '_, '_>,
        batch: &Batch,
        outputs: &BatchOutputs,
    ) -> Result<()> {
        if self.condition.is_none() && self.of_panel.is_none() {
            return Ok(());
        }
        self.coming.rows.extend_from_slice(&batch.rows);
        let loss = loss_of(outputs);
        if !loss.is_finite() {
            let known = Known {
                loss,
                gradient_norm: None,
                learning_rate: at.lease.step.rate(&at.run.settings),
            };
            let number = at.run.progress.batch + 1;
            let what = format!("the loss of batch {number} is {loss}");
            self.stop_if_one_holds(at, known, Some(what), None);
        }
        Ok(())
    }

    /// A condition that reads the model finds it whole. That is seen to before the gradients are exchanged: afterwards
    /// the step is proposed to the processes that take part in it.
    fn before_exchange(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        match self.is_custom() {
            true => at.lease.step.gather(),
            false => Ok(()),
        }
    }

    fn proposed(&mut self, at: At<'_, '_, '_, '_>, proposed: &Proposed) -> Result<()> {
        match proposed {
            // It makes no update, and the next one has a smaller scale.
            Proposed::Skipped => {}
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
                self.stop_if_one_holds(at, known, Some(what), None);
            }
            Proposed::Update(proposal) => {
                let known = Known {
                    loss: proposal.loss,
                    gradient_norm: Some(proposal.norm),
                    learning_rate: proposal.rate,
                };
                self.stop_if_one_holds(at, known, None, Some(proposal));
            }
        }
        Ok(())
    }
}

impl Breakpoints {
    /// Looks at the conditions. If one holds, the run is to be left before the step.
    fn stop_if_one_holds(
        &mut self,
        at: &mut LoopState<'_, '_, '_>,
        known: Known,
        non_finite: Option<String>,
        proposal: Option<&Proposal>,
    ) {
        let Some(condition) = self.all() else {
            return;
        };
        let mut numbers = self.numbers(at, known, non_finite);
        if condition.needs_update() {
            numbers.update_ratios = ratios(at, proposal);
        }
        let recent: Vec<StepPoint> = at.run.progress.recent.points().collect();
        let made = at.lease.step.steps;
        let has_passed = self.passed == Some(made);
        let holds = || condition.holds(&numbers, &recent, has_passed);
        let found = match &self.coming.running {
            // A closure may read the model, as it is before the step.
            Some(before) if condition.is_custom() => {
                let after = at.lease.step.replicas.running_values();
                at.lease.step.replicas.set_running_values(before);
                let found = at.lease.lent(holds);
                at.lease.step.replicas.set_running_values(&after);
                found
            }
            _ => holds(),
        };
        let Some(found) = found else {
            return;
        };
        if numbers.update_ratios.is_empty() {
            numbers.update_ratios = ratios(at, proposal);
        }
        if found.is_periodic {
            self.passed = Some(made);
        }
        at.pause = Some(Pause::Breakpoint(Box::new(Hit {
            condition: found.written,
            why: found.why,
            step: numbers,
        })));
    }

    /// The numbers of the coming step, but for how much it would change each layer.
    fn numbers(
        &self,
        at: &LoopState<'_, '_, '_>,
        known: Known,
        non_finite: Option<String>,
    ) -> StepNumbers {
        let progress = &at.run.progress;
        StepNumbers {
            step: at.lease.step.steps + 1,
            epoch: progress.epoch,
            batch: self.coming.batch,
            loss: known.loss,
            gradient_norm: known.gradient_norm,
            learning_rate: known.learning_rate,
            accuracy: progress.recent.accuracy_of_the_coming(),
            best_accuracy: progress.recent.best_accuracy,
            update_ratios: Vec::new(),
            non_finite,
            rows: self.coming.rows.clone(),
        }
    }
}

/// How much a proposed step would change each layer.
fn ratios(at: &LoopState<'_, '_, '_>, proposal: Option<&Proposal>) -> Vec<LayerRatio> {
    let step = &at.lease.step;
    proposal.map_or_else(Vec::new, |it| step.update_ratios(it, &at.run.settings))
}
