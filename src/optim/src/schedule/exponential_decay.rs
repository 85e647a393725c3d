//! Keras's `ExponentialDecay`: `initial · rate ^ (step / decay_steps)`.

use std::fmt;

use stratoscope_diagnostics::arguments::Interval;

use super::curve::{Curve, Problem};

/// Multiplies the rate by a factor every `decay_steps` optimizer steps.
///
/// With `staircase` the rate is constant in between: it does not change at all in a run that is
/// shorter than `decay_steps`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialDecay {
    /// The rate of step 0.
    pub initial: f64,
    /// Optimizer steps to one factor.
    pub decay_steps: u64,
    /// The factor.
    pub decay_rate: f64,
    /// Whether the rate falls in steps instead of smoothly.
    pub staircase: bool,
}

impl ExponentialDecay {
    /// Smooth decay from `initial` by the factor `decay_rate` every `decay_steps` steps.
    pub fn new(initial: f64, decay_steps: u64, decay_rate: f64) -> Self {
        Self {
            initial,
            decay_steps,
            decay_rate,
            staircase: false,
        }
    }

    /// Whether the rate falls in steps: the exponent is rounded down. Default: false, as in Keras.
    pub fn staircase(mut self, staircase: bool) -> Self {
        self.staircase = staircase;
        self
    }
}

impl Curve for ExponentialDecay {
    fn rate(&self, step: u64, _total_steps: u64) -> f64 {
        let exponent = step as f64 / self.decay_steps as f64;
        let exponent = if self.staircase {
            exponent.floor()
        } else {
            exponent
        };
        self.initial * self.decay_rate.powf(exponent)
    }

    fn named_rate(&self) -> f64 {
        self.initial
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn problem(&self) -> Option<Problem> {
        if self.decay_steps == 0 {
            return Some(("decay_steps", 0.0, "an integer ≥ 1"));
        }
        let expects = Interval::Positive.refuses(self.decay_rate)?;
        Some(("decay_rate", self.decay_rate, expects))
    }
}

impl fmt::Display for ExponentialDecay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let staircase = if self.staircase {
            ".staircase(true)"
        } else {
            ""
        };
        let Self {
            initial,
            decay_steps,
            decay_rate,
            ..
        } = self;
        write!(
            f,
            "ExponentialDecay::new({initial:e}, {decay_steps}, {decay_rate}){staircase}"
        )
    }
}
