//! Up in a straight line, then down with the inverse square root of the step. Source: Vaswani et al. 2017, "Attention Is All You Need",
//! formula 3: `rate = d^−½ · min(n^−½, n · w^−3/2)` at step n, counted from 1, with a warm-up of w steps. At its peak, at step w, this
//! is `d^−½ · w^−½`.

use std::fmt;

use super::curve::{Curve, Problem};

/// Rises to `peak` in `warmup_steps` optimizer steps, then falls with the inverse square root of the step, without an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InverseSquareRoot {
    /// The highest rate.
    pub peak: f64,
    /// The step with the highest rate, counted from 1.
    pub warmup_steps: u64,
}

impl InverseSquareRoot {
    /// With this rate at the end of a warm-up of so many optimizer steps.
    pub fn new(peak: f64, warmup_steps: u64) -> Self {
        Self { peak, warmup_steps }
    }
}

impl Curve for InverseSquareRoot {
    fn rate(&self, step: u64, _total_steps: u64) -> f64 {
        let (number, warmup) = ((step + 1) as f64, self.warmup_steps as f64);
        self.peak * (number / warmup).min((warmup / number).sqrt())
    }

    fn named_rate(&self) -> f64 {
        self.peak
    }

    fn rising_steps(&self, _total_steps: u64) -> u64 {
        self.warmup_steps
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peak, warmup_steps } = self;
        write!(f, "InverseSquareRoot::new({peak:e}, {warmup_steps})")
    }

    fn problem(&self) -> Option<Problem> {
        (self.warmup_steps == 0).then_some(("warmup_steps", 0.0, "an integer ≥ 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::IntoSchedule;

    /// The base model of the paper: d = 512 and a warm-up of 4000 steps.
    #[test]
    fn the_rates_of_the_paper() {
        let (width, warmup) = (512.0_f64, 4000.0_f64);
        let schedule = InverseSquareRoot::new((width * warmup).powf(-0.5), 4000).into_schedule();
        for number in [1, 2000, 4000, 4001, 16_000, 100_000_u64] {
            let at = number as f64;
            let expected = width.powf(-0.5) * at.powf(-0.5).min(at * warmup.powf(-1.5));
            let found = schedule.rate(number - 1, 0);
            assert!(
                (found - expected).abs() < 1e-12 * expected,
                "{number}: {found}"
            );
        }
        // √512 · √4000 is 1431.08.
        assert!((schedule.named_rate() - 6.9877e-4).abs() < 1e-8);
        assert_eq!(schedule.warmup_steps(100_000), 4000);
        assert!(!schedule.spans_the_run());
    }

    #[test]
    fn it_is_shown_as_written_and_checked() {
        let schedule = InverseSquareRoot::new(1e-3, 100).into_schedule();
        assert_eq!(schedule.to_string(), "InverseSquareRoot::new(1e-3, 100)");
        assert_eq!(schedule.problem(), None);
        let none = InverseSquareRoot::new(1e-3, 0).into_schedule();
        assert_eq!(none.problem().map(|(name, ..)| name), Some("warmup_steps"));
    }
}
