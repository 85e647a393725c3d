//! What the arithmetic of all rules shares on the float32 slices of the CPU backend: one pass over weights, moments
//! and gradients, in parallel, each element on its own. So the result is the same bits on any
//! number of threads. Formulas and their order are PyTorch's (`torch/optim/adamw.py`,
//! `_single_tensor_adam`) for Adam and Keras's for the others; they are beside each rule, as in `adam/kernel.rs`.

use rayon::prelude::*;

use super::change::{Change, rehearsed, updated};

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
    pub(super) fn of<const LIMITED: bool>(self, gradient: f32) -> f32 {
        let gradient = gradient * self.factor;
        // Not `clamp`, whose check of its bounds keeps loops from being vectorised. NaN stays NaN.
        match LIMITED {
            true if gradient > self.limit => self.limit,
            true if gradient < -self.limit => -self.limit,
            _ => gradient,
        }
    }

    pub(super) fn is_limited(self) -> bool {
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

#[cfg(test)]
impl Pass {
    /// Gradients as they are.
    pub(super) const PLAIN: Self = Self {
        prepare: Prepare {
            factor: 1.0,
            limit: f32::INFINITY,
        },
        is_measured: true,
    };
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

/// An update that keeps one number beside each weight, block by block.
pub(super) fn with_one_kept(
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

/// The change that an update would make, to the bit; nothing is written. `kept` is what is kept beside the weights,
/// where it is there already; `update` gets pieces of the weights, of what is kept and of the gradients.
pub(super) fn rehearsal(
    weights: &[f32],
    kept: [Option<&[f32]>; 3],
    gradients: &[f32],
    update: impl Fn(&mut [f32], [&mut [f32]; 3], &[f32]) + Sync,
) -> Change {
    rehearsed(weights, kept, gradients, |weights, kept, gradients| {
        let count = weights.len();
        let kept = kept.each_mut().map(|kept| &mut kept[..count]);
        update(weights, kept, gradients);
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
    use super::*;

    #[test]
    fn blocks_and_remainders_are_all_there() {
        for length in [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, 2 * BLOCK + 3] {
            let values: Vec<f32> = (0..length).map(|i| (i % 5) as f32).collect();
            let expected: f64 = values.iter().map(|&x| f64::from(x * x)).sum();
            assert_eq!(sum_of_squares(&values), expected, "{length}");
        }
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
}
