//! Which elements a dropout keeps: the hash of the CPU's operations, so that masks have the same bits on every device.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{UNITS, cubes, matrix, unit_number, units, unwritten};

/// First multiplier of the element hash: 2³² / golden ratio, which spreads neighboring indices.
pub const SPREAD: u32 = 0x9E37_79B9;
/// Second multiplier of the element hash; odd, so that different indices stay different.
pub const MIX_A: u32 = 0x21F0_AAAD;
/// Third multiplier of the element hash.
pub const MIX_B: u32 = 0x735A_2D97;

/// A dropout mask: the numbers that its elements are computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// Added to the spread index.
    pub first: u32,
    /// Mixed in between the second and the third multiplication.
    pub second: u32,
    /// An element is kept when its hash is at least this.
    pub threshold: u32,
    /// The factor of an element that is kept, 1 / (1 − rate).
    pub scale: f32,
}

impl Dropped {
    /// The numbers for a kernel that is compiled without a mask.
    pub(crate) fn or_none(mask: Option<Self>) -> Self {
        mask.unwrap_or(Self {
            first: 0,
            second: 0,
            threshold: 0,
            scale: 1.0,
        })
    }
}

/// What the element is multiplied with: 0 or `scale`.
#[cube]
#[allow(clippy::assign_op_pattern)]
pub(crate) fn factor(index: usize, first: u32, second: u32, threshold: u32, scale: f32) -> f32 {
    let mut hash = (index as u32) * SPREAD + first;
    hash = hash ^ (hash >> 16u32);
    hash = hash * MIX_A;
    hash = hash ^ (hash >> 15u32);
    hash = hash ^ second;
    hash = hash * MIX_B;
    hash = hash ^ (hash >> 15u32);
    let mut kept = 0.0f32;
    if hash >= threshold {
        kept = scale;
    }
    kept
}

/// Every element times its factor: a dropout, and the way back.
pub fn drop_elements(x: CubeTensor, dropped: Dropped) -> CubeTensor {
    let (x, of_x) = matrix(x);
    let output = unwritten(&x, x.meta.shape().clone());
    let count = of_x.rows * of_x.columns;
    let client = x.client.clone();
    drop_each::launch(
        &client,
        cubes(count.div_ceil(UNITS)),
        units(UNITS),
        x.into_tensor_arg(),
        output.clone().into_tensor_arg(),
        count,
        dropped.first,
        dropped.second,
        dropped.threshold,
        dropped.scale,
        UNITS,
    );
    output
}

#[cube(launch)]
#[allow(clippy::too_many_arguments)]
fn drop_each(
    x: &Tensor<f32>,
    output: &mut Tensor<f32>,
    count: usize,
    first: u32,
    second: u32,
    threshold: u32,
    scale: f32,
    #[comptime] units: usize,
) {
    let at = unit_number(units);
    if at >= count {
        terminate!();
    }
    output[at] = x[at] * factor(at, first, second, threshold, scale);
}
