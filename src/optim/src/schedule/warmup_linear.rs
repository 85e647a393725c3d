//! Warm-up, then linear decay to 0: the schedule BERT is fine-tuned with.
//! Source: transformers v4.57.1 `optimization.py`, `get_linear_schedule_with_warmup`. Google's own
//! (google-research/bert@eedf571 `optimization.py`) decays over all N steps, so that the rate drops
//! at the end of warm-up; this one decays over the N − W steps that are left.

use std::fmt;

use super::curve::{Curve, Problem};

/// From 0 to `peak` over the first `warmup` of the run, then to 0 over the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupLinear {
    /// The highest rate.
    pub peak: f64,
    /// The share of all steps that warms up, from 0 to 1.
    pub warmup: f64,
}

/// `peak` after the first `warmup` of the run (0.1 = 10 %), 0 at its beginning and its end.
///
/// The rate of step 0 is 0: the first update moves no weight, it only fills the moments.
pub fn warmup_linear(peak: f64, warmup: f64) -> WarmupLinear {
    WarmupLinear { peak, warmup }
}

impl WarmupLinear {
    /// Steps of warm-up in a run of `total_steps`, rounded down.
    pub fn warmup_steps(&self, total_steps: u64) -> u64 {
        // The share is a decimal fraction: 0.29 of 100 steps are 29, not 28.999….
        ((self.warmup * total_steps as f64) * (1.0 + f64::EPSILON)) as u64
    }
}

impl Curve for WarmupLinear {
    fn rate(&self, step: u64, total_steps: u64) -> f64 {
        let warmup_steps = self.warmup_steps(total_steps);
        let share = if step < warmup_steps {
            step as f64 / warmup_steps as f64
        } else {
            let left = total_steps.saturating_sub(step) as f64;
            left / total_steps.saturating_sub(warmup_steps).max(1) as f64
        };
        self.peak * share
    }

    fn named_rate(&self) -> f64 {
        self.peak
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn spans_the_run(&self) -> bool {
        true
    }

    fn rising_steps(&self, total_steps: u64) -> u64 {
        self.warmup_steps(total_steps)
    }

    fn problem(&self) -> Option<Problem> {
        (!(0.0..=1.0).contains(&self.warmup)).then_some((
            "warmup",
            self.warmup,
            "a share of the run from 0 to 1",
        ))
    }
}

impl fmt::Display for WarmupLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warmup_linear({:e}, {})", self.peak, self.warmup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_steps_is_a_decimal_fraction() {
        for (share, total, expected) in [
            (0.29, 100, 29),
            (0.07, 100, 7),
            (0.57, 100, 57),
            (0.1, 99, 9),
            (0.0, 10, 0),
            (1.0, 10, 10),
        ] {
            let schedule = warmup_linear(1e-3, share);
            assert_eq!(schedule.warmup_steps(total), expected, "{share} of {total}");
        }
    }
}
