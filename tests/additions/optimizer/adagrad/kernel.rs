//! AdaGrad on slices.

use crate::change::Change;
use crate::kernel::{Pass, Prepare, with_one_kept};

/// AdaGrad at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdagradStep {
    pub rate: f32,
    pub epsilon: f32,
}

/// Slices of equal length.
pub(crate) fn adagrad(
    weights: &mut [f32],
    sums: &mut [f32],
    gradients: &[f32],
    pass: Pass,
    step: AdagradStep,
) -> Change {
    with_one_kept(
        weights,
        sums,
        gradients,
        pass,
        |weights, sums, gradients| {
            block(weights, sums, gradients, pass.prepare, step);
        },
    )
}

pub(crate) fn block(
    weights: &mut [f32],
    sums: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: AdagradStep,
) {
    for ((weight, sum), &gradient) in weights.iter_mut().zip(sums).zip(gradients) {
        let gradient = prepare.of::<true>(gradient);
        *sum += gradient * gradient;
        *weight -= step.rate * gradient / (sum.sqrt() + step.epsilon);
    }
}
