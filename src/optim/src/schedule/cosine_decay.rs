//! Keras's `CosineDecay`: `initial · ((1 − alpha) · ½(1 + cos(π·step/decay_steps)) + alpha)`.

use std::f64::consts::PI;
use std::fmt;

use super::curve::{Curve, Problem};

/// Half a cosine from `initial` down to `alpha · initial`, after an optional linear warm-up from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineDecay {
    /// The rate at the top of the cosine.
    pub initial: f64,
    /// Optimizer steps from the top to the bottom; afterwards the rate stays.
    pub decay_steps: u64,
    /// The share of `initial` that is left at the bottom. Default: 0, as in Keras.
    pub alpha: f64,
    /// Steps before the top, in which the rate rises from 0. Default: 0.
    pub warmup_steps: u64,
}

impl CosineDecay {
    /// From `initial` to 0 over `decay_steps` optimizer steps.
    pub fn new(initial: f64, decay_steps: u64) -> Self {
        Self {
            initial,
            decay_steps,
            alpha: 0.0,
            warmup_steps: 0,
        }
    }

    /// The share of the rate that is left at the bottom, from 0 to 1.
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// Optimizer steps in which the rate rises from 0, before the cosine begins.
    pub fn warmup_steps(mut self, steps: u64) -> Self {
        self.warmup_steps = steps;
        self
    }
}

impl Curve for CosineDecay {
    fn rate(&self, step: u64, _total_steps: u64) -> f64 {
        if step < self.warmup_steps {
            return self.initial * (step as f64 / self.warmup_steps as f64);
        }
        let step = (step - self.warmup_steps).min(self.decay_steps);
        let cosine = 0.5 * (1.0 + (PI * step as f64 / self.decay_steps as f64).cos());
        self.initial * ((1.0 - self.alpha) * cosine + self.alpha)
    }

    fn named_rate(&self) -> f64 {
        self.initial
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn rising_steps(&self, _total_steps: u64) -> u64 {
        self.warmup_steps
    }

    fn problem(&self) -> Option<Problem> {
        if self.decay_steps == 0 {
            return Some(("decay_steps", 0.0, "an integer ≥ 1"));
        }
        let share = (0.0..=1.0).contains(&self.alpha);
        (!share).then_some(("alpha", self.alpha, "a share from 0 to 1"))
    }
}

impl fmt::Display for CosineDecay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CosineDecay::new({:e}, {})",
            self.initial, self.decay_steps
        )?;
        if self.alpha != 0.0 {
            write!(f, ".alpha({})", self.alpha)?;
        }
        if self.warmup_steps != 0 {
            write!(f, ".warmup_steps({})", self.warmup_steps)?;
        }
        Ok(())
    }
}
