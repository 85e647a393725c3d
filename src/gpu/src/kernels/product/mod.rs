//! Matrix products by one kernel for each type of numbers. burn compiles and times each of its two dozen kernels at every new
//! shape, and takes the fastest of that process: a first step takes minutes on CUDA, two processes may get other bits, and
//! float32 may be multiplied as TF32, which has 10 bits of its 23.

mod float32;
mod sixteen_bits;
mod tiles;

use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::sums::sum_groups;

/// Terms of a part of a long sum, at least.
const FEWEST_TERMS: usize = 128;

/// The product of the last two dimensions, of which those of `transposed` are exchanged first. The dimensions before them
/// are the same for both, and so is the type. Where the device does not have what the kernel needs, burn chooses one.
pub fn product(left: CubeTensor, right: CubeTensor, transposed: [bool; 2]) -> CubeTensor {
    let dtype = left.dtype;
    let [of_left, of_right] = [
        exchanged(left.clone(), transposed[0]),
        exchanged(right.clone(), transposed[1]),
    ];
    let made = match dtype {
        DType::F32 => float32::product(of_left.clone(), of_right.clone()),
        _ => sixteen_bits::product(left, right, transposed),
    };
    made.unwrap_or_else(|| {
        let made = matmul(of_left, of_right, None, MatmulStrategy::default(), dtype);
        made.expect("burn multiplies what has these shapes")
    })
}

/// The tensor with its last two dimensions exchanged, if they are to be.
fn exchanged(mut tensor: CubeTensor, is_exchanged: bool) -> CubeTensor {
    if is_exchanged {
        let last = tensor.meta.num_dims() - 1;
        tensor.meta.swap(last - 1, last);
    }
    tensor
}

/// The shape of a product.
pub fn shape_of(left: &Shape, right: &Shape, transposed: [bool; 2]) -> Shape {
    let last = left.num_dims() - 1;
    let mut shape = left.clone();
    if transposed[0] {
        shape[last - 1] = left[last];
    }
    shape[last] = right[if transposed[1] { last - 1 } else { last }];
    shape
}

/// The product of this shape whose sums were cut into parts: [parts, elements].
fn sum_of_parts(products: CubeTensor, parts: usize, shape: Shape) -> CubeTensor {
    let [sum] = sum_groups::<1>(products, parts, shape.num_elements());
    reshape(sum, shape)
}
