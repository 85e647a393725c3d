//! SC0502 `ineffective-schedule`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// What is wrong with a schedule over the steps of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleFault {
    /// It was to decay, and changes by less than 2 %.
    Constant {
        /// The rate of the first step.
        from: f64,
        /// The rate of the last step.
        to: f64,
    },
    /// It was to decay, and ends above its beginning.
    Rises {
        /// The rate of the first step.
        from: f64,
        /// The rate of the last step.
        to: f64,
    },
    /// It is 0 before the run ends.
    EndsEarly {
        /// The first step with the rate 0, counted from 0.
        step: u64,
    },
}

/// A schedule that does nothing, or the reverse of what it is for, in this run.
#[derive(Clone, Debug)]
pub struct IneffectiveSchedule {
    /// The schedule as written: `ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true)`.
    pub schedule: String,
    /// Optimizer steps of the run.
    pub steps: u64,
    /// What is wrong.
    pub fault: ScheduleFault,
    /// The rates at some steps, in words.
    pub rates: String,
}

impl Rule for IneffectiveSchedule {
    const PAGE: RulePage = RulePage {
        code: "SC0502",
        name: "ineffective-schedule",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A decaying schedule whose rate stays the same over the whole run, rises, or is 0 long before the \
                end. It is checked when `fit!` begins, because the number of steps is known only then. An \
                explicit constant rate is not reported.",
        why: "`decay_steps` was chosen for a run of another length. A factor of 0.96 per 1000 steps has no \
              effect in a run of 345 steps; Keras's `PolynomialDecay` ends at 1e-4 by default, which is above \
              BERT's rates; after a cosine schedule has ended, the remaining epochs change nothing.",
        bad: "let decay = ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true);\ncompile!(model, optimizer = AdamW::new(decay), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train, epochs = 3, batch_size = 32)?;",
        good: "compile!(model, optimizer = AdamW::new(warmup_linear(3e-5, 0.1)), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train, epochs = 3, batch_size = 32)?;",
        tensorflow: tensorflow::page("SC0502"),
    };

    const GIVEN: &'static [&'static str] = &["let train = train.take(48);"];

    fn diagnostic(&self) -> Diagnostic {
        let steps = self.steps;
        let (message, why) = match &self.fault {
            ScheduleFault::Constant { from, to } if from == to => (
                format!("the rate is constant over the run: {from:.3e} at all {steps} steps"),
                "the schedule starts to act after this run ends",
            ),
            ScheduleFault::Constant { from, to } => (
                format!(
                    "the rate hardly changes over the run: {from:.3e} to {to:.3e} in {steps} steps"
                ),
                "the schedule starts to act after this run ends",
            ),
            ScheduleFault::Rises { from, to } => (
                format!("the rate rises over the run: {from:.3e} to {to:.3e} in {steps} steps"),
                if self.schedule.starts_with("PolynomialDecay") {
                    "the schedule ends above its start; Keras's `PolynomialDecay` ends at 1e-4 by default"
                } else {
                    "the schedule ends above its start: a factor above 1 raises the rate"
                },
            ),
            ScheduleFault::EndsEarly { step } => (
                format!(
                    "the rate is 0 from step {step} of {steps}: the rest of the run changes nothing"
                ),
                "the schedule is shorter than the run",
            ),
        };
        Self::start(message)
            .label(
                Place::call("fit"),
                format!("a run of {steps} optimizer steps"),
            )
            .why(why)
            .evidence("schedule", self.schedule.clone())
            .evidence("rates", self.rates.clone())
            .fix("use a schedule that spans the run: `warmup_linear(5e-5, 0.1)`")
            .fix(format!(
                "or set its `decay_steps` to {steps} and its final rate to 0"
            ))
            .tensorflow(Quote::of("SC0502"))
    }
}
