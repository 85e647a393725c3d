//! Attention of all heads, forward and backward, on the projections as they lie in memory.
//!
//! A task is one head of one sequence. It processes blocks of query positions, so that the scores
//! stay in the cache. The backward pass computes them again from two numbers per row instead of
//! storing the probabilities, which for long sequences would be most of a network's memory.
//! Source of this trade-off: Dao et al. 2022 (FlashAttention), section 3.1.

mod backward;

use std::ops::Range;

use rayon::prelude::*;

use super::Unwritten;
use super::product::{Matrix, MatrixMut, product};
use super::vectorized::{LANES, exp, multiply_add, total, vectorized};
use crate::ops::key::Mask;
use crate::ops::portable::MASKED_SCORE;
use crate::ops::stop::Asker;

pub(in crate::ops) use backward::backward;

/// Query positions of a block.
pub(super) const ROWS: usize = 64;

/// Dimensions: B sequences, S positions, N heads of size D.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) struct Dimensions {
    pub batch: usize,
    pub sequence: usize,
    pub heads: usize,
    pub size: usize,
    /// How far a position attends on either side; `None`: to all.
    pub window: Option<usize>,
}

impl Dimensions {
    /// N·D
    pub fn hidden(self) -> usize {
        self.heads * self.size
    }

    /// B·S
    pub fn rows(self) -> usize {
        self.batch * self.sequence
    }

    /// Every head of every sequence, as (sequence, head).
    pub(super) fn tasks(self) -> impl IndexedParallelIterator<Item = (usize, usize)> {
        let heads = self.heads;
        (0..self.batch * heads)
            .into_par_iter()
            .map(move |task| (task / heads, task % heads))
    }

    /// The keys that some of these query positions attend to.
    fn keys_of(self, queries: &Range<usize>) -> Range<usize> {
        match self.window {
            Some(window) => {
                let last = queries.end.saturating_add(window);
                queries.start.saturating_sub(window)..self.sequence.min(last)
            }
            None => 0..self.sequence,
        }
    }

    pub(super) fn blocks(self) -> impl Iterator<Item = Range<usize>> {
        let sequence = self.sequence;
        (0..sequence)
            .step_by(ROWS)
            .map(move |first| first..sequence.min(first + ROWS))
    }
}

/// Queries, keys or values [T, H]: H columns of rows that are `stride` apart, the first at `first`.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Projection<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub first: usize,
}

impl<'a> Projection<'a> {
    /// One head's [S, D] of one sequence, of which `rows`.
    fn head(self, d: Dimensions, sequence: usize, head: usize, rows: &Range<usize>) -> Matrix<'a> {
        let skip = (sequence * d.sequence + rows.start) * self.stride;
        let first = skip + self.first + head * d.size;
        Matrix::part(self.data, rows.len(), d.size, self.stride, first)
    }
}

/// The part of a result [T, H] that belongs to one head: its columns, in the rows of one sequence.
///
/// # Safety
/// Each head of each sequence is used by one task, which uses one part of it at a time.
pub(super) unsafe fn head_mut<'a>(
    result: &'a MatrixMut,
    d: Dimensions,
    sequence: usize,
    head: usize,
    rows: &Range<usize>,
) -> MatrixMut<'a> {
    let row = sequence * d.sequence + rows.start;
    // SAFETY: heads are disjoint columns and sequences disjoint rows; the rest is the caller's promise.
    unsafe { result.part((row, rows.len()), (head * d.size, d.size)) }
}

/// The three projections, the padding mask and the dropout mask.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Inputs<'a> {
    pub query: Projection<'a>,
    pub key: Projection<'a>,
    pub value: Projection<'a>,
    /// [B, S], 1 = token, 0 = padding.
    pub mask: &'a [f32],
    /// Of the probabilities [B, N, S, S].
    pub dropped: Option<Mask>,
}

impl Inputs<'_> {
    fn tokens(&self, d: Dimensions, sequence: usize) -> &[f32] {
        &self.mask[sequence * d.sequence..(sequence + 1) * d.sequence]
    }

    /// The number of the first probability of query position `start`, of all in the batch.
    fn first(&self, d: Dimensions, (sequence, head): (usize, usize), start: usize) -> usize {
        let number = match self.dropped {
            Some(mask) => mask.number_of_head(sequence, head, d.heads),
            None => sequence * d.heads + head,
        };
        (number * d.sequence + start) * d.sequence
    }
}

/// The keys of a query, 1 = attended to: without a window the tokens themselves, else those within it, in `scratch`.
fn reached<'a>(
    tokens: &'a [f32],
    scratch: &'a mut [f32],
    window: Option<usize>,
    keys: &Range<usize>,
    query: usize,
) -> &'a [f32] {
    let Some(window) = window else {
        return tokens;
    };
    let within = query.saturating_sub(window).max(keys.start)..keys.end.min(query + window + 1);
    let scratch = &mut scratch[..keys.len()];
    scratch.fill(0.0);
    scratch[within.start - keys.start..within.end - keys.start].copy_from_slice(&tokens[within]);
    scratch
}

vectorized! {
    /// Replaces the scores of padding; returns the row's maximum.
    fn mask_and_maximum(scores: &mut [f32], tokens: &[f32]) -> f32 {
        let mut highest = [f32::NEG_INFINITY; LANES];
        let (chunks, rest) = scores.as_chunks_mut::<LANES>();
        let (token_chunks, token_rest) = tokens.as_chunks::<LANES>();
        for (chunk, tokens) in chunks.iter_mut().zip(token_chunks) {
            for ((highest, score), token) in highest.iter_mut().zip(chunk).zip(tokens) {
                *score = if *token == 0.0 { MASKED_SCORE } else { *score };
                *highest = if *score > *highest { *score } else { *highest };
            }
        }
        let mut maximum = f32::NEG_INFINITY;
        for (score, token) in rest.iter_mut().zip(token_rest) {
            *score = if *token == 0.0 { MASKED_SCORE } else { *score };
            maximum = maximum.max(*score);
        }
        highest.into_iter().fold(maximum, f32::max)
    }
}

vectorized! {
    /// Scores become exponentials of their distance to the maximum; returns their sum.
    fn exponentials(scores: &mut [f32], maximum: f32) -> f32 {
        let mut sum = [0.0; LANES];
        let (chunks, rest) = scores.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for (sum, score) in sum.iter_mut().zip(chunk) {
                *score = exp::<FMA>(*score - maximum);
                *sum += *score;
            }
        }
        let mut sum = total(sum);
        for score in rest {
            *score = exp::<FMA>(*score - maximum);
            sum += *score;
        }
        sum
    }
}

vectorized! {
    fn scale(row: &mut [f32], factor: f32) {
        for value in row {
            *value *= factor;
        }
    }
}

vectorized! {
    fn scale_and_drop(row: &mut [f32], factor: f32, first: u32, mask: Mask) {
        for (i, value) in row.iter_mut().enumerate() {
            *value *= factor * mask.factor(first.wrapping_add(i as u32));
        }
    }
}

vectorized! {
    /// Probabilities again, from raw scores and a row's maximum and inverse sum.
    fn probabilities(scores: &mut [f32], tokens: &[f32], maximum: f32, inverse: f32) {
        for (score, token) in scores.iter_mut().zip(tokens) {
            let masked = if *token == 0.0 { MASKED_SCORE } else { *score };
            *score = exp::<FMA>(masked - maximum) * inverse;
        }
    }
}

vectorized! {
    /// Multiplies `gradient` with the mask; `dropped` becomes the probabilities times the mask.
    fn drop_both(
        probabilities: &[f32],
        gradient: &mut [f32],
        dropped: &mut [f32],
        first: u32,
        mask: Mask,
    ) {
        let rows = probabilities.iter().zip(gradient).zip(dropped);
        for (i, ((probability, gradient), dropped)) in rows.enumerate() {
            let factor = mask.factor(first.wrapping_add(i as u32));
            *gradient *= factor;
            *dropped = probability * factor;
        }
    }
}

vectorized! {
    /// `gradient` of the probabilities becomes that of the scores.
    fn softmax_backward(probabilities: &[f32], tokens: &[f32], gradient: &mut [f32]) {
        let mut sum = [0.0; LANES];
        let (chunks, rest) = probabilities.as_chunks::<LANES>();
        let (gradients, gradient_rest) = gradient.as_chunks::<LANES>();
        for (chunk, gradient) in chunks.iter().zip(gradients) {
            for ((sum, probability), gradient) in sum.iter_mut().zip(chunk).zip(gradient) {
                *sum = multiply_add::<FMA>(*probability, *gradient, *sum);
            }
        }
        let mut along = total(sum);
        for (probability, gradient) in rest.iter().zip(gradient_rest) {
            along = multiply_add::<FMA>(*probability, *gradient, along);
        }
        for ((gradient, probability), token) in gradient.iter_mut().zip(probabilities).zip(tokens) {
            // The score of padding is a constant, so its gradient is 0.
            let value = probability * (*gradient - along);
            *gradient = if *token == 0.0 { 0.0 } else { value };
        }
    }
}

/// The heads' outputs side by side [T, H], and per row of scores its maximum and 1/sum [B, N, S, 2].
pub(in crate::ops) fn forward(inputs: Inputs, d: Dimensions) -> (Vec<f32>, Vec<f32>) {
    let (sequence, rows) = (d.sequence, d.rows());
    let mut y = Unwritten::new(rows * d.hidden());
    let mut statistics = vec![0.0; d.heads * rows * 2];
    let output = MatrixMut::new(y.elements(), rows, d.hidden());
    let scale_of_scores = 1.0 / (d.size as f32).sqrt();
    let asker = Asker::of_this_thread();
    let scratch = || {
        let scores = vec![0.0; ROWS.min(sequence) * sequence];
        (scores, vec![0.0; sequence])
    };
    statistics
        .par_chunks_mut((sequence * 2).max(1))
        .zip(d.tasks())
        .for_each_init(scratch, |(scores, within), (statistics, (item, head))| {
            let tokens = inputs.tokens(d, item);
            let whole = 0..sequence;
            if asker.stops() {
                // SAFETY: this task alone has this head of this sequence.
                unsafe { head_mut(&output, d, item, head, &whole) }.clear();
                return;
            }
            for block in d.blocks() {
                let reach = d.keys_of(&block);
                let keys = inputs.key.head(d, item, head, &reach).transposed();
                let values = inputs.value.head(d, item, head, &reach);
                let scores = &mut scores[..block.len() * reach.len()];
                let queries = inputs.query.head(d, item, head, &block);
                let mut into = MatrixMut::over(scores, block.len(), reach.len());
                product(scale_of_scores, queries, keys, &mut into);
                let first = inputs.first(d, (item, head), block.start);
                let numbered = scores.chunks_exact_mut(reach.len()).enumerate();
                for ((index, row), statistics) in
                    numbered.zip(statistics[2 * block.start..].chunks_exact_mut(2))
                {
                    let query = block.start + index;
                    let tokens = reached(tokens, within, d.window, &reach, query);
                    let maximum = mask_and_maximum(row, tokens);
                    let inverse = 1.0 / exponentials(row, maximum);
                    statistics.copy_from_slice(&[maximum, inverse]);
                    match inputs.dropped {
                        Some(mask) => {
                            let first = first + index * sequence + reach.start;
                            scale_and_drop(row, inverse, first as u32, mask);
                        }
                        None => scale(row, inverse),
                    }
                }
                // SAFETY: this task alone has this head of this sequence, and one block of it at a time.
                let mut into = unsafe { head_mut(&output, d, item, head, &block) };
                let probabilities = Matrix::new(scores, block.len(), reach.len());
                product(1.0, probabilities, values, &mut into);
            }
        });
    // SAFETY: there is a task for every head of every sequence, and it writes all rows of its head.
    (unsafe { y.written() }, statistics)
}
