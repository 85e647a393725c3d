//! Products of float16 and bfloat16 by the units that multiply such matrices and add in float32: cubek's kernel, and the sum of
//! a gradient of weights in parts.

use burn::tensor::{DType, Shape, bf16, f16};
use burn_cubecl::kernel::cast;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::strategy::Strategy;
use cubek::std::InputBinding;

use super::{FEWEST_TERMS, exchanged, shape_of, sum_of_parts};

/// Rows of a tile of cubek's kernels for 16 bits, and columns.
const TILE: usize = 128;
/// Parts at most: each is written and read once more.
const MOST_PARTS: usize = 16;
/// Tiles that occupy a GPU.
const TILES: usize = 128;

/// The product of the last two dimensions, of which those of `transposed` are exchanged first. `None` for another type, and
/// where the device does not have what the kernel needs.
pub fn product(left: CubeTensor, right: CubeTensor, transposed: [bool; 2]) -> Option<CubeTensor> {
    let dtype = left.dtype;
    let element = element(dtype)?;
    match parts(&left, &right, transposed) {
        1 => {
            let [left, right] = [
                exchanged(left, transposed[0]),
                exchanged(right, transposed[1]),
            ];
            launch(&left, &right, element, dtype)
        }
        parts => by_parts(left, right, parts, element),
    }
}

/// A type of 16 bits, which units that multiply matrices take and add in float32.
fn element(dtype: DType) -> Option<ElemType> {
    match dtype {
        DType::F16 => Some(f16::elem_type_native()),
        DType::BF16 => Some(bf16::elem_type_native()),
        _ => None,
    }
}

/// The product by cubek's choice for the type, written as numbers of `dtype`.
fn launch(
    left: &CubeTensor,
    right: &CubeTensor,
    element: ElemType,
    dtype: DType,
) -> Option<CubeTensor> {
    let (client, device) = (left.client.clone(), left.device.clone());
    let shape = shape_of(left.meta.shape(), right.meta.shape(), [false, false]);
    let output = empty_device_contiguous_dtype(client.clone(), device, shape, dtype);
    let out = match dtype {
        DType::F32 => f32::elem_type_native(),
        _ => element,
    };
    let mut types = MatmulElems::from_globals(&MatmulGlobalElems {
        lhs: element,
        rhs: element,
        out,
    });
    let factor = |tensor: &CubeTensor| InputBinding::new(tensor.clone().binding(), element);
    let of_output = output.clone().binding();
    let (left, right) = (factor(left), factor(right));
    let launched = launch_ref(&Strategy::Auto, &client, left, right, of_output, &mut types);
    launched.is_ok().then_some(output)
}

/// How many parts the sum of a gradient of weights is cut into: it has as many terms as the batch has tokens, and few tiles.
fn parts(left: &CubeTensor, right: &CubeTensor, transposed: [bool; 2]) -> usize {
    let (shape, other) = (left.meta.shape(), right.meta.shape());
    if transposed != [true, false] || shape.num_dims() != 2 {
        return 1;
    }
    let tiles = shape[1].div_ceil(TILE) * other[1].div_ceil(TILE);
    let most = (TILES / tiles.max(1)).min(shape[0] / FEWEST_TERMS);
    let mut parts = (1..=most.min(MOST_PARTS)).rev();
    parts
        .find(|parts| shape[0].is_multiple_of(*parts))
        .unwrap_or(1)
}

/// leftᵀ · right by products of some rows each, which are added in float32.
fn by_parts(
    left: CubeTensor,
    right: CubeTensor,
    parts: usize,
    element: ElemType,
) -> Option<CubeTensor> {
    let dtype = left.dtype;
    let (rows, m, n) = (
        left.meta.shape()[0] / parts,
        left.meta.shape()[1],
        right.meta.shape()[1],
    );
    let left = exchanged(reshape(left, Shape::new([parts, rows, m])), true);
    let right = reshape(right, Shape::new([parts, rows, n]));
    let products = launch(&left, &right, element, DType::F32)?;
    let (sum, _) = sum_of_parts(products, parts, Shape::new([m, n]), 0);
    Some(cast(sum, dtype))
}
