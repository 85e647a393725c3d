//! The rates of a run before it begins: where they start, how high they go, where they end.

use std::fmt;

use super::Schedule;

/// A schedule laid over the steps of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePlan {
    /// The schedule.
    pub schedule: Schedule,
    /// Optimizer steps made before the run; what schedules that do not span a run count from.
    pub made: u64,
    /// Optimizer steps of the run.
    pub steps: u64,
}

impl RatePlan {
    /// The rate of a step of the run, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let counted = match self.schedule.spans_the_run() {
            true => step,
            false => self.made + step,
        };
        self.schedule.rate(counted, self.steps)
    }

    /// Step and rate at the beginning, at 10 % and 50 % of the run, and at its last step.
    pub fn marks(&self) -> Vec<(u64, f64)> {
        let last = self.steps.saturating_sub(1);
        let mut marks = vec![0, self.steps / 10, self.steps / 2, last];
        marks.retain(|&step| step <= last);
        marks.dedup();
        marks
            .into_iter()
            .map(|step| (step, self.rate(step)))
            .collect()
    }

    /// Step and rate, at most `most` of them, evenly spread, the first and the last step among them.
    pub fn points(&self, most: u64) -> Vec<(u64, f64)> {
        let last = self.steps.saturating_sub(1);
        let most = most.max(2).min(self.steps.max(1));
        let step = |index: u64| (last as f64 * index as f64 / (most.max(2) - 1) as f64) as u64;
        let mut steps: Vec<u64> = (0..most).map(step).collect();
        steps.dedup();
        steps
            .into_iter()
            .map(|step| (step, self.rate(step)))
            .collect()
    }

    /// The highest rate of the run.
    pub fn highest(&self) -> f64 {
        // Every step of a run of usual length, some of a very long one.
        self.points(10_000)
            .iter()
            .map(|point| point.1)
            .fold(0.0, f64::max)
    }
}

impl fmt::Display for RatePlan {
    /// `0 at step 0, 5e-5 at 18, 2.778e-5 at 94, 2.942e-7 at 187`, or `constant 5e-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.schedule.is_constant() {
            return write!(f, "constant {}", short(self.rate(0)));
        }
        for (index, (step, rate)) in self.marks().into_iter().enumerate() {
            let rate = short(rate);
            match index {
                0 => write!(f, "{rate} at step {step}")?,
                _ => write!(f, ", {rate} at {step}")?,
            }
        }
        Ok(())
    }
}

/// A rate with at most four digits: `5e-5`, `2.778e-5`, `0`.
pub fn short(rate: f64) -> String {
    if rate == 0.0 {
        return "0".to_owned();
    }
    let rounded = format!("{rate:.3e}").parse().unwrap_or(rate);
    format!("{rounded:e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{ExponentialDecay, IntoSchedule, warmup_linear};

    #[test]
    fn four_marks_of_a_run() {
        let plan = warmup_linear(5e-5, 0.1).plan(189);
        assert_eq!(
            plan.to_string(),
            "0 at step 0, 5e-5 at 18, 2.778e-5 at 94, 2.924e-7 at 188"
        );
        assert_eq!(plan.highest(), 5e-5);
        assert_eq!((plan.points(5).len(), plan.points(5)[4].0), (5, 188));
        assert_eq!(5e-5.plan(1).to_string(), "constant 5e-5");
        assert_eq!(5e-5.plan(0).points(9).len(), 1);
    }

    #[test]
    fn a_schedule_goes_on_where_the_last_run_ended() {
        let plan = RatePlan {
            schedule: ExponentialDecay::new(1.0, 10, 0.5).into_schedule(),
            made: 20,
            steps: 11,
        };
        assert_eq!((plan.rate(0), plan.rate(10)), (0.25, 0.125));
    }
}
