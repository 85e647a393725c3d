//! Keras's `PolynomialDecay`: `(initial − end) · (1 − step/decay_steps)^power + end`.

use std::fmt;

use stratoscope_diagnostics::arguments::Interval;

use super::curve::{Curve, Problem};

/// From `initial` to `end_learning_rate` along a power, then constant.
///
/// Keras's default end is 1e-4, above the rates BERT is tuned with: `PolynomialDecay::new(2e-5, 100)`
/// rises. `fit!` says so (SC0502); give the end 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolynomialDecay {
    /// The rate of step 0.
    pub initial: f64,
    /// Optimizer steps from the beginning to the end.
    pub decay_steps: u64,
    /// The rate at the end. Default: 1e-4, as in Keras.
    pub end_learning_rate: f64,
    /// The power; 1 is a straight line. Default: 1.
    pub power: f64,
    /// Whether it begins again, each time over a longer stretch, instead of staying at its end.
    /// Default: false.
    pub cycle: bool,
}

impl PolynomialDecay {
    /// In a straight line from `initial` to 1e-4 over `decay_steps` optimizer steps.
    pub fn new(initial: f64, decay_steps: u64) -> Self {
        Self {
            initial,
            decay_steps,
            end_learning_rate: 1e-4,
            power: 1.0,
            cycle: false,
        }
    }

    /// The rate at the end, and after it.
    pub fn end_learning_rate(mut self, rate: f64) -> Self {
        self.end_learning_rate = rate;
        self
    }

    /// The power; 1 is a straight line.
    pub fn power(mut self, power: f64) -> Self {
        self.power = power;
        self
    }

    /// Whether `decay_steps` is doubled, tripled, … as soon as the run goes beyond it.
    pub fn cycle(mut self, cycle: bool) -> Self {
        self.cycle = cycle;
        self
    }
}

impl Curve for PolynomialDecay {
    fn rate(&self, step: u64, _total_steps: u64) -> f64 {
        let (step, length) = match self.cycle {
            true => (
                step,
                self.decay_steps * step.div_ceil(self.decay_steps).max(1),
            ),
            false => (step.min(self.decay_steps), self.decay_steps),
        };
        let left = 1.0 - step as f64 / length as f64;
        (self.initial - self.end_learning_rate) * left.powf(self.power) + self.end_learning_rate
    }

    fn named_rate(&self) -> f64 {
        self.initial
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn problem(&self) -> Option<Problem> {
        let (end, power) = (self.end_learning_rate, self.power);
        if self.decay_steps == 0 {
            return Some(("decay_steps", 0.0, "an integer ≥ 1"));
        }
        if let Some(expects) = Interval::NotNegative.refuses(end) {
            return Some(("end_learning_rate", end, expects));
        }
        let expects = Interval::Positive.refuses(power)?;
        Some(("power", power, expects))
    }
}

impl fmt::Display for PolynomialDecay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PolynomialDecay::new({:e}, {}).end_learning_rate({:e})",
            self.initial, self.decay_steps, self.end_learning_rate
        )?;
        if self.power != 1.0 {
            write!(f, ".power({})", self.power)?;
        }
        if self.cycle {
            f.write_str(".cycle(true)")?;
        }
        Ok(())
    }
}
