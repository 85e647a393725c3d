//! Dropout, forward and backward: both multiply with the mask.

use rayon::prelude::*;

use super::vectorized::vectorized;
use super::{ELEMENTS, buffer};
use crate::ops::key::Mask;

vectorized! {
    fn apply(x: &[f32], first: u32, mask: Mask, y: &mut [f32]) {
        for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
            *y = x * mask.factor(first.wrapping_add(i as u32));
        }
    }
}

/// `x` times the mask, element by element.
pub(in crate::ops) fn dropout(x: &[f32], mask: Mask) -> Vec<f32> {
    let mut y = buffer(x.len());
    y.par_chunks_mut(ELEMENTS)
        .zip(x.par_chunks(ELEMENTS))
        .enumerate()
        .for_each(|(block, (y, x))| {
            apply(x, (block * ELEMENTS) as u32, mask, y);
        });
    y
}
