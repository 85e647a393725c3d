//! The backward pass of attention: the scores of a block of queries are computed again.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    Dimensions, Inputs, Projection, ROWS, drop_both, head_mut, probabilities, reached,
    softmax_backward,
};
use crate::ops::cpu::product::{Before, Matrix, MatrixMut, product, product_after};
use crate::ops::key::Mask;
use crate::ops::stop::Asker;

/// Writes the gradients of queries, keys and values, each [T, H], computed from the gradient of the output [T, H].
/// Every element of the three is written.
pub(in crate::ops) fn backward(
    gradient: &[f32],
    inputs: Inputs,
    statistics: &[f32],
    d: Dimensions,
    into: [MatrixMut; 3],
) {
    let sequence = d.sequence;
    assert!(
        statistics.len() == 2 * d.heads * d.rows()
            && into
                .iter()
                .all(|matrix| matrix.dims() == [d.rows(), d.hidden()]),
        "the statistics and the gradients belong to these dimensions"
    );
    let gradient = Projection {
        data: gradient,
        stride: d.hidden(),
        first: 0,
    };
    let asker = Asker::of_this_thread();
    statistics
        .par_chunks((sequence * 2).max(1))
        .zip(d.tasks())
        .for_each_init(
            || Scratch::new(sequence, inputs.dropped),
            |scratch, (statistics, (item, head))| {
                let whole = 0..sequence;
                // SAFETY: this task alone has this head of this sequence. Each part is of another matrix.
                let [mut of_queries, mut of_keys, mut of_values] =
                    [0, 1, 2].map(|i| unsafe { head_mut(&into[i], d, item, head, &whole) });
                if asker.stops() {
                    of_queries.clear();
                    of_keys.clear();
                    of_values.clear();
                    return;
                }
                let task = Task {
                    inputs,
                    d,
                    item,
                    head,
                    statistics,
                };
                let into = [&mut of_queries, &mut of_keys, &mut of_values];
                task.backward(gradient, scratch, into);
            },
        );
}

/// Memory that the tasks of a thread use one after the other.
struct Scratch {
    /// The probabilities p of a block of queries.
    p: Vec<f32>,
    /// The gradient of the probabilities, then of the scores.
    dp: Vec<f32>,
    /// The probabilities after dropout.
    dropped: Option<Vec<f32>>,
    /// The keys within the window of a query.
    within: Vec<f32>,
}

impl Scratch {
    fn new(sequence: usize, dropped: Option<Mask>) -> Self {
        let block = || vec![0.0; ROWS.min(sequence) * sequence];
        Self {
            p: block(),
            dp: block(),
            dropped: dropped.map(|_| block()),
            within: vec![0.0; sequence],
        }
    }
}

/// One head of one sequence, in the backward pass.
struct Task<'a> {
    inputs: Inputs<'a>,
    d: Dimensions,
    item: usize,
    head: usize,
    /// Of each row of scores, its maximum and 1/sum.
    statistics: &'a [f32],
}

impl Task<'_> {
    /// Writes this head's gradients of queries, keys and values, each [S, D]. With probabilities P = softmax(S) and
    /// scores S = Q·Kᵀ/√D: dV = Pᵀ·dY, dP = dY·Vᵀ, dS = softmax'(P, dP), dQ = dS·K/√D, dK = dSᵀ·Q/√D.
    fn backward(&self, gradient: Projection, scratch: &mut Scratch, into: [&mut MatrixMut; 3]) {
        let Self {
            inputs,
            d,
            item,
            head,
            ..
        } = *self;
        let [of_queries, of_keys, of_values] = into;
        let scale_of_scores = 1.0 / (d.size as f32).sqrt();
        if d.window.is_some() {
            // The first block does not write all of them.
            of_keys.clear();
            of_values.clear();
        }
        for block in d.blocks() {
            let reach = d.keys_of(&block);
            let keys = inputs.key.head(d, item, head, &reach);
            let values = inputs.value.head(d, item, head, &reach);
            let length = block.len() * reach.len();
            let (p, dp) = (&mut scratch.p[..length], &mut scratch.dp[..length]);
            let queries = inputs.query.head(d, item, head, &block);
            let gradient = gradient.head(d, item, head, &block);
            let mut scores = MatrixMut::over(p, block.len(), reach.len());
            product(scale_of_scores, queries, keys.transposed(), &mut scores);
            let mut of_probabilities = MatrixMut::over(dp, block.len(), reach.len());
            product(1.0, gradient, values.transposed(), &mut of_probabilities);
            let (dropped, within) = (scratch.dropped.as_deref_mut(), &mut scratch.within);
            self.of_scores((block.start, &reach), p, dp, dropped, within);
            let before = if block.start == 0 && d.window.is_none() {
                Before::Ignored
            } else {
                Before::Added
            };
            let applied = scratch.dropped.as_deref();
            let applied = applied.map_or(&*p, |dropped| &dropped[..length]);
            let applied = Matrix::new(applied, block.len(), reach.len());
            let dp = Matrix::new(dp, block.len(), reach.len());
            // SAFETY: nothing else uses these rows of `of_queries` meanwhile.
            let mut of_block = unsafe { of_queries.part((block.start, block.len()), (0, d.size)) };
            product(scale_of_scores, dp, keys, &mut of_block);
            let part = ((reach.start, reach.len()), (0, d.size));
            // SAFETY: nothing else uses these rows of the two meanwhile. Without a window the first block writes every
            // element, and with one they are cleared; the others add to them.
            unsafe {
                let mut of_values = of_values.part(part.0, part.1);
                let mut of_keys = of_keys.part(part.0, part.1);
                product_after(before, 1.0, applied.transposed(), gradient, &mut of_values);
                product_after(
                    before,
                    scale_of_scores,
                    dp.transposed(),
                    queries,
                    &mut of_keys,
                );
            }
        }
    }

    /// For the query positions from `start` on and the keys that they reach: raw scores `p` become probabilities, `dp` becomes the gradient of the
    /// scores, and `dropped` the probabilities after dropout.
    fn of_scores(
        &self,
        (start, reach): (usize, &Range<usize>),
        p: &mut [f32],
        dp: &mut [f32],
        mut dropped: Option<&mut [f32]>,
        within: &mut [f32],
    ) {
        let sequence = self.d.sequence;
        let tokens = self.inputs.tokens(self.d, self.item);
        let first = self.inputs.first(self.d, (self.item, self.head), start);
        let rows = p
            .chunks_exact_mut(reach.len())
            .zip(dp.chunks_exact_mut(reach.len()));
        for (index, (p, dp)) in rows.enumerate() {
            let row = 2 * (start + index);
            let tokens = reached(tokens, within, self.d.window, reach, start + index);
            probabilities(p, tokens, self.statistics[row], self.statistics[row + 1]);
            let range = index * reach.len()..(index + 1) * reach.len();
            if let (Some(dropped), Some(mask)) = (dropped.as_deref_mut(), self.inputs.dropped) {
                let first = first + index * sequence + reach.start;
                drop_both(p, dp, &mut dropped[range], first as u32, mask);
            }
            softmax_backward(p, tokens, dp);
        }
    }
}
