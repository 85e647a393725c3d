//! The arithmetic of a step on the float32 slices of the CPU backend: one pass over weights, moments
//! and gradients, in parallel, each element on its own. So the result is the same bits on any
//! number of threads. Formulas and their order are PyTorch's (`torch/optim/adamw.py`,
//! `_single_tensor_adam`) for Adam and Keras's for the others.

mod adafactor;
mod adam;
mod lamb;
mod lion;
mod rmsprop;

use rayon::prelude::*;

use super::change::{Change, rehearsed, updated};

pub(super) use adafactor::{AdafactorState, AdafactorStep, adafactor};
pub(super) use adam::{AdamState, AdamStep, Touched, adam};
pub(super) use lamb::LambStep;
pub(super) use lion::{LionStep, lion};
pub(super) use rmsprop::{RmspropStep, rmsprop};

/// Elements of a block: five arrays of 64 KiB fit the second-level cache.
pub(super) const BLOCK: usize = 16 * 1024;

/// What happens to a gradient before it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prepare {
    /// Multiplied with.
    pub factor: f32,
    /// Then held between ± this.
    pub limit: f32,
}

impl Prepare {
    #[inline(always)]
    fn of<const LIMITED: bool>(self, gradient: f32) -> f32 {
        let gradient = gradient * self.factor;
        // Not `clamp`, whose check of its bounds keeps loops from being vectorised. NaN stays NaN.
        match LIMITED {
            true if gradient > self.limit => self.limit,
            true if gradient < -self.limit => -self.limit,
            _ => gradient,
        }
    }

    fn is_limited(self) -> bool {
        self.limit < f32::INFINITY
    }
}

/// A pass over weights and gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pass {
    /// For each gradient.
    pub prepare: Prepare,
    /// Whether the change of the weights is measured.
    pub is_measured: bool,
}

/// `sum += added`, element by element.
pub(super) fn add(sum: &mut [f32], added: &[f32]) {
    let blocks = sum.par_chunks_mut(BLOCK).zip(added.par_chunks(BLOCK));
    blocks.for_each(|(sum, added)| {
        let count = sum.len();
        let added = &added[..count];
        for i in 0..count {
            sum[i] += added[i];
        }
    });
}

/// Moves the average of the weights: `average = momentum · average + (1 − momentum) · weight`.
pub(super) fn average(average: &mut [f32], weights: &[f32], momentum: f32) {
    let blocks = average.par_chunks_mut(BLOCK).zip(weights.par_chunks(BLOCK));
    blocks.for_each(|(average, weights)| {
        for (average, &weight) in average.iter_mut().zip(weights) {
            *average = momentum * *average + (1.0 - momentum) * weight;
        }
    });
}

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

fn sgd_block(weights: &mut [f32], gradients: &[f32], prepare: Prepare, step: SgdStep) {
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

/// An update that keeps one number beside each weight, block by block.
fn with_one_kept(
    weights: &mut [f32],
    kept: &mut [f32],
    gradients: &[f32],
    pass: Pass,
    block: impl Fn(&mut [f32], &mut [f32], &[f32]) + Sync,
) -> Change {
    let states = weights
        .par_chunks_mut(BLOCK)
        .zip(kept.par_chunks_mut(BLOCK));
    let changes = (states.zip(gradients.par_chunks(BLOCK))).map(|((weights, kept), gradients)| {
        updated(weights, pass.is_measured, |weights, at| {
            block(weights, &mut kept[at.clone()], &gradients[at]);
        })
    });
    let changes: Vec<Change> = changes.collect();
    changes.into_iter().sum()
}

fn momentum_block(
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

/// What happens to one element of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Elementwise {
    /// Kept are both moments.
    Adam(AdamStep),
    /// And the largest second one.
    AmsGrad(AdamStep),
    Sgd(SgdStep),
    /// Kept is the velocity.
    Momentum(SgdStep),
    /// Kept are the velocity, the mean square and the mean gradient; of the first and the last, what there is.
    Rmsprop {
        step: RmspropStep,
        has_momentum: bool,
        is_centered: bool,
    },
    /// Kept is the momentum.
    Lion(LionStep),
}

/// The change that an update would make, to the bit; nothing is written. `kept` is what is kept beside the weights,
/// where it is there already.
pub(super) fn rehearsal(
    weights: &[f32],
    kept: [Option<&[f32]>; 3],
    gradients: &[f32],
    prepare: Prepare,
    rule: Elementwise,
) -> Change {
    rehearsed(weights, kept, gradients, |weights, kept, gradients| {
        let count = weights.len();
        let [first, second, largest] = kept;
        let (first, second) = (&mut first[..count], &mut second[..count]);
        let largest = &mut largest[..count];
        match rule {
            Elementwise::Adam(step) => {
                adam::block(weights, first, second, gradients, prepare, step);
            }
            Elementwise::AmsGrad(step) => {
                adam::amsgrad_block(weights, first, second, largest, gradients, prepare, step);
            }
            Elementwise::Sgd(step) => sgd_block(weights, gradients, prepare, step),
            Elementwise::Momentum(step) => {
                momentum_block(weights, first, gradients, prepare, step);
            }
            Elementwise::Rmsprop {
                step,
                has_momentum,
                is_centered,
            } => {
                let velocity = if has_momentum { first } else { &mut [] };
                let means = if is_centered { largest } else { &mut [] };
                rmsprop::block(weights, velocity, second, means, gradients, prepare, step);
            }
            Elementwise::Lion(step) => lion::block(weights, first, gradients, prepare, step),
        }
    })
}

/// Σ x², in blocks that are summed in order: the same bits on any number of threads.
pub(super) fn sum_of_squares(values: &[f32]) -> f64 {
    let blocks: Vec<f64> = values.par_chunks(BLOCK).map(block_of_squares).collect();
    blocks.iter().sum()
}

/// Of a block: eight running sums, which are added at the end. Their order is the same on every processor.
fn block_of_squares(values: &[f32]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if stratoscope_bert::ops::allows_avx2() {
        // SAFETY: the processor has what the function was compiled for.
        return unsafe { squares_with_avx2(values) };
    }
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0_f64; 8];
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(x) * f64::from(x);
        }
    }
    total_of_squares(sums, rest)
}

fn total_of_squares(sums: [f64; 8], rest: &[f32]) -> f64 {
    let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    sums.iter().sum::<f64>() + rest
}

/// By hand, because rustc makes scalar code of the loop, which takes eight times as long.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn squares_with_avx2(values: &[f32]) -> f64 {
    use std::arch::x86_64::{
        _mm_loadu_ps, _mm256_add_pd, _mm256_cvtps_pd, _mm256_mul_pd, _mm256_setzero_pd,
        _mm256_storeu_pd,
    };
    let (fours, _) = values.as_chunks::<4>();
    let (pairs, _) = fours.as_chunks::<2>();
    let mut running = [_mm256_setzero_pd(); 2];
    for pair in pairs {
        // Not in a loop: the sums stay in registers.
        // SAFETY: there are four numbers.
        let first = _mm256_cvtps_pd(unsafe { _mm_loadu_ps(pair[0].as_ptr()) });
        // SAFETY: likewise.
        let second = _mm256_cvtps_pd(unsafe { _mm_loadu_ps(pair[1].as_ptr()) });
        running[0] = _mm256_add_pd(running[0], _mm256_mul_pd(first, first));
        running[1] = _mm256_add_pd(running[1], _mm256_mul_pd(second, second));
    }
    let mut sums = [0.0; 8];
    // SAFETY: there is room for twice four numbers.
    unsafe {
        _mm256_storeu_pd(sums.as_mut_ptr(), running[0]);
        _mm256_storeu_pd(sums.as_mut_ptr().add(4), running[1]);
    }
    total_of_squares(sums, &values[8 * pairs.len()..])
}

#[cfg(test)]
mod tests {
    use super::super::AdamRule;
    use super::*;

    const PLAIN: Pass = Pass {
        prepare: Prepare {
            factor: 1.0,
            limit: f32::INFINITY,
        },
        is_measured: true,
    };

    /// Kingma and Ba's algorithm 1 in f64, with decoupled decay; one weight.
    fn reference(rule: &AdamRule, rate: f64, gradients: &[f64], mut weight: f64) -> f64 {
        let (mut first, mut second) = (0.0, 0.0);
        for (index, gradient) in gradients.iter().enumerate() {
            let time = index as i32 + 1;
            weight -= rate * rule.weight_decay * weight;
            first = rule.beta_1 * first + (1.0 - rule.beta_1) * gradient;
            second = rule.beta_2 * second + (1.0 - rule.beta_2) * gradient * gradient;
            let (m, v) = (
                first / (1.0 - rule.beta_1.powi(time)),
                second / (1.0 - rule.beta_2.powi(time)),
            );
            weight -= rate * m / (v.sqrt() + rule.epsilon);
        }
        weight
    }

    #[test]
    fn adam_is_its_definition() {
        let rule = AdamRule {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            amsgrad: false,
        };
        let gradients = [0.3, -0.2, 0.0, 1e-4, 2.0, -1.0];
        let (mut weight, mut first, mut second) = ([0.5_f32], [0.0], [0.0]);
        for (index, &gradient) in gradients.iter().enumerate() {
            let step = AdamStep::new(&rule, 0.01, rule.weight_decay, index as u64 + 1);
            let state = AdamState {
                first: &mut first,
                second: &mut second,
                largest: None,
                touched: &mut Touched::everywhere(1),
            };
            adam(&mut weight, state, &[gradient as f32], PLAIN, step);
        }
        let expected = reference(&rule, 0.01, &gradients, 0.5);
        assert!(
            (f64::from(weight[0]) - expected).abs() < 1e-6,
            "{} {expected}",
            weight[0]
        );
    }

    /// Algorithm 2 of Reddi, Kale and Kumar, with bias correction, worked out with β₁ = 0 and β₂ = 0.5
    /// so that a pocket calculator does: v is 4·0.5 = 2, then 1, then 0.5, and its maximum stays 2.
    #[test]
    fn amsgrad_keeps_the_largest_second_moment() {
        let rule = AdamRule {
            beta_1: 0.0,
            beta_2: 0.5,
            epsilon: 1e-12,
            weight_decay: 0.0,
            amsgrad: true,
        };
        let run = |amsgrad: bool| {
            let (mut weight, mut first, mut second, mut largest) = ([1.0_f32], [0.0], [0.0], [0.0]);
            let gradients = [2.0_f32, 0.0, 0.0, 0.1];
            let weights = gradients.iter().zip(1..).map(|(&gradient, time)| {
                let step = AdamStep::new(&rule, 0.1, 0.0, time);
                let state = AdamState {
                    first: &mut first,
                    second: &mut second,
                    largest: amsgrad.then_some(&mut largest[..]),
                    touched: &mut Touched::everywhere(1),
                };
                adam(&mut weight, state, &[gradient], PLAIN, step);
                f64::from(weight[0])
            });
            let weights: Vec<f64> = weights.collect();
            (weights, largest[0])
        };
        // Step 1: 2 / √(2 / 0.5) = 1. Steps 2 and 3: no gradient. Step 4: v = 0.25 + 0.005 = 0.255, its
        // maximum 2, 1 − 0.5⁴ = 0.9375: 0.1 / √(2 / 0.9375) = 0.068465, and without: 0.1 / √(0.255 / 0.9375).
        let (weights, largest) = run(true);
        let expected = [0.9, 0.9, 0.9, 0.9 - 0.1 * 0.068_465];
        for (found, expected) in weights.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
        assert_eq!(largest, 2.0);
        let (weights, _) = run(false);
        assert!(
            (weights[3] - (0.9 - 0.1 * 0.191_741)).abs() < 1e-6,
            "{weights:?}"
        );
    }

    #[test]
    fn the_average_of_weights_moves_by_its_momentum() {
        let mut averages: Vec<f32> = vec![1.0; BLOCK + 3];
        let weights: Vec<f32> = (0..BLOCK + 3).map(|i| i as f32).collect();
        average(&mut averages, &weights, 0.75);
        assert_eq!(
            (averages[0], averages[5], averages[BLOCK + 2]),
            (0.75, 2.0, 0.75 + 0.25 * weights[BLOCK + 2])
        );
        average(&mut averages, &weights, 0.0);
        assert_eq!(averages, weights);
    }

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

    fn rmsprop_rule(has_momentum: bool, is_centered: bool) -> Elementwise {
        let rule = super::super::RmspropRule {
            rho: 0.9,
            momentum: 0.5,
            epsilon: 1e-7,
            centered: is_centered,
        };
        Elementwise::Rmsprop {
            step: RmspropStep::new(&rule, 1e-3),
            has_momentum,
            is_centered,
        }
    }

    /// Keras's formulas in f64, with the numbers of three steps.
    #[test]
    fn rmsprop_and_lion_are_their_definitions() {
        let gradients = [0.3_f64, -0.2, 0.05, 1.0];
        let (rate, rho, momentum, epsilon) = (0.01, 0.9, 0.5, 1e-7);
        for (has_momentum, is_centered) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let (mut weight, mut square, mut mean, mut moved) = (0.5, 0.0, 0.0, 0.0);
            let mut found = [0.5_f32];
            let (mut v, mut m, mut u) = ([0.0_f32], [0.0_f32], [0.0_f32]);
            let rule = super::super::RmspropRule {
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
        let rule = super::super::LionRule {
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

    /// For every rule: an update that is measured has the bits of one that is not, and a rehearsal its change.
    #[test]
    fn a_change_is_measured_and_foretold() {
        let count = BLOCK + 1500;
        let numbers = |factor: usize, scale: f32| -> Vec<f32> {
            let one = |at: usize| ((at * factor) % 1013) as f32 * scale - 1.0;
            (0..count).map(one).collect()
        };
        let old = [numbers(7, 2e-3), numbers(11, 1e-3)];
        let [gradients, squares] = [numbers(13, 3e-3), numbers(17, 1e-3)];
        let squares: Vec<f32> = squares.iter().map(|it| it * it).collect();
        let rule = AdamRule {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            amsgrad: false,
        };
        let adam_step = AdamStep::new(&rule, 1e-2, 0.01, 3);
        let sgd_step = SgdStep {
            rate: 0.1,
            momentum: 0.9,
            nesterov: true,
        };
        let rules = [
            Elementwise::Adam(adam_step),
            Elementwise::AmsGrad(adam_step),
            Elementwise::Sgd(sgd_step),
            Elementwise::Momentum(sgd_step),
            rmsprop_rule(false, false),
            rmsprop_rule(true, false),
            rmsprop_rule(true, true),
            Elementwise::Lion(LionStep {
                rate: 1e-2,
                beta_1: 0.9,
                beta_2: 0.99,
                keep: 0.999,
            }),
        ];
        for rule in rules {
            let made = |is_measured: bool| {
                let [mut weights, mut first] = old.clone();
                let (mut second, mut largest) = (squares.clone(), squares.clone());
                let pass = Pass {
                    is_measured,
                    ..PLAIN
                };
                let (first, second) = (&mut first[..], &mut second[..]);
                let mut touched = Touched::everywhere(count);
                let change = match rule {
                    Elementwise::Adam(step) | Elementwise::AmsGrad(step) => {
                        let amsgrad = matches!(rule, Elementwise::AmsGrad(_));
                        let state = AdamState {
                            first,
                            second,
                            largest: amsgrad.then_some(&mut largest[..]),
                            touched: &mut touched,
                        };
                        adam(&mut weights, state, &gradients, pass, step)
                    }
                    Elementwise::Sgd(step) => sgd(&mut weights, &gradients, pass, step),
                    Elementwise::Momentum(step) => {
                        sgd_with_momentum(&mut weights, first, &gradients, pass, step)
                    }
                    Elementwise::Rmsprop {
                        step,
                        has_momentum,
                        is_centered,
                    } => {
                        let velocity = if has_momentum { first } else { &mut [] };
                        // Not so large that the spread is below zero.
                        largest.iter_mut().for_each(|it| *it *= 0.1);
                        let means = if is_centered {
                            &mut largest[..]
                        } else {
                            &mut []
                        };
                        let weights = &mut weights[..];
                        rmsprop(weights, velocity, second, means, &gradients, pass, step)
                    }
                    Elementwise::Lion(step) => lion(&mut weights, first, &gradients, pass, step),
                };
                (weights, change)
            };
            let ((weights, change), (plain, none)) = (made(true), made(false));
            assert_eq!(weights, plain, "{rule:?}");
            assert_eq!(none, Change::default());
            let sum = |values: &mut dyn Iterator<Item = f32>| -> f64 {
                values.map(|it| f64::from(it).powi(2)).sum()
            };
            let moved = weights.iter().zip(&old[0]).map(|(new, old)| new - old);
            for (found, expected) in [
                (change.weights, sum(&mut old[0].iter().copied())),
                (change.change, sum(&mut moved.into_iter())),
            ] {
                assert!(
                    (found - expected).abs() < 1e-6 * expected,
                    "{rule:?}: {found} {expected}"
                );
            }
            let tenth: Vec<f32> = squares.iter().map(|it| it * 0.1).collect();
            let largest = match rule {
                Elementwise::Rmsprop { .. } => &tenth,
                _ => &squares,
            };
            let kept = [Some(&old[1][..]), Some(&squares[..]), Some(&largest[..])];
            let foretold = rehearsal(&old[0], kept, &gradients, PLAIN.prepare, rule);
            assert_eq!(foretold, change, "{rule:?}");
        }
    }

    #[test]
    fn blocks_and_remainders_are_all_there() {
        for length in [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, 2 * BLOCK + 3] {
            let values: Vec<f32> = (0..length).map(|i| (i % 5) as f32).collect();
            let expected: f64 = values.iter().map(|&x| f64::from(x * x)).sum();
            assert_eq!(sum_of_squares(&values), expected, "{length}");
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
