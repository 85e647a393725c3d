//! Before the first step of a run: settings, schedule, data and memory against each other. What needs
//! data or epochs is checked here, whatever stage the catalogue names; it is still before any step.

use stratoscope_data::{Data, Example, even_shares};
use stratoscope_diagnostics::rules::{
    DropoutOff, FrozenAfterCompile, HeadWritten, IneffectiveSchedule, LabelOutOfRange,
    NothingToTrain, ScheduleFault, SmallPerReplicaBatch, UnevenLastBatch, UntrainedHead,
    WarmUpTooLong,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use crate::memory;
use crate::state::ModelState;
use stratoscope_arguments::Compiled;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::loss::Loss;
use stratoscope_optim::schedule::RatePlan;
use stratoscope_step::prepare::{Prepared, label_range, label_value};

/// A rate that changes by less than this share of itself does not change.
const VISIBLE: f64 = 0.02;

/// The numbers of a run that is about to begin.
pub(crate) struct Before<'a> {
    /// As it was given.
    pub dataset: Data<'a>,
    /// Checked and tokenized.
    pub data: &'a Prepared,
    pub batch_size: usize,
    /// Examples of a batch that are computed at once.
    pub at_once: usize,
    pub batches_per_epoch: u64,
    pub epochs: u64,
    pub recompute: bool,
}

impl Before<'_> {
    /// Looks at everything, and tells it.
    ///
    /// # Errors
    /// SC0111 for nothing to train, SC0301 for a label that a binary loss cannot have; any other
    /// finding where it is denied.
    pub fn check(&self, state: &ModelState) -> Result<()> {
        let Some(compiled) = &state.compiled else {
            return Ok(());
        };
        self.something_to_train(state)?;
        self.labels(state, compiled)?;
        let rates = self.rates(compiled, state.step.steps_since_compile());
        let findings = [
            frozen_after_compile(state, compiled),
            self.dropout(state),
            self.shares(state.step.replicas.len()),
            self.last_batch(state.step.replicas.len()),
            schedule(&rates),
            warm_up(&rates),
        ];
        findings.into_iter().flatten().try_for_each(notice)?;
        let length = self.data.train.report().longest;
        let length = length.min(self.data.train.max_length());
        let at_once = self.at_once.min(self.data.train.len());
        memory::check(state, at_once, length, self.recompute)
    }

    /// The rates of the run.
    /// `made`: optimizer steps since `compile!`.
    pub fn rates(&self, compiled: &Compiled, made: u64) -> RatePlan {
        let batches = self.batches_per_epoch;
        RatePlan {
            schedule: compiled.optimizer.schedule,
            made,
            steps: batches.div_ceil(compiled.gradient_accumulation_steps) * self.epochs,
        }
    }

    fn something_to_train(&self, state: &ModelState) -> Result<()> {
        if state.trainable().next().is_some() {
            return Ok(());
        }
        let rule = NothingToTrain {
            variables: state.step.replicas.records().len(),
            head: state.head(),
        };
        Err(rule.error())
    }

    /// A binary loss knows the labels 0 and 1, and what lies between; a hinge −1 too.
    fn labels(&self, state: &ModelState, compiled: &Compiled) -> Result<()> {
        let Some(loss) = compiled.loss.filter(Loss::is_binary) else {
            return Ok(());
        };
        let least = if loss.takes_signs() { -1.0 } else { 0.0 };
        let outside = |value: f64| !(least..=1.0).contains(&value);
        let is_wrong = |example: &Example| outside(label_value(example.label));
        let (first, rows, largest) = match self.dataset {
            Data::Held(data) => {
                let values = data.examples.iter().map(|it| label_value(it.label));
                let mut wrong = data.examples.iter().filter(|example| is_wrong(example));
                let first = wrong.next().cloned();
                (first, 1 + wrong.count(), values.fold(0.0, f64::max))
            }
            Data::Streamed(stream) => match label_range(stream) {
                Some((low, high)) if outside(low) || outside(high) => {
                    let mut rows = 0;
                    for portion in stream.portions() {
                        rows += portion?.examples.iter().filter(|it| is_wrong(it)).count();
                    }
                    (stream.find(is_wrong)?, rows, high)
                }
                _ => return Ok(()),
            },
        };
        let Some(first) = first else {
            return Ok(());
        };
        let rule = LabelOutOfRange {
            label: label_value(first.label) as i64,
            row: first.row,
            rows,
            largest: largest as i64,
            smallest: match self.dataset {
                Data::Held(data) => {
                    let labels = data.examples.iter();
                    labels.map(|it| label_value(it.label) as i64).min()
                }
                Data::Streamed(_) => None,
            },
            classes: 2,
            head: Some(HeadWritten {
                is_binary: true,
                ..state.head_written()
            }),
            source: self.dataset.source().to_owned(),
            text: Some(first.text.clone()),
            call: "fit".to_owned(),
        };
        Err(rule.error())
    }

    fn dropout(&self, state: &ModelState) -> Option<Diagnostic> {
        let rule = DropoutOff::Configuration {
            parameters: state.num_parameters(),
            examples: self.data.train.len(),
        };
        (state.files.dropout() == Some(0.0)).then(|| rule.diagnostic())
    }

    fn shares(&self, replicas: usize) -> Option<Diagnostic> {
        let rule = SmallPerReplicaBatch {
            batch_size: self.batch_size,
            replicas,
        };
        rule.check()
    }

    fn last_batch(&self, replicas: usize) -> Option<Diagnostic> {
        let examples = self.data.epoch_examples;
        let size = match examples % self.batch_size {
            0 => self.batch_size,
            rest => rest,
        };
        let rule = UnevenLastBatch {
            shares: even_shares(size, replicas).collect(),
            batch_size: self.batch_size,
            examples,
        };
        // Where files are divided, the table says how many examples each worker has.
        let is_even = self.data.train.shares_of(0..1).is_none();
        (is_even && replicas > 1 && size % replicas != 0).then(|| rule.diagnostic())
    }
}

/// SC0510, before the head has learned anything.
///
/// # Errors
/// SC0510, where it is denied.
pub fn new_head(state: &ModelState, call: &str) -> Result<()> {
    let new = state.files.new_variables();
    let Some((_, shape)) = new.iter().max_by_key(|(_, shape)| shape.len()) else {
        return Ok(());
    };
    if state.has_learned {
        return Ok(());
    }
    let rule = UntrainedHead {
        call: call.to_owned(),
        shape: shape.clone(),
        classes: state.files.classes(),
        variables: new.iter().map(|(name, _)| name.clone()).collect(),
    };
    notice(rule.diagnostic())
}

fn frozen_after_compile(state: &ModelState, compiled: &Compiled) -> Option<Diagnostic> {
    let now = state.frozen();
    let changed: Vec<String> = state
        .step
        .replicas
        .records()
        .iter()
        .filter(|record| now.contains(&record.param) != compiled.frozen.contains(&record.param))
        .map(|record| record.name.clone())
        .collect();
    let rule = FrozenAfterCompile {
        frozen: now.len(),
        variables: state.step.replicas.records().len(),
        changed,
    };
    (!rule.changed.is_empty()).then(|| rule.diagnostic())
}

/// SC0502.
fn schedule(plan: &RatePlan) -> Option<Diagnostic> {
    // A schedule that began in an earlier run may well be at rest in this one, unless it is at 0.
    let warmup = plan.schedule.warmup_steps(plan.steps);
    if plan.schedule.is_constant() || plan.steps < 2 || warmup >= plan.steps {
        return None;
    }
    let points: Vec<(u64, f64)> = plan.points(10_000);
    let (from, to) = (plan.rate(0), plan.rate(plan.steps - 1));
    let last_used = points.iter().rev().find(|point| point.1 > 0.0)?.0;
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let lowest = points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    let fault = if last_used + 2 < plan.steps {
        ScheduleFault::EndsEarly {
            step: last_used + 1,
        }
    } else if warmup > 0 || plan.made > 0 {
        return None;
    } else if highest - lowest < VISIBLE * highest {
        ScheduleFault::Constant { from, to }
    } else if to > from {
        ScheduleFault::Rises { from, to }
    } else {
        return None;
    };
    let rule = IneffectiveSchedule {
        schedule: plan.schedule.to_string(),
        steps: plan.steps,
        fault,
        rates: plan.to_string(),
    };
    Some(rule.diagnostic())
}

/// SC0503.
fn warm_up(plan: &RatePlan) -> Option<Diagnostic> {
    let warmup = plan.schedule.warmup_steps(plan.steps);
    // Of one or two steps nobody expects a shape.
    if warmup == 0 || plan.steps < 3 || plan.made + plan.steps > warmup {
        return None;
    }
    let rule = WarmUpTooLong {
        warmup,
        steps: plan.steps,
        peak: plan.schedule.named_rate(),
        reached: plan.highest(),
        schedule: plan.schedule.to_string(),
    };
    Some(rule.diagnostic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_optim::schedule::{
        CosineDecay, ExponentialDecay, IntoSchedule, PolynomialDecay, bert_warmup, warmup_linear,
    };

    #[track_caller]
    fn check(given: impl IntoSchedule, steps: u64, expected: &[&str]) {
        let plan = given.plan(steps);
        let found: Vec<String> = [schedule(&plan), warm_up(&plan)]
            .into_iter()
            .flatten()
            .map(|finding| format!("{}: {}", finding.code, finding.message))
            .collect();
        assert_eq!(found, expected, "{}", plan.schedule);
    }

    #[test]
    fn reasonable_recipes_are_left_in_peace() {
        for steps in [1, 2, 3, 10, 189, 345, 100_000] {
            check(5e-5, steps, &[]);
            check(warmup_linear(5e-5, 0.1), steps, &[]);
            check(warmup_linear(5e-5, 0.0), steps, &[]);
            check(bert_warmup(5e-5, 0.1), steps, &[]);
            check(CosineDecay::new(5e-5, steps), steps, &[]);
            let line = PolynomialDecay::new(5e-5, steps).end_learning_rate(0.0);
            check(line, steps, &[]);
        }
        check(CosineDecay::new(5e-5, 312).warmup_steps(33), 345, &[]);
        check(ExponentialDecay::new(5e-5, 100, 0.9), 345, &[]);
        let half = CosineDecay::new(5e-5, 100).alpha(0.1);
        check(half, 345, &[]);
    }

    #[test]
    fn a_schedule_of_another_length_is_reported() {
        // The article's own numbers: MRPC, 3668 pairs, batch 32, 3 epochs.
        check(
            ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true),
            345,
            &["SC0502: the rate is constant over the run: 3.000e-5 at all 345 steps"],
        );
        check(
            ExponentialDecay::new(3e-5, 1000, 0.96),
            345,
            &["SC0502: the rate hardly changes over the run: 3.000e-5 to 2.958e-5 in 345 steps"],
        );
        check(
            PolynomialDecay::new(2e-5, 100),
            101,
            &["SC0502: the rate rises over the run: 2.000e-5 to 1.000e-4 in 101 steps"],
        );
        check(
            CosineDecay::new(5e-5, 100),
            345,
            &["SC0502: the rate is 0 from step 100 of 345: the rest of the run changes nothing"],
        );
    }

    #[test]
    fn a_warm_up_beyond_the_run_is_reported() {
        check(
            CosineDecay::new(5e-5, 2000).warmup_steps(1000),
            345,
            &[
                "SC0503: the warm-up of 1000 steps is longer than the run of 345: the rate never comes down",
            ],
        );
        check(
            warmup_linear(5e-5, 1.0),
            345,
            &[
                "SC0503: the warm-up of 345 steps is as long as the run of 345: the rate never comes down",
            ],
        );
        // The second of three runs under one schedule ends the warm-up.
        let plan = RatePlan {
            schedule: CosineDecay::new(5e-5, 2000)
                .warmup_steps(500)
                .into_schedule(),
            made: 345,
            steps: 345,
        };
        assert!(warm_up(&plan).is_none());
    }
}
