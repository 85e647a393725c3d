//! Lion on slices.

use super::{Pass, Prepare, with_one_kept};
use crate::LionRule;
use crate::change::Change;

/// Lion at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LionStep {
    pub rate: f32,
    pub beta_1: f32,
    pub beta_2: f32,
    /// 1 − rate · weight decay.
    pub keep: f32,
}

impl LionStep {
    pub fn new(rule: &LionRule, rate: f64, decay: f64) -> Self {
        Self {
            rate: rate as f32,
            beta_1: rule.beta_1 as f32,
            beta_2: rule.beta_2 as f32,
            keep: (1.0 - rate * decay) as f32,
        }
    }
}

/// Slices of equal length.
pub(crate) fn lion(
    weights: &mut [f32],
    momentum: &mut [f32],
    gradients: &[f32],
    pass: Pass,
    step: LionStep,
) -> Change {
    with_one_kept(
        weights,
        momentum,
        gradients,
        pass,
        |weights, momentum, gradients| {
            block(weights, momentum, gradients, pass.prepare, step);
        },
    )
}

pub(super) fn block(
    weights: &mut [f32],
    momentum: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: LionStep,
) {
    for ((weight, momentum), &gradient) in weights.iter_mut().zip(momentum).zip(gradients) {
        let gradient = prepare.of::<true>(gradient);
        let direction = step.beta_1 * *momentum + (1.0 - step.beta_1) * gradient;
        // Not `signum`, which is 1 for 0; NaN stays NaN.
        let sign = match direction {
            positive if positive > 0.0 => 1.0,
            negative if negative < 0.0 => -1.0,
            other => other,
        };
        *weight = *weight * step.keep - step.rate * sign;
        *momentum = step.beta_2 * *momentum + (1.0 - step.beta_2) * gradient;
    }
}
