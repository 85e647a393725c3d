//! The kernels. Rows are divided among cubes (workgroups, blocks), the columns of a row among the units (threads) of a
//! cube. Every sum has a fixed order, so that a device gives the same bits in every run.

pub mod adam;
pub mod attention;
pub mod cross_entropy;
pub mod embeddings;
pub mod gelu;
pub mod linear;
pub mod mask;
pub mod norm;
pub mod product;
pub mod softmax;
pub mod squares;
pub mod sums;

use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

/// Units of a cube; a power of 2, and the fewest that WebGPU promises are 256.
pub const UNITS: usize = 64;

/// The most cubes in one dimension of a launch; WebGPU promises 65 535.
const MOST_CUBES: usize = 65_535;

/// A launch of `count` cubes, in two dimensions where one has not room for them.
pub fn cubes(count: usize) -> CubeCount {
    let across = count.clamp(1, MOST_CUBES);
    CubeCount::Static(across as u32, count.div_ceil(across).max(1) as u32, 1)
}

/// The dimensions of a cube.
pub fn units(count: usize) -> CubeDim {
    CubeDim::new_1d(count as u32)
}

/// The number of this cube in a launch of [`cubes`].
#[cube]
pub fn cube_number() -> usize {
    CUBE_POS_X as usize + CUBE_POS_Y as usize * CUBE_COUNT_X as usize
}

/// The number of this unit in a launch of [`cubes`] with `units` units each.
#[cube]
pub fn unit_number(#[comptime] units: usize) -> usize {
    cube_number() * units + UNIT_POS_X as usize
}

/// The sum of a value over the units of the cube, the same for all of them. `room` has a place for each unit.
#[cube]
pub fn sum_over_units(value: f32, room: &mut Shared<[f32]>, #[comptime] units: usize) -> f32 {
    let unit = UNIT_POS_X as usize;
    // Whoever still reads the last result must be done.
    sync_cube();
    room[unit] = value;
    sync_cube();
    let halvings = comptime!(units.ilog2() as usize);
    #[unroll]
    for halving in 0..halvings {
        let width = comptime!(units >> (halving + 1));
        if unit < width {
            let other = room[unit + width];
            room[unit] += other;
        }
        sync_cube();
    }
    room[0]
}

/// The largest value over the units of the cube.
#[cube]
pub fn max_over_units(value: f32, room: &mut Shared<[f32]>, #[comptime] units: usize) -> f32 {
    let unit = UNIT_POS_X as usize;
    sync_cube();
    room[unit] = value;
    sync_cube();
    let halvings = comptime!(units.ilog2() as usize);
    #[unroll]
    for halving in 0..halvings {
        let width = comptime!(units >> (halving + 1));
        if unit < width {
            let other = room[unit + width];
            if other > room[unit] {
                room[unit] = other;
            }
        }
        sync_cube();
    }
    room[0]
}

/// Where the rows of a tensor that is seen as a matrix lie.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// The product of all dimensions but the last.
    pub rows: usize,
    /// The last dimension.
    pub columns: usize,
}

/// The tensor as a matrix of rows that follow each other in memory, copied if they do not.
pub fn matrix(tensor: CubeTensor) -> (CubeTensor, Matrix) {
    let tensor = into_contiguous(tensor);
    let shape = tensor.meta.shape();
    let columns = shape.last().copied().unwrap_or(1);
    let rows = shape.num_elements() / columns.max(1);
    (tensor, Matrix { rows, columns })
}

/// A float32 tensor beside another, its memory unwritten.
pub fn unwritten(beside: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    empty_device_contiguous_dtype(
        beside.client.clone(),
        beside.device.clone(),
        shape.into(),
        DType::F32,
    )
}
