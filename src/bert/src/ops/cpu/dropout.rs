//! Dropout, forward and backward: both multiply with the mask.

use super::vectorized::vectorized;
use super::{ELEMENTS, in_blocks};
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
    let ([y], _) = in_blocks(x.len(), ELEMENTS, |block, [y]| {
        let first = block * ELEMENTS;
        apply(&x[first..first + y.len()], first as u32, mask, y);
    });
    y
}
