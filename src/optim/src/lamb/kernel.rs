//! LAMB on slices: the update of Adam with a rate for each variable, which two norms decide.

use rayon::prelude::*;

use crate::LambRule;
use crate::adam::kernel::AdamStep;
use crate::kernel::{BLOCK, Prepare};

/// What stands for moments that are not there yet.
static NOTHING: [f32; BLOCK] = [0.0; BLOCK];

/// LAMB at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LambStep {
    /// Adam's numbers, for a trust ratio of 1.
    pub adam: AdamStep,
    /// 1 − β₁ᵗ.
    pub correction: f64,
    rate: f64,
}

impl LambStep {
    /// Step `time`, counted from 1.
    pub fn new(rule: &LambRule, rate: f64, decay: f64, time: u64) -> Self {
        let at = time.min(i32::MAX as u64) as i32;
        Self {
            adam: AdamStep::new(&rule.adam(), rate, decay, time),
            correction: 1.0 - rule.beta_1.powi(at),
            rate,
        }
    }

    /// Adam's numbers for a variable: the rate times ‖w‖/‖u‖, with `w` after its decay and `u` the direction that Adam would
    /// take. `kept`: both moments before the step, zeros where they are not there. Sums are added up in f64, in blocks in their
    /// order: the same bits on any number of threads.
    pub fn for_variable(
        self,
        weights: &[f32],
        kept: [Option<&[f32]>; 2],
        gradients: &[f32],
        prepare: Prepare,
    ) -> AdamStep {
        let blocks = weights.par_chunks(BLOCK).zip(gradients.par_chunks(BLOCK));
        let sums = blocks.enumerate().map(|(block, (weights, gradients))| {
            let start = block * BLOCK;
            let moments = kept.map(|kept| match kept {
                Some(kept) => &kept[start..start + weights.len()],
                None => &NOTHING[..weights.len()],
            });
            squares(weights, moments, gradients, prepare, self.adam)
        });
        let sums: Vec<[f64; 2]> = sums.collect();
        let root = |at: usize| sums.iter().map(|it| it[at]).sum::<f64>().sqrt();
        let of_weights = root(0) * f64::from(self.adam.keep).abs();
        let of_direction = root(1) / self.correction;
        let ratio = match of_weights > 0.0 && of_direction > 0.0 {
            true => of_weights / of_direction,
            false => 1.0,
        };
        AdamStep {
            size: (self.rate * ratio / self.correction) as f32,
            ..self.adam
        }
    }
}

/// Σ w² and Σ d² of a block, where `d` is the first moment after the step over the root of the second. Each element has its
/// own of eight sums, so that the order is the same for all vectors.
fn squares(
    weights: &[f32],
    moments: [&[f32]; 2],
    gradients: &[f32],
    prepare: Prepare,
    step: AdamStep,
) -> [f64; 2] {
    #[inline(always)]
    fn body<const LIMITED: bool>(
        weights: &[f32],
        [first, second]: [&[f32]; 2],
        gradients: &[f32],
        prepare: Prepare,
        step: AdamStep,
    ) -> [f64; 2] {
        const LANES: usize = 8;
        let count = weights.len();
        let (first, second, gradients) = (&first[..count], &second[..count], &gradients[..count]);
        let mut sums = [[0.0_f64; LANES]; 2];
        for start in (0..count).step_by(LANES) {
            for (lane, at) in (start..count.min(start + LANES)).enumerate() {
                let gradient = prepare.of::<LIMITED>(gradients[at]);
                let first = first[at] + (gradient - first[at]) * step.first;
                let second = second[at] * step.beta_2 + gradient * gradient * step.second;
                let direction = f64::from(first / (second.sqrt() / step.root + step.epsilon));
                let weight = f64::from(weights[at]);
                sums[0][lane] += weight * weight;
                sums[1][lane] += direction * direction;
            }
        }
        sums.map(|lanes| lanes.iter().sum())
    }
    if prepare.is_limited() {
        return body::<true>(weights, moments, gradients, prepare, step);
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(
            weights: &[f32],
            moments: [&[f32]; 2],
            gradients: &[f32],
            prepare: Prepare,
            step: AdamStep,
        ) -> [f64; 2] {
            body::<false>(weights, moments, gradients, prepare, step)
        }
        if stratoscope_bert::ops::allows_avx2() {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { avx2(weights, moments, gradients, prepare, step) };
        }
    }
    body::<false>(weights, moments, gradients, prepare, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adam::kernel::{AdamState, Touched, adam};
    use crate::kernel::Pass;

    const RULE: LambRule = LambRule {
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-7,
        weight_decay: 0.1,
    };

    const PREPARE: Prepare = Prepare {
        factor: 1.0,
        limit: f32::INFINITY,
    };

    fn numbers(count: usize, factor: usize) -> Vec<f32> {
        let one = |at: usize| ((at * factor) % 101) as f32 * 2e-2 - 1.0;
        (0..count).map(one).collect()
    }

    /// Steps of a variable whose gradients are of the step, and what `update_step` of `keras.optimizers.Lamb` makes of it in
    /// f64, with Keras's decay before it.
    fn trained(
        mut weights: Vec<f32>,
        gradient: impl Fn(usize) -> Vec<f32>,
        steps: u64,
    ) -> (Vec<f32>, Vec<f64>) {
        let count = weights.len();
        let (rate, decay) = (0.01, RULE.weight_decay);
        let mut expected: Vec<f64> = weights.iter().map(|&it| f64::from(it)).collect();
        let (mut m, mut v) = (vec![0.0_f64; count], vec![0.0_f64; count]);
        let (mut first, mut second) = (vec![0.0_f32; count], vec![0.0_f32; count]);
        for time in 1..=steps {
            let gradients = gradient(time as usize);
            let step = LambStep::new(&RULE, rate, decay, time);
            let kept = match time {
                1 => [None, None],
                _ => [Some(&first[..]), Some(&second[..])],
            };
            let step = step.for_variable(&weights, kept, &gradients, PREPARE);
            let pass = Pass {
                prepare: PREPARE,
                is_measured: true,
            };
            let state = AdamState {
                first: &mut first,
                second: &mut second,
                largest: None,
                touched: &mut Touched::everywhere(count),
            };
            adam(&mut weights, state, &gradients, pass, step);
            let mut direction = vec![0.0; count];
            for at in 0..count {
                let gradient = f64::from(gradients[at]);
                expected[at] -= rate * decay * expected[at];
                m[at] += (gradient - m[at]) * (1.0 - RULE.beta_1);
                v[at] += (gradient * gradient - v[at]) * (1.0 - RULE.beta_2);
                let mean = m[at] / (1.0 - RULE.beta_1.powi(time as i32));
                let square = v[at] / (1.0 - RULE.beta_2.powi(time as i32));
                direction[at] = mean / (square.sqrt() + RULE.epsilon);
            }
            let norm = |values: &[f64]| values.iter().map(|it| it * it).sum::<f64>().sqrt();
            let (of_weights, of_direction) = (norm(&expected), norm(&direction));
            let ratio = match of_weights > 0.0 && of_direction > 0.0 {
                true => of_weights / of_direction,
                false => 1.0,
            };
            for (weight, direction) in expected.iter_mut().zip(direction) {
                *weight -= rate * ratio * direction;
            }
        }
        (weights, expected)
    }

    #[test]
    fn a_step_is_that_of_keras() {
        for count in [1, 7, 8, 9, 1500, BLOCK + 13] {
            let gradient = |time: usize| numbers(count, 7 + 6 * time);
            let (found, expected) = trained(numbers(count, 17), gradient, 5);
            for (found, expected) in found.iter().zip(expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(error < 2e-6, "{count}: {found} {expected}");
            }
        }
    }

    /// By hand: ‖w‖ = 5, every element of the first direction is ± 1, so that the ratio is 5/√2.
    #[test]
    fn the_first_step_has_the_length_of_the_rate_times_the_weights() {
        let step = LambStep::new(&RULE, 0.1, 0.0, 1);
        let (mut first, mut second) = ([0.0; 2], [0.0; 2]);
        let (mut weights, gradients) = ([3.0, 4.0], [0.5, -2.0]);
        let step = step.for_variable(&weights, [None, None], &gradients, PREPARE);
        let pass = Pass {
            prepare: PREPARE,
            is_measured: true,
        };
        let state = AdamState {
            first: &mut first,
            second: &mut second,
            largest: None,
            touched: &mut Touched::everywhere(2),
        };
        let change = adam(&mut weights, state, &gradients, pass, step);
        let length = 0.1 * 5.0 / 2.0_f32.sqrt();
        assert!((weights[0] - (3.0 - length)).abs() < 1e-5, "{weights:?}");
        assert!((weights[1] - (4.0 + length)).abs() < 1e-5, "{weights:?}");
        assert!((change.ratio() - 0.1).abs() < 1e-6, "{change:?}");
    }

    #[test]
    fn the_ratio_is_one_without_weights_or_without_a_direction() {
        let (zero, some) = (vec![0.0; 9], |_| numbers(9, 5));
        let (found, expected) = trained(zero, some, 1);
        assert!((f64::from(found[0]) - expected[0]).abs() < 1e-6);
        assert!((found[0].abs() - 0.01).abs() < 1e-5, "a step of Adam");
        // Without a gradient it only decays.
        let (found, _) = trained(vec![2.0; 9], |_| vec![0.0; 9], 1);
        assert!(found.iter().all(|it| (it - 2.0 * 0.999).abs() < 1e-6));
    }
}
