//! Adam on slices.

use rayon::prelude::*;

use crate::AdamRule;
use crate::change::{Change, PIECE, updated};
use crate::kernel::{BLOCK, Pass, Prepare};

/// Adam at one step, everything worked out that does not depend on the element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdamStep {
    /// 1 − rate · weight decay.
    pub keep: f32,
    /// 1 − β₁.
    pub first: f32,
    pub beta_2: f32,
    /// 1 − β₂.
    pub second: f32,
    /// √(1 − β₂ᵗ).
    pub root: f32,
    pub epsilon: f32,
    /// rate / (1 − β₁ᵗ).
    pub size: f32,
}

impl AdamStep {
    /// Step `time`, counted from 1.
    pub fn new(rule: &AdamRule, rate: f64, decay: f64, time: u64) -> Self {
        let time = time.min(i32::MAX as u64) as i32;
        Self {
            keep: (1.0 - rate * decay) as f32,
            first: (1.0 - rule.beta_1) as f32,
            beta_2: rule.beta_2 as f32,
            second: (1.0 - rule.beta_2) as f32,
            root: (1.0 - rule.beta_2.powi(time)).sqrt() as f32,
            epsilon: rule.epsilon as f32,
            size: (rate / (1.0 - rule.beta_1.powi(time))) as f32,
        }
    }

    /// Whether an element without a gradient whose moments are 0 keeps them, and its weight becomes `weight · keep`, to
    /// the bit: the quotient of the moments is 0 then, and so is what is subtracted.
    fn leaves_zeros(self, prepare: Prepare) -> bool {
        let is_positive = |number: f32| number > 0.0 && number.is_finite();
        is_positive(self.epsilon)
            && is_positive(self.root)
            && (self.size == 0.0 || is_positive(self.size))
            && (prepare.factor == 0.0 || is_positive(prepare.factor))
            && prepare.limit >= 0.0
    }
}

/// Which pieces of a variable have had a gradient. The moments of the others are 0.
///
/// In a table of words most rows have had none: where the gradient of such a piece is 0 again, its moments are neither
/// read nor written. All-MiniLM-L6-v2 has half of its weights in that table, and an update waits for memory.
#[derive(Clone, Debug)]
pub(crate) struct Touched(Vec<bool>);

// A block has whole pieces.
const _: () = assert!(BLOCK.is_multiple_of(PIECE));

impl Touched {
    /// Where one of the moments, each of which has all elements of the variable or none, is not +0.
    pub fn of(moments: [&[f32]; 3]) -> Self {
        let longest = moments.iter().map(|moment| moment.len()).max();
        let mut touched = vec![false; longest.unwrap_or(0).div_ceil(PIECE)];
        for moment in moments {
            let pieces = touched.par_iter_mut().zip(moment.par_chunks(PIECE));
            pieces.for_each(|(touched, piece)| *touched |= !are_zero(piece));
        }
        Self(touched)
    }

    /// Everywhere in a variable of so many elements.
    #[cfg(test)]
    pub fn everywhere(elements: usize) -> Self {
        Self(vec![true; elements.div_ceil(PIECE)])
    }
}

/// What is kept beside the weights. Moments are of the gradients so far, `first` of them, `second` of their squares;
/// `largest` is what the second has been at most, for AMSGrad. All of the weights' length.
pub(crate) struct AdamState<'a> {
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
    pub largest: Option<&'a mut [f32]>,
    pub touched: &'a mut Touched,
}

/// Weights and gradients are of equal length. Returns the change, if it is measured.
pub(crate) fn adam(
    weights: &mut [f32],
    state: AdamState,
    gradients: &[f32],
    pass: Pass,
    step: AdamStep,
) -> Change {
    let largest: Vec<Option<&mut [f32]>> = match state.largest {
        Some(largest) => largest.chunks_mut(BLOCK).map(Some).collect(),
        None => (0..weights.len().div_ceil(BLOCK)).map(|_| None).collect(),
    };
    let moments = (state.first.par_chunks_mut(BLOCK))
        .zip(state.second.par_chunks_mut(BLOCK))
        .zip(largest)
        .zip(state.touched.0.par_chunks_mut(BLOCK / PIECE));
    let leaves_zeros = step.leaves_zeros(pass.prepare);
    let blocks = weights
        .par_chunks_mut(BLOCK)
        .zip(gradients.par_chunks(BLOCK))
        .zip(moments);
    let changes = blocks.map(
        |((weights, gradients), (((first, second), mut largest), touched))| {
            updated(weights, pass.is_measured, |weights, at| {
                for (index, weights) in weights.chunks_mut(PIECE).enumerate() {
                    let start = at.start + index * PIECE;
                    let at = start..start + weights.len();
                    let (touched, gradients) =
                        (&mut touched[start / PIECE], &gradients[at.clone()]);
                    if !*touched && leaves_zeros && are_zero(gradients) {
                        decay(weights, step.keep);
                        continue;
                    }
                    *touched = true;
                    let (first, second) = (&mut first[at.clone()], &mut second[at.clone()]);
                    match &mut largest {
                        None => block(weights, first, second, gradients, pass.prepare, step),
                        Some(largest) => {
                            let largest = &mut largest[at];
                            amsgrad_block(
                                weights,
                                first,
                                second,
                                largest,
                                gradients,
                                pass.prepare,
                                step,
                            );
                        }
                    }
                }
            })
        },
    );
    let changes: Vec<Change> = changes.collect();
    changes.into_iter().sum()
}

/// Whether all of them are +0.
fn are_zero(values: &[f32]) -> bool {
    let bits = values.iter().fold(0, |bits, value| bits | value.to_bits());
    bits == 0
}

/// The update of elements whose moments stay 0.
fn decay(weights: &mut [f32], keep: f32) {
    if keep != 1.0 {
        weights.iter_mut().for_each(|weight| *weight *= keep);
    }
}

/// The loop of [`adam`] with AMSGrad: Reddi, Kale and Kumar 2018, algorithm 2, with Adam's bias
/// correction as in PyTorch and Keras. A second moment that shrinks does not lengthen the steps.
pub(crate) fn amsgrad_block(
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    largest: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: AdamStep,
) {
    let moments = first.iter_mut().zip(second).zip(largest);
    for ((weight, &gradient), ((first, second), largest)) in
        weights.iter_mut().zip(gradients).zip(moments)
    {
        let gradient = prepare.of::<true>(gradient);
        *first += (gradient - *first) * step.first;
        *second = *second * step.beta_2 + gradient * gradient * step.second;
        *largest = largest.max(*second);
        let denominator = largest.sqrt() / step.root + step.epsilon;
        *weight = *weight * step.keep - step.size * (*first / denominator);
    }
}

/// The loop of [`adam`], for the widest vectors the processor has. Nothing is fused or reordered, so
/// the bits are the same for all of them.
pub(crate) fn block(
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradients: &[f32],
    prepare: Prepare,
    step: AdamStep,
) {
    #[inline(always)]
    fn body<const LIMITED: bool>(
        weights: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        gradients: &[f32],
        prepare: Prepare,
        step: AdamStep,
    ) {
        let count = weights.len();
        let (first, second) = (&mut first[..count], &mut second[..count]);
        let gradients = &gradients[..count];
        for i in 0..count {
            let gradient = prepare.of::<LIMITED>(gradients[i]);
            first[i] += (gradient - first[i]) * step.first;
            second[i] = second[i] * step.beta_2 + gradient * gradient * step.second;
            let denominator = second[i].sqrt() / step.root + step.epsilon;
            weights[i] = weights[i] * step.keep - step.size * (first[i] / denominator);
        }
    }
    if prepare.is_limited() {
        return body::<true>(weights, first, second, gradients, prepare, step);
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(
            weights: &mut [f32],
            first: &mut [f32],
            second: &mut [f32],
            gradients: &[f32],
            prepare: Prepare,
            step: AdamStep,
        ) {
            body::<false>(weights, first, second, gradients, prepare, step);
        }
        if stratoscope_bert::ops::allows_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { avx2(weights, first, second, gradients, prepare, step) };
        }
    }
    body::<false>(weights, first, second, gradients, prepare, step);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Pass = Pass::PLAIN;

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

    const COUNT: usize = 3 * PIECE + 17;

    fn step(weight_decay: f64, time: u64) -> AdamStep {
        let rule = AdamRule {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay,
            amsgrad: false,
        };
        AdamStep::new(&rule, 1e-2, weight_decay, time)
    }

    /// Gradients of step `time`: the first piece gets one each time, the second in step 3, the third a negative zero in
    /// step 2, the rest none.
    fn gradients(time: u64) -> Vec<f32> {
        let mut gradients = vec![0.0; COUNT];
        gradients[5] = 0.1 * time as f32;
        if time == 3 {
            gradients[PIECE + 7] = -0.3;
        }
        if time == 2 {
            gradients[2 * PIECE] = -0.0;
        }
        gradients
    }

    /// Weights, both moments and the measured changes after four steps.
    fn trained(
        weight_decay: f64,
        amsgrad: bool,
        pass: Pass,
        mut touched: Touched,
    ) -> (Vec<Vec<u32>>, Vec<Change>, Vec<bool>) {
        let mut weights: Vec<f32> = (0..COUNT).map(|at| (at % 13) as f32 - 6.0).collect();
        weights[COUNT - 1] = -0.0;
        let [mut first, mut second, mut largest] = [(); 3].map(|()| vec![0.0; COUNT]);
        let changes = (1..=4).map(|time| {
            let state = AdamState {
                first: &mut first,
                second: &mut second,
                largest: amsgrad.then_some(&mut largest[..]),
                touched: &mut touched,
            };
            let step = step(weight_decay, time);
            adam(&mut weights, state, &gradients(time), pass, step)
        });
        let changes = changes.collect();
        let kept = [weights, first, second, largest].map(|values| {
            let bits = values.iter().map(|value| value.to_bits());
            bits.collect()
        });
        (kept.into(), changes, touched.0)
    }

    #[test]
    fn pieces_without_a_gradient_have_the_bits_of_the_formula() {
        for (weight_decay, amsgrad, is_measured) in [
            (0.0, false, true),
            (0.01, false, true),
            (0.01, false, false),
            (0.01, true, true),
        ] {
            let pass = Pass {
                prepare: Prepare {
                    factor: 0.5,
                    limit: f32::INFINITY,
                },
                is_measured,
            };
            let run = |touched| trained(weight_decay, amsgrad, pass, touched);
            let zeros = [0.0; COUNT];
            let (kept, changes, touched) = run(Touched::of([&zeros, &zeros, &[]]));
            let (all, of_all, _) = run(Touched::everywhere(COUNT));
            let context = format!("{weight_decay} {amsgrad} {is_measured}");
            assert!(kept == all, "{context}");
            assert_eq!(changes, of_all, "{context}");
            assert_eq!(touched, [true, true, true, false], "{context}");
        }
    }

    #[test]
    fn pieces_are_touched_where_a_moment_is_not_zero() {
        let [mut first, mut second, mut largest] = [(); 3].map(|()| vec![0.0; COUNT]);
        first[3] = -0.0;
        second[PIECE] = 1e-40;
        let touched = Touched::of([&first, &second, &[]]);
        assert_eq!(touched.0, [true, true, false, false]);
        largest[COUNT - 1] = 2.0;
        let touched = Touched::of([&first, &second, &largest]);
        assert_eq!(touched.0, [true, true, false, true]);
        assert!(Touched::of([&[], &[], &[]]).0.is_empty());
    }

    #[test]
    fn where_the_formula_makes_no_zeros_all_is_computed() {
        let plain = Prepare {
            factor: 1.0,
            limit: f32::INFINITY,
        };
        assert!(step(0.01, 1).leaves_zeros(plain));
        let without_epsilon = AdamStep {
            epsilon: 0.0,
            ..step(0.01, 1)
        };
        let infinite = AdamStep {
            size: f32::INFINITY,
            ..step(0.01, 1)
        };
        assert!(!without_epsilon.leaves_zeros(plain));
        assert!(!infinite.leaves_zeros(plain));
        let not_a_number = Prepare {
            factor: f32::NAN,
            ..plain
        };
        assert!(!step(0.01, 1).leaves_zeros(not_a_number));
        // 0 / 0: as without the shortcut, the weights are no numbers.
        let (mut weights, mut first, mut second) = ([1.0], [0.0], [0.0]);
        let state = AdamState {
            first: &mut first,
            second: &mut second,
            largest: None,
            touched: &mut Touched::of([&[0.0], &[0.0], &[]]),
        };
        let pass = Pass {
            prepare: plain,
            is_measured: false,
        };
        adam(&mut weights, state, &[0.0], pass, without_epsilon);
        assert!(weights[0].is_nan());
    }
}
