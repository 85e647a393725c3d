//! Adafactor: squared gradients by row and column, steps in proportion to the weights. Source: Shazeer and Stern 2018,
//! "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", algorithms 4 to 6, in Keras's form. At step `t`, with
//! `β = 1 − tᵇ` and `ρ` the rate, at most 1/√t:
//!
//! - of a matrix `r = β r + (1 − β) mean(g² + ε₁)` over each row, `c` over each column, and `v = r c / mean(r)`; of a vector
//!   `v = β v + (1 − β) (g² + ε₁)`;
//! - `u = g / √v`, divided by `max(1, rms(u) / threshold)`;
//! - `w -= max(ε₂, rms(w)) · ρ · u`.
//!
//! Keras holds the rate at 1/√t also with `relative_step=False`; here it is then the rate as given.

use stratoscope_diagnostics::Result;

use super::builder::Common;
use super::{AdafactorRule, IntoOptimizer, Optimizer, UpdateRule};
use crate::schedule::IntoSchedule;

/// Adafactor, which keeps two numbers beside each row and column of a matrix in place of two beside each weight.
#[derive(Clone, Debug)]
pub struct Adafactor {
    common: Common,
    rule: AdafactorRule,
}

impl Adafactor {
    /// With a rate or a schedule: `Adafactor::new(1e-3)`.
    pub fn new(learning_rate: impl IntoSchedule) -> Self {
        Self {
            common: Common::new(learning_rate),
            rule: AdafactorRule {
                beta_2_decay: -0.8,
                epsilon_1: 1e-30,
                epsilon_2: 1e-3,
                clip_threshold: 1.0,
                relative_step: true,
                weight_decay: 0.0,
            },
        }
    }

    /// The old means of the squared gradients have the share `1 − stepᵇ` in the new ones, with this as `b`, from −1, below 0.
    /// Default: −0.8.
    pub fn beta_2_decay(self, beta_2_decay: f64) -> Self {
        self.with(|own| own.rule.beta_2_decay = beta_2_decay)
    }

    /// Added to every squared gradient, above 0. Default: 1e-30.
    pub fn epsilon_1(self, epsilon_1: f64) -> Self {
        self.with(|own| own.rule.epsilon_1 = epsilon_1)
    }

    /// A step of a variable is the rate times its root mean square, or times this where that is larger. Default: 1e-3.
    pub fn epsilon_2(self, epsilon_2: f64) -> Self {
        self.with(|own| own.rule.epsilon_2 = epsilon_2)
    }

    /// A direction of a larger root mean square is shortened to it; 1 or more. Default: 1.
    pub fn clip_threshold(self, clip_threshold: f64) -> Self {
        self.with(|own| own.rule.clip_threshold = clip_threshold)
    }

    /// Holds the rate at 1/√step or below. Default: true.
    pub fn relative_step(self, relative_step: bool) -> Self {
        self.with(|own| own.rule.relative_step = relative_step)
    }

    /// `w -= rate · decay · w` before each step, as in Keras. Default: 0.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.with(|own| own.rule.weight_decay = weight_decay)
    }

    offered_with_weight_decay!();

    offered_by_every_optimizer!();
}

impl IntoOptimizer for Adafactor {
    fn into_optimizer(self) -> Result<Optimizer> {
        self.common
            .resolve("Adafactor", UpdateRule::Adafactor(self.rule))
    }
}
