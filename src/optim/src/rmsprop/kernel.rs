//! RMSprop on slices.

use rayon::prelude::*;

use crate::RmspropRule;
use crate::change::{Change, updated};
use crate::kernel::{BLOCK, Pass, Prepare};

/// RMSprop at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RmspropStep {
    pub rate: f32,
    pub rho: f32,
    pub momentum: f32,
    pub epsilon: f32,
}

impl RmspropStep {
    pub fn new(rule: &RmspropRule, rate: f64) -> Self {
        Self {
            rate: rate as f32,
            rho: rule.rho as f32,
            momentum: rule.momentum as f32,
            epsilon: rule.epsilon as f32,
        }
    }
}

/// Slices of equal length. `velocity` is empty without momentum, `means` unless it is centered.
pub(crate) fn rmsprop(
    weights: &mut [f32],
    velocity: &mut [f32],
    squares: &mut [f32],
    means: &mut [f32],
    gradients: &[f32],
    pass: Pass,
    step: RmspropStep,
) -> Change {
    let count = weights.len();
    let (velocity, means) = (Blocks::of(velocity, count), Blocks::of(means, count));
    let blocks = weights
        .par_chunks_mut(BLOCK)
        .zip(squares.par_chunks_mut(BLOCK))
        .zip(gradients.par_chunks(BLOCK))
        .zip(velocity.0.into_par_iter().zip(means.0));
    let changes = blocks.map(|(((weights, squares), gradients), (velocity, means))| {
        updated(weights, pass.is_measured, |weights, at| {
            let part = |values: &mut [f32]| match values.is_empty() {
                true => 0..0,
                false => at.clone(),
            };
            let (velocity_at, means_at) = (part(velocity), part(means));
            block(
                weights,
                &mut velocity[velocity_at],
                &mut squares[at.clone()],
                &mut means[means_at],
                &gradients[at],
                pass.prepare,
                step,
            );
        })
    });
    let changes: Vec<Change> = changes.collect();
    changes.into_iter().sum()
}

/// The blocks of a slice; as many empty ones where it is empty.
struct Blocks<'a>(Vec<&'a mut [f32]>);

impl<'a> Blocks<'a> {
    fn of(values: &'a mut [f32], count: usize) -> Self {
        match values.is_empty() {
            true => Self((0..count.div_ceil(BLOCK)).map(|_| &mut [][..]).collect()),
            false => Self(values.chunks_mut(BLOCK).collect()),
        }
    }
}

pub(crate) fn block(
    weights: &mut [f32],
    velocity: &mut [f32],
    squares: &mut [f32],
    means: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: RmspropStep,
) {
    let others = 1.0 - step.rho;
    for (i, (weight, square)) in weights.iter_mut().zip(squares).enumerate() {
        let gradient = prepare.of::<true>(gradients[i]);
        *square = step.rho * *square + others * (gradient * gradient);
        let spread = match means.get_mut(i) {
            Some(mean) => {
                *mean = step.rho * *mean + others * gradient;
                *square - *mean * *mean
            }
            None => *square,
        };
        let move_by = step.rate * gradient / (spread + step.epsilon).sqrt();
        *weight -= match velocity.get_mut(i) {
            Some(velocity) => {
                *velocity = step.momentum * *velocity + move_by;
                *velocity
            }
            None => move_by,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Pass = Pass::PLAIN;

    /// Keras's formula in f64, with the numbers of four steps.
    #[test]
    fn rmsprop_is_its_definition() {
        let gradients = [0.3_f64, -0.2, 0.05, 1.0];
        let (rate, rho, momentum, epsilon) = (0.01, 0.9, 0.5, 1e-7);
        for (has_momentum, is_centered) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let (mut weight, mut square, mut mean, mut moved) = (0.5, 0.0, 0.0, 0.0);
            let mut found = [0.5_f32];
            let (mut v, mut m, mut u) = ([0.0_f32], [0.0_f32], [0.0_f32]);
            let rule = RmspropRule {
                rho,
                momentum,
                epsilon,
                centered: is_centered,
            };
            for &gradient in &gradients {
                square = rho * square + (1.0 - rho) * gradient * gradient;
                mean = rho * mean + (1.0 - rho) * gradient;
                let spread = if is_centered {
                    square - mean * mean
                } else {
                    square
                };
                let step = rate * gradient / f64::sqrt(spread + epsilon);
                moved = if has_momentum {
                    momentum * moved + step
                } else {
                    step
                };
                weight -= moved;
                let velocity = if has_momentum { &mut u[..] } else { &mut [] };
                let means = if is_centered { &mut m[..] } else { &mut [] };
                let step = RmspropStep::new(&rule, rate);
                rmsprop(
                    &mut found,
                    velocity,
                    &mut v,
                    means,
                    &[gradient as f32],
                    PLAIN,
                    step,
                );
            }
            assert!(
                (f64::from(found[0]) - weight).abs() < 1e-6,
                "{} {weight}",
                found[0]
            );
        }
    }
}
