//! Matrix products by one kernel for each type of numbers. burn compiles and times each of its two dozen kernels at every new
//! shape, and takes the fastest of that process: a first step takes minutes on CUDA, two processes may get other bits, and
//! float32 may be multiplied as TF32, which has 10 bits of its 23.

use burn::tensor::{DType, Shape, bf16, f16};
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level;
use cubek::matmul::strategy::Strategy;
use cubek::std::InputBinding;

/// The product of the last two dimensions, of which those of `transposed` are exchanged first. The dimensions before them
/// are the same for both, and so is the type. Where the device does not have what the kernel needs, burn chooses one.
pub fn product(left: CubeTensor, right: CubeTensor, transposed: [bool; 2]) -> CubeTensor {
    let dtype = left.dtype;
    let shape = shape_of(left.meta.shape(), right.meta.shape(), transposed);
    let (client, device) = (left.client.clone(), left.device.clone());
    let output = empty_device_contiguous_dtype(client.clone(), device, shape, dtype);
    let (left, right) = (
        exchanged(left, transposed[0]),
        exchanged(right, transposed[1]),
    );
    let launched = kernel(dtype).is_some_and(|(element, strategy)| {
        let mut types = MatmulElems::from_globals(&MatmulGlobalElems {
            lhs: element,
            rhs: element,
            out: element,
        });
        let factor = |tensor: &CubeTensor| InputBinding::new(tensor.clone().binding(), element);
        let (of_left, of_right) = (factor(&left), factor(&right));
        let of_output = output.clone().binding();
        launch_ref(&strategy, &client, of_left, of_right, of_output, &mut types).is_ok()
    });
    if launched {
        return output;
    }
    let made = matmul(left, right, Some(output), MatmulStrategy::default(), dtype);
    made.expect("burn multiplies what has these shapes")
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

/// The kernel for numbers of a type: units of the GPU that compute in float32, or those that multiply matrices of 16 bits
/// and add in float32.
fn kernel(dtype: DType) -> Option<(ElemType, Strategy)> {
    let in_units = multi_level::Strategy::SimpleUnit(Default::default());
    match dtype {
        DType::F32 => Some((f32::elem_type_native(), Strategy::MultiLevel(in_units))),
        DType::F16 => Some((f16::elem_type_native(), Strategy::Auto)),
        DType::BF16 => Some((bf16::elem_type_native(), Strategy::Auto)),
        _ => None,
    }
}
