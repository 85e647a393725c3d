//! Σ x² of several tensors, in two launches for all of them.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::sums::sum_rows;
use super::{UNITS, matrix, sum_over_units, units, unwritten};

/// Elements for one unit.
const ELEMENTS_PER_UNIT: usize = 64;
/// Cubes of a launch at most: each leaves one number for each tensor.
const MOST_CUBES: usize = 1024;

/// One number for each tensor, in their order.
pub fn of_each(tensors: Vec<CubeTensor>) -> CubeTensor {
    let tensors: Vec<CubeTensor> = tensors.into_iter().map(|it| matrix(it).0).collect();
    let count = tensors.len();
    let lengths = tensors.iter().map(|it| it.meta.shape().num_elements());
    let number = lengths
        .max()
        .unwrap_or(0)
        .div_ceil(UNITS * ELEMENTS_PER_UNIT)
        .clamp(1, MOST_CUBES);
    let partial = unwritten(&tensors[0], [count, number]);
    let client = partial.client.clone();
    let mut inputs = SequenceArg::new();
    for tensor in tensors {
        inputs.push(tensor.into_tensor_arg());
    }
    squares_of_parts::launch(
        &client,
        CubeCount::Static(number as u32, count as u32, 1),
        units(UNITS),
        inputs,
        partial.clone().into_tensor_arg(),
        number,
        count,
        UNITS,
    );
    sum_rows(partial, count, number)
}

#[cube(launch)]
fn squares_of_parts(
    inputs: &Sequence<OwnedTensor<f32>>,
    partial: &mut Tensor<f32>,
    number: usize,
    #[comptime] count: usize,
    #[comptime] units: usize,
) {
    // The cubes of a row are those of a tensor.
    let (part, tensor) = (CUBE_POS_X as usize, CUBE_POS_Y as usize);
    let mut sum = 0.0f32;
    #[unroll]
    for index in 0..count {
        if tensor == index {
            let input = inputs.index(index);
            let length = input.len();
            let mut at = part * units + UNIT_POS_X as usize;
            while at < length {
                let value = input[at];
                sum += value * value;
                at += number * units;
            }
        }
    }
    let mut room = Shared::<[f32]>::new_slice(units);
    let sum = sum_over_units(sum, &mut room, units);
    if UNIT_POS_X == 0 {
        partial[tensor * number + part] = sum;
    }
}
