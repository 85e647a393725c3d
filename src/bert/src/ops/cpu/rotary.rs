//! Rotates pairs of numbers of each head by the angle of their position.

use rayon::prelude::*;

use super::vectorized::{multiply_add, vectorized};

/// Rows of a task.
const ROWS: usize = 16;

vectorized! {
    /// Of one head at one position: the points `(x[j], x[j + D/2])` rotated, into y.
    fn rotate_head(x: &[f32], cos: &[f32], sin: &[f32], y: &mut [f32]) {
        let (first, second) = x.split_at(cos.len());
        let (of_first, of_second) = y.split_at_mut(cos.len());
        let from = first.iter().zip(second).zip(cos.iter().zip(sin));
        for ((y, z), ((a, b), (cos, sin))) in of_first.iter_mut().zip(of_second).zip(from) {
            *y = multiply_add::<FMA>(*a, *cos, -(*b * *sin));
            *z = multiply_add::<FMA>(*b, *cos, *a * *sin);
        }
    }
}

/// x [T, H] → [T, H]: row t has the position t modulo S, its angles are `cos` and `sin`, [S, D/2].
pub(in crate::ops) fn rotated(
    x: &[f32],
    heads: usize,
    cos: &[f32],
    sin: &[f32],
    hidden: usize,
) -> Vec<f32> {
    let half = (hidden / heads.max(1) / 2).max(1);
    let sequence = (cos.len() / half).max(1);
    let mut y = vec![0.0; x.len()];
    let tasks = y.par_chunks_mut((ROWS * hidden).max(1)).enumerate();
    tasks.for_each(|(task, into)| {
        for (index, into) in into.chunks_exact_mut(hidden).enumerate() {
            let row = task * ROWS + index;
            let angles = (row % sequence) * half..(row % sequence + 1) * half;
            let from = &x[row * hidden..(row + 1) * hidden];
            for (x, y) in from
                .chunks_exact(2 * half)
                .zip(into.chunks_exact_mut(2 * half))
            {
                rotate_head(x, &cos[angles.clone()], &sin[angles.clone()], y);
            }
        }
    });
    y
}
