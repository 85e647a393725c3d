//! Lion on slices.

use crate::LionRule;
use crate::change::Change;
use crate::kernel::{Pass, Prepare, with_one_kept};

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

pub(crate) fn block(
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Pass = Pass::PLAIN;

    /// Keras's formula in f64.
    #[test]
    fn lion_is_its_definition() {
        let rule = LionRule {
            beta_1: 0.9,
            beta_2: 0.5,
            weight_decay: 0.1,
        };
        let step = LionStep::new(&rule, 0.01, rule.weight_decay);
        let (mut weight, mut kept) = ([0.5_f32], [0.0_f32]);
        // Directions: 0.03; 0.9 · 0.15 − 0.02 > 0; 0; the momentum is 0.15, −0.025, −0.0125.
        let mut expected = 0.5_f64;
        for (gradient, sign) in [(0.3_f32, 1.0), (-0.2, 1.0), (0.0, -1.0), (0.1125, 0.0)] {
            lion(&mut weight, &mut kept, &[gradient], PLAIN, step);
            expected = expected * (1.0 - 0.001) - 0.01 * sign;
            // 0.9 · −0.0125 + 0.1 · 0.1125 is 0 but for its rounding.
            let close = if sign == 0.0 { 0.0101 } else { 1e-6 };
            assert!(
                (f64::from(weight[0]) - expected).abs() < close,
                "{weight:?} {expected}"
            );
        }
        let (mut weight, mut kept) = ([0.5_f32], [0.0_f32]);
        lion(&mut weight, &mut kept, &[0.0], PLAIN, step);
        assert!(
            (weight[0] - 0.4995).abs() < 1e-6,
            "without a direction it only decays"
        );
    }
}
