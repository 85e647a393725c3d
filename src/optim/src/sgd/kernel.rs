//! Gradient descent on slices.

use rayon::prelude::*;

use crate::change::{Change, updated};
use crate::kernel::{BLOCK, Pass, Prepare, with_one_kept};

/// Gradient descent at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SgdStep {
    pub rate: f32,
    pub momentum: f32,
    pub nesterov: bool,
}

/// Without momentum: `velocity` is not needed.
pub(super) fn sgd(weights: &mut [f32], gradients: &[f32], pass: Pass, step: SgdStep) -> Change {
    let blocks = weights
        .par_chunks_mut(BLOCK)
        .zip(gradients.par_chunks(BLOCK));
    let changes = blocks.map(|(weights, gradients)| {
        updated(weights, pass.is_measured, |weights, at| {
            sgd_block(weights, &gradients[at], pass.prepare, step);
        })
    });
    let changes: Vec<Change> = changes.collect();
    changes.into_iter().sum()
}

pub(super) fn sgd_block(weights: &mut [f32], gradients: &[f32], prepare: Prepare, step: SgdStep) {
    for (weight, &gradient) in weights.iter_mut().zip(gradients) {
        *weight -= step.rate * prepare.of::<true>(gradient);
    }
}

/// With momentum.
pub(super) fn sgd_with_momentum(
    weights: &mut [f32],
    velocity: &mut [f32],
    gradients: &[f32],
    pass: Pass,
    step: SgdStep,
) -> Change {
    with_one_kept(
        weights,
        velocity,
        gradients,
        pass,
        |weights, velocity, gradients| {
            momentum_block(weights, velocity, gradients, pass.prepare, step);
        },
    )
}

pub(super) fn momentum_block(
    weights: &mut [f32],
    velocity: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: SgdStep,
) {
    for ((weight, velocity), &gradient) in weights.iter_mut().zip(velocity).zip(gradients) {
        let move_by = step.rate * prepare.of::<true>(gradient);
        *velocity = step.momentum * *velocity - move_by;
        *weight += match step.nesterov {
            true => step.momentum * *velocity - move_by,
            false => *velocity,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Pass = Pass::PLAIN;

    #[test]
    fn sgd_is_keras_formula() {
        // v₁ = −0.1, w = 0.9; v₂ = −0.05 − 0.2 = −0.25, w = 0.65
        let step = SgdStep {
            rate: 0.1,
            momentum: 0.5,
            nesterov: false,
        };
        let (mut weight, mut velocity) = ([1.0_f32], [0.0]);
        sgd_with_momentum(&mut weight, &mut velocity, &[1.0], PLAIN, step);
        sgd_with_momentum(&mut weight, &mut velocity, &[2.0], PLAIN, step);
        assert!((weight[0] - 0.65).abs() < 1e-6, "{}", weight[0]);
        // Nesterov: w = 1 + 0.5·(−0.1) − 0.1 = 0.85
        let (mut weight, mut velocity) = ([1.0_f32], [0.0]);
        let step = SgdStep {
            nesterov: true,
            ..step
        };
        sgd_with_momentum(&mut weight, &mut velocity, &[1.0], PLAIN, step);
        assert!((weight[0] - 0.85).abs() < 1e-6, "{}", weight[0]);
        let mut weight = [1.0_f32];
        sgd(
            &mut weight,
            &[30.0],
            Pass {
                prepare: Prepare {
                    factor: 0.1,
                    limit: 2.0,
                },
                is_measured: false,
            },
            step,
        );
        assert!((weight[0] - 0.8).abs() < 1e-6, "{}", weight[0]);
    }

    #[test]
    fn every_weight_moves() {
        for length in [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, 2 * BLOCK + 3] {
            let values: Vec<f32> = (0..length).map(|i| (i % 5) as f32).collect();
            let mut weights = values.clone();
            let step = SgdStep {
                rate: 1.0,
                momentum: 0.0,
                nesterov: false,
            };
            sgd(&mut weights, &values, PLAIN, step);
            assert!(weights.iter().all(|&weight| weight == 0.0), "{length}");
        }
    }
}
