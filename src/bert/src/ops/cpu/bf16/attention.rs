//! Attention of all heads with products of bfloat16 numbers, forward and backward: `cpu::attention` with queries, keys
//! and values that are held in 16 bits. Scores, softmax and its gradient are float32; probabilities and the gradient of
//! the scores are rounded where they are multiplied.
//!
//! A task is one head of one sequence. It packs its queries, keys and values once, and goes through blocks of query
//! positions.

use rayon::prelude::*;

use super::super::Unwritten;
use super::super::attention::{
    Dimensions, ROWS, drop_both, exponentials, head_mut, mask_and_maximum, probabilities, scale,
    scale_and_drop, softmax_backward,
};
use super::super::product::{Before, MatrixMut};
use super::number::{Rows, stride};
use super::panels::{Left, Panels, Part, Source, Stacked};
use super::product::{product_here, product_here_after};
use crate::ops::key::Mask;
use crate::ops::stop::Asker;

/// The projections, the padding mask and the dropout mask.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Inputs<'a> {
    /// Queries, keys and values side by side, [T, 3·H].
    pub projected: &'a Rows,
    /// [B, S], 1 = token, 0 = padding.
    pub mask: &'a [f32],
    /// Of the probabilities [B, N, S, S].
    pub dropped: Option<Mask>,
}

impl Inputs<'_> {
    fn tokens(&self, d: Dimensions, sequence: usize) -> &[f32] {
        &self.mask[sequence * d.sequence..(sequence + 1) * d.sequence]
    }

    /// The queries (0), keys (1) or values (2) of one head of one sequence, [S, D].
    fn head(&self, which: usize, d: Dimensions, sequence: usize, head: usize) -> Part<'_> {
        Part {
            of: self.projected,
            row: sequence * d.sequence,
            rows: d.sequence,
            column: which * d.hidden() + head * d.size,
            columns: d.size,
        }
    }
}

/// A matrix as rows that the kernel can read.
#[derive(Default)]
struct Lines {
    data: Vec<u16>,
    between: usize,
}

impl Lines {
    fn set(&mut self, source: &impl Source) {
        let [rows, columns] = source.dims();
        self.between = stride(columns);
        self.data.resize(rows * self.between, 0);
        for (row, line) in self.data.chunks_exact_mut(self.between.max(1)).enumerate() {
            source.copy(row, 0, &mut line[..columns]);
            line[columns..].fill(0);
        }
    }

    /// `rows` rows from `first` on.
    fn left(&self, first: usize, rows: usize, columns: usize) -> Left<'_> {
        let start = first * self.between;
        Left::strided(&self.data[start..], rows, columns, self.between)
    }
}

/// Memory that the tasks of a thread use one after the other.
#[derive(Default)]
struct Scratch {
    queries: Lines,
    /// Keys as columns, [D, S].
    keys: Panels,
    values: Panels,
    scores: Vec<f32>,
    /// The probabilities, or the gradient of the scores, of a block, rounded.
    block: Lines,
    // The others are of the backward pass.
    of_output: Lines,
    key_rows: Panels,
    gradients: Vec<f32>,
    dropped: Vec<f32>,
    packed: Panels,
    other: Panels,
}

/// The heads' outputs side by side [T, H], and per row of scores its maximum and 1/sum [B, N, S, 2].
pub(in crate::ops) fn forward(inputs: Inputs, d: Dimensions) -> (Vec<f32>, Vec<f32>) {
    let (sequence, rows) = (d.sequence, d.rows());
    let mut y = Unwritten::new(rows * d.hidden());
    let mut statistics = vec![0.0; d.heads * rows * 2];
    let output = MatrixMut::new(y.elements(), rows, d.hidden());
    let asker = Asker::of_this_thread();
    statistics
        .par_chunks_mut((sequence * 2).max(1))
        .zip(d.tasks())
        .for_each_init(Scratch::default, |scratch, (statistics, (item, head))| {
            // SAFETY: this task alone has this head of this sequence.
            let mut into = unsafe { head_mut(&output, d, item, head, &(0..sequence)) };
            if asker.stops() {
                into.clear();
                return;
            }
            let task = Task {
                inputs,
                d,
                item,
                head,
            };
            task.forward(statistics, scratch, &mut into);
        });
    // SAFETY: there is a task for every head of every sequence, and it writes all rows of its head.
    (unsafe { y.written() }, statistics)
}

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
    let asker = Asker::of_this_thread();
    statistics
        .par_chunks((sequence * 2).max(1))
        .zip(d.tasks())
        .for_each_init(Scratch::default, |scratch, (statistics, (item, head))| {
            // SAFETY: this task alone has this head of this sequence. Each part is of another matrix.
            let mut into =
                [0, 1, 2].map(|i| unsafe { head_mut(&into[i], d, item, head, &(0..sequence)) });
            if asker.stops() {
                into.iter_mut().for_each(MatrixMut::clear);
                return;
            }
            let task = Task {
                inputs,
                d,
                item,
                head,
            };
            task.backward(gradient, statistics, scratch, &mut into);
        });
}

/// One head of one sequence.
struct Task<'a> {
    inputs: Inputs<'a>,
    d: Dimensions,
    item: usize,
    head: usize,
}

impl Task<'_> {
    fn part(&self, which: usize) -> Part<'_> {
        self.inputs.head(which, self.d, self.item, self.head)
    }

    /// Writes the head's output [S, D], and of each row of scores its maximum and 1/sum.
    fn forward(&self, statistics: &mut [f32], scratch: &mut Scratch, into: &mut MatrixMut) {
        let (sequence, size) = (self.d.sequence, self.d.size);
        let tokens = self.inputs.tokens(self.d, self.item);
        scratch.queries.set(&self.part(0));
        scratch.keys.set_transposed(&self.part(1));
        scratch.values.set(&self.part(2));
        scratch.scores.resize(ROWS.min(sequence) * sequence, 0.0);
        for block in self.d.blocks() {
            let scores = &mut scratch.scores[..block.len() * sequence];
            let queries = scratch.queries.left(block.start, block.len(), size);
            let mut of_scores = MatrixMut::over(scores, block.len(), sequence);
            product_here(self.scale(), queries, &scratch.keys, &mut of_scores);
            let first = self.first(block.start);
            for (index, row) in scores.chunks_exact_mut(sequence).enumerate() {
                let maximum = mask_and_maximum(row, tokens);
                let inverse = 1.0 / exponentials(row, maximum);
                let place = 2 * (block.start + index);
                statistics[place..place + 2].copy_from_slice(&[maximum, inverse]);
                match self.inputs.dropped {
                    Some(mask) => {
                        scale_and_drop(row, inverse, (first + index * sequence) as u32, mask);
                    }
                    None => scale(row, inverse),
                }
            }
            scratch.block.set(&floats(&[&*scores], sequence, sequence));
            let probabilities = scratch.block.left(0, block.len(), sequence);
            // SAFETY: nothing else uses these rows meanwhile.
            let mut into = unsafe { into.part((block.start, block.len()), (0, size)) };
            product_here(1.0, probabilities, &scratch.values, &mut into);
        }
    }

    /// Writes this head's gradients of queries, keys and values, each [S, D]. With probabilities P = softmax(S) and
    /// scores S = Q·Kᵀ/√D: dV = Pᵀ·dY, dP = dY·Vᵀ, dS = softmax'(P, dP), dQ = dS·K/√D, dK = dSᵀ·Q/√D.
    fn backward(
        &self,
        gradient: &[f32],
        statistics: &[f32],
        scratch: &mut Scratch,
        [of_queries, of_keys, of_values]: &mut [MatrixMut; 3],
    ) {
        let (sequence, size, hidden) = (self.d.sequence, self.d.size, self.d.hidden());
        let start = self.item * sequence * hidden + self.head * size;
        let length = ROWS.min(sequence) * sequence;
        scratch.queries.set(&self.part(0));
        scratch.keys.set_transposed(&self.part(1));
        scratch.key_rows.set(&self.part(1));
        scratch.values.set_transposed(&self.part(2));
        let gradient = gradient.get(start..).unwrap_or_default();
        let gradient = [gradient];
        let gradient = Stacked {
            parts: &gradient,
            rows: sequence,
            columns: size,
            stride: hidden,
        };
        scratch.of_output.set(&gradient);
        for buffer in [
            &mut scratch.scores,
            &mut scratch.gradients,
            &mut scratch.dropped,
        ] {
            buffer.resize(length, 0.0);
        }
        for block in self.d.blocks() {
            let length = block.len() * sequence;
            let (p, dp) = (
                &mut scratch.scores[..length],
                &mut scratch.gradients[..length],
            );
            let queries = scratch.queries.left(block.start, block.len(), size);
            let of_output = scratch.of_output.left(block.start, block.len(), size);
            let mut into = MatrixMut::over(p, block.len(), sequence);
            product_here(self.scale(), queries, &scratch.keys, &mut into);
            let mut into = MatrixMut::over(dp, block.len(), sequence);
            product_here(1.0, of_output, &scratch.values, &mut into);
            let dropped = &mut scratch.dropped[..length];
            self.of_scores(statistics, block.start, (&mut *p, &mut *dp, &mut *dropped));
            let applied: &[f32] = if self.inputs.dropped.is_some() {
                dropped
            } else {
                p
            };
            let before = if block.start == 0 {
                Before::Ignored
            } else {
                Before::Added
            };
            let (first, rows) = (block.start, block.len());
            scratch.packed.set(&floats(&[applied], sequence, sequence));
            scratch.other.set(&Rowwise {
                of: &gradient,
                first,
                rows,
            });
            let left = Left::Panels(&scratch.packed);
            // SAFETY: the first block writes every element, the others add to them.
            unsafe { product_here_after(before, 1.0, left, &scratch.other, of_values) };
            scratch.packed.set(&floats(&[&*dp], sequence, sequence));
            let of = &self.part(0);
            scratch.other.set(&Rowwise { of, first, rows });
            let left = Left::Panels(&scratch.packed);
            // SAFETY: as for the values.
            unsafe { product_here_after(before, self.scale(), left, &scratch.other, of_keys) };
            scratch.block.set(&floats(&[&*dp], sequence, sequence));
            let left = scratch.block.left(0, block.len(), sequence);
            // SAFETY: nothing else uses these rows of `of_queries` meanwhile.
            let mut into = unsafe { of_queries.part((block.start, block.len()), (0, size)) };
            product_here(self.scale(), left, &scratch.key_rows, &mut into);
        }
    }

    /// For the query positions from `start` on: raw scores `p` become probabilities, `dp` becomes the gradient of the
    /// scores, and `dropped` the probabilities after dropout, if there is any.
    fn of_scores(
        &self,
        statistics: &[f32],
        start: usize,
        (p, dp, dropped): (&mut [f32], &mut [f32], &mut [f32]),
    ) {
        let sequence = self.d.sequence;
        let tokens = self.inputs.tokens(self.d, self.item);
        let first = self.first(start);
        let rows = p
            .chunks_exact_mut(sequence)
            .zip(dp.chunks_exact_mut(sequence))
            .zip(dropped.chunks_exact_mut(sequence));
        for (index, ((p, dp), dropped)) in rows.enumerate() {
            let row = 2 * (start + index);
            probabilities(p, tokens, statistics[row], statistics[row + 1]);
            if let Some(mask) = self.inputs.dropped {
                let first = (first + index * sequence) as u32;
                drop_both(p, dp, dropped, first, mask);
            }
            softmax_backward(p, tokens, dp);
        }
    }

    /// 1/√D
    fn scale(&self) -> f32 {
        1.0 / (self.d.size as f32).sqrt()
    }

    /// The number of the first probability of query position `start`, of all in the batch.
    fn first(&self, start: usize) -> usize {
        let heads = self.d.heads;
        let number = match self.inputs.dropped {
            Some(mask) => mask.number_of_head(self.item, self.head, heads),
            None => self.item * heads + self.head,
        };
        (number * self.d.sequence + start) * self.d.sequence
    }
}

/// Float32 numbers with rows of `columns`.
fn floats<'a>(parts: &'a [&'a [f32]; 1], columns: usize, stride: usize) -> Stacked<'a> {
    Stacked {
        parts,
        rows: parts[0].len().checked_div(columns).unwrap_or(0),
        columns,
        stride,
    }
}

/// Some rows of a matrix.
struct Rowwise<'a, S> {
    of: &'a S,
    first: usize,
    rows: usize,
}

impl<S: Source> Source for Rowwise<'_, S> {
    fn dims(&self) -> [usize; 2] {
        [self.rows, self.of.dims()[1]]
    }

    fn copy(&self, row: usize, first: usize, into: &mut [u16]) {
        self.of.copy(self.first + row, first, into);
    }
}
