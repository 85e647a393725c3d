//! The learning rate as a pure function of the optimizer step.
//!
//! `step` is the number of optimizer steps already done, so the first update uses `rate(0, …)`.
//! A schedule is a file with an implementation of `Curve`, and a row in `list.rs`. Keras argument: `learning_rate`.

mod bert_warmup;
mod constant;
mod cosine_decay;
mod curve;
mod exponential_decay;
mod list;
mod plan;
mod polynomial_decay;
pub mod span;
mod warmup_linear;

use std::fmt;

use stratoscope_diagnostics::arguments::Interval;

pub use bert_warmup::{BertWarmup, bert_warmup};
pub use constant::constant;
pub use cosine_decay::CosineDecay;
pub use exponential_decay::ExponentialDecay;
pub use list::Schedule;
pub use plan::{RatePlan, short};
pub use polynomial_decay::PolynomialDecay;
pub use warmup_linear::{WarmupLinear, warmup_linear};

impl Schedule {
    /// The rate of the update after `step` updates, in a run of `total_steps` updates.
    ///
    /// Only schedules that are written as a share of the run look at `total_steps`.
    pub fn rate(&self, step: u64, total_steps: u64) -> f64 {
        self.curve().rate(step, total_steps)
    }

    /// Whether it spans one run, and so begins again with every `fit!`. The others count the
    /// optimizer's steps since `compile!`, as in Keras.
    pub fn spans_the_run(&self) -> bool {
        self.curve().spans_the_run()
    }

    /// Whether it was asked for as one rate.
    pub fn is_constant(&self) -> bool {
        self.curve().is_constant()
    }

    /// The rate it is named by: that of its beginning, or of the end of its warm-up.
    pub fn named_rate(&self) -> f64 {
        self.curve().named_rate()
    }

    /// Optimizer steps in which it rises to that rate, in a run of `total_steps`.
    pub fn warmup_steps(&self, total_steps: u64) -> u64 {
        self.curve().rising_steps(total_steps)
    }

    /// The first number that makes no schedule: its name, its value and what it must be.
    pub(crate) fn problem(&self) -> Option<curve::Problem> {
        let rate = self.named_rate();
        if let Some(expects) = Interval::NotNegative.refuses(rate) {
            return Some(("learning_rate", rate, expects));
        }
        self.curve().problem()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.curve().show(f)
    }
}

/// What an optimizer takes as its rate: a number or a schedule.
#[diagnostic::on_unimplemented(
    message = "expected a learning rate, got `{Self}`",
    label = "a number such as 5e-5, or a schedule such as `warmup_linear(5e-5, 0.1)`"
)]
pub trait IntoSchedule {
    /// The schedule.
    fn into_schedule(self) -> Schedule;

    /// Its rates in a run of `steps` optimizer steps, to be looked at before the run:
    /// `warmup_linear(5e-5, 0.1).plan(189)`.
    fn plan(self, steps: u64) -> RatePlan
    where
        Self: Sized,
    {
        RatePlan {
            schedule: self.into_schedule(),
            made: 0,
            steps,
        }
    }
}

impl IntoSchedule for Schedule {
    fn into_schedule(self) -> Schedule {
        self
    }
}

impl IntoSchedule for f32 {
    /// The number as it was typed: 5e-5, not the nearest f32 of it.
    fn into_schedule(self) -> Schedule {
        let rate = format!("{self:e}")
            .parse()
            .unwrap_or_else(|_| f64::from(self));
        Schedule::Constant(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates at some steps of a run of `total` steps, within rounding of an f64.
    fn check(schedule: impl IntoSchedule, total: u64, expected: &[(u64, f64)]) {
        let schedule = schedule.into_schedule();
        for &(step, rate) in expected {
            let found = schedule.rate(step, total);
            let allowed = 1e-15 + 1e-12 * rate.abs();
            assert!(
                (found - rate).abs() <= allowed,
                "{schedule}, step {step}: {found}, not {rate}"
            );
        }
    }

    #[test]
    fn every_schedule_by_its_table() {
        check(5e-5, 100, &[(0, 5e-5), (99, 5e-5)]);
        check(constant(1e-3), 1, &[(0, 1e-3), (7, 1e-3)]);
        // Hugging Face's formula: 0 at step 0, the peak when warm-up ends, then over N − W.
        check(
            warmup_linear(0.01, 0.1),
            20,
            &[
                (0, 0.0),
                (1, 0.005),
                (2, 0.01),
                (3, 0.009_444_444_444_444_445),
                (20, 0.0),
            ],
        );
        check(
            warmup_linear(1.0, 0.0),
            4,
            &[(0, 1.0), (1, 0.75), (4, 0.0), (9, 0.0)],
        );
        check(warmup_linear(1.0, 1.0), 4, &[(0, 0.0), (3, 0.75), (4, 0.0)]);
        check(warmup_linear(1.0, 0.5), 0, &[(0, 0.0)]);
        // Google's: over all N, so 0.9 of the peak is left when warm-up ends.
        check(
            bert_warmup(1.0, 0.1),
            100,
            &[(0, 0.0), (9, 0.9), (10, 0.9), (50, 0.5), (100, 0.0)],
        );
        check(bert_warmup(1.0, 0.5), 0, &[(0, 0.0)]);
        // Keras's default end is above BERT's rates.
        check(
            PolynomialDecay::new(2e-5, 100),
            0,
            &[(0, 2e-5), (50, 6e-5), (100, 1e-4), (200, 1e-4)],
        );
        let square = PolynomialDecay::new(1.0, 4)
            .end_learning_rate(0.0)
            .power(2.0);
        check(square, 0, &[(0, 1.0), (1, 0.5625), (2, 0.25), (4, 0.0)]);
        let cycle = PolynomialDecay::new(1.0, 4)
            .end_learning_rate(0.0)
            .cycle(true);
        check(
            cycle,
            0,
            &[(0, 1.0), (4, 0.0), (5, 0.375), (8, 0.0), (9, 0.25)],
        );
        // Keras: constant while step < decay_steps when it is a staircase.
        let staircase = ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true);
        check(
            staircase,
            0,
            &[(0, 3e-5), (999, 3e-5), (1000, 2.88e-5), (2000, 2.7648e-5)],
        );
        check(
            ExponentialDecay::new(1.0, 2, 0.25),
            0,
            &[(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.125)],
        );
        check(
            CosineDecay::new(2.0, 4),
            0,
            &[(0, 2.0), (2, 1.0), (4, 0.0), (9, 0.0)],
        );
        check(
            CosineDecay::new(2.0, 4).alpha(0.5),
            0,
            &[(0, 2.0), (2, 1.5), (4, 1.0)],
        );
        check(
            CosineDecay::new(2.0, 4).warmup_steps(2),
            0,
            &[(0, 0.0), (1, 1.0), (2, 2.0), (4, 1.0), (6, 0.0)],
        );
    }

    #[test]
    fn a_single_precision_literal_is_taken_as_typed() {
        assert_eq!(5e-5_f32.into_schedule(), Schedule::Constant(5e-5));
    }

    #[test]
    fn what_makes_no_schedule_is_named() {
        let name = |schedule: Schedule| schedule.problem().map(|(name, ..)| name);
        assert_eq!(name(constant(0.0)), None);
        assert_eq!(name(constant(-1.0)), Some("learning_rate"));
        assert_eq!(name(constant(f64::NAN)), Some("learning_rate"));
        assert_eq!(
            name(warmup_linear(1.0, 1.5).into_schedule()),
            Some("warmup")
        );
        assert_eq!(
            name(CosineDecay::new(1.0, 0).into_schedule()),
            Some("decay_steps")
        );
        let polynomial = PolynomialDecay::new(1.0, 4);
        assert_eq!(
            name(polynomial.end_learning_rate(-1.0).into_schedule()),
            Some("end_learning_rate")
        );
        assert_eq!(name(polynomial.power(0.0).into_schedule()), Some("power"));
        assert_eq!(
            name(ExponentialDecay::new(1.0, 0, 0.5).into_schedule()),
            Some("decay_steps")
        );
        assert_eq!(
            name(ExponentialDecay::new(1.0, 1, -0.5).into_schedule()),
            Some("decay_rate")
        );
    }
}
