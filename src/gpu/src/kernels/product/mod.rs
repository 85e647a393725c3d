//! Matrix products by one kernel for each type of numbers. burn compiles and times each of its two dozen kernels at every new
//! shape, and takes the fastest of that process: a first step takes minutes on CUDA, two processes may get other bits, and
//! float32 may be multiplied as TF32, which has 10 bits of its 23.

mod finish;
mod float32;
mod sixteen_bits;
mod tiles;

use burn::tensor::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::numeric::add;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::sums::{sum_groups, sum_over_rows};
use float32::Made;

/// Terms of a part of a long sum, at least.
const FEWEST_TERMS: usize = 128;

/// What becomes of a product before it is written.
#[derive(Clone, Default)]
pub struct Finish {
    /// Added to each row.
    pub bias: Option<CubeTensor>,
    /// Added to the product; of its shape.
    pub added: Option<CubeTensor>,
    /// The rows of the left factor are added up too.
    sums: bool,
    /// The products of the batch's inner numbers lie beside each other: [B, N, m, n] is written as [B, m, N · n].
    pub joined: bool,
}

impl Finish {
    /// With this added to each row.
    pub fn with_bias(bias: CubeTensor) -> Self {
        Self {
            bias: Some(bias),
            ..Self::default()
        }
    }

    /// Beside each other.
    pub fn joined() -> Self {
        Self {
            joined: true,
            ..Self::default()
        }
    }

    /// With this added to it.
    pub fn added(tensor: Option<CubeTensor>) -> Self {
        Self {
            added: tensor,
            ..Self::default()
        }
    }

    /// Of a product that is written already.
    pub fn after(&self, product: CubeTensor) -> CubeTensor {
        let mut finished = product;
        if let Some(bias) = &self.bias {
            let rank = finished.meta.num_dims();
            let mut row = vec![1; rank];
            row[rank - 1] = bias.meta.num_elements();
            finished = add(finished, reshape(bias.clone(), Shape::from(row)));
        }
        if let Some(added) = &self.added {
            finished = add(finished, added.clone());
        }
        if self.joined {
            let shape = joined_shape(finished.meta.shape());
            finished.meta.swap(1, 2);
            finished = reshape(finished, shape);
        }
        finished
    }
}

/// [B, N, m, n] → [B, m, N · n]
fn joined_shape(shape: &Shape) -> Shape {
    Shape::new([shape[0], shape[2], shape[1] * shape[3]])
}

/// The product of the last two dimensions, of which those of `transposed` are exchanged first. The dimensions before them
/// are the same for both, and so is the type.
pub fn product(left: CubeTensor, right: CubeTensor, transposed: [bool; 2]) -> CubeTensor {
    finished(left, right, transposed, &Finish::default())
}

/// [`product`], finished. Where the device does not have what the kernel needs, burn chooses one; and for 16 bits on other
/// devices than CUDA, where it takes the one that it finds the fastest.
pub fn finished(
    left: CubeTensor,
    right: CubeTensor,
    transposed: [bool; 2],
    finish: &Finish,
) -> CubeTensor {
    let dtype = left.dtype;
    let [of_left, of_right] = [
        exchanged(left.clone(), transposed[0]),
        exchanged(right.clone(), transposed[1]),
    ];
    let made = match (dtype, &left.device) {
        (DType::F32, _) => {
            if let Some(made) = float32::product(of_left.clone(), of_right.clone(), finish) {
                return made.product;
            }
            None
        }
        (_, CubeDevice::Cuda(_)) => sixteen_bits::product(left, right, transposed),
        _ => None,
    };
    finish.after(made.unwrap_or_else(|| {
        let made = matmul(of_left, of_right, None, MatmulStrategy::default(), dtype);
        made.expect("burn multiplies what has these shapes")
    }))
}

/// leftᵀ · right of float32, and the sum of the rows of left.
pub fn with_sums(left: CubeTensor, right: CubeTensor) -> (CubeTensor, CubeTensor) {
    let finish = Finish {
        sums: true,
        ..Finish::default()
    };
    let made = float32::product(exchanged(left.clone(), true), right.clone(), &finish);
    match made {
        Some(Made {
            product,
            sums: Some(sums),
        }) => (product, sums),
        _ => (
            product(left.clone(), right, [true, false]),
            sum_over_rows(left),
        ),
    }
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
fn shape_of(left: &Shape, right: &Shape, transposed: [bool; 2]) -> Shape {
    let last = left.num_dims() - 1;
    let mut shape = left.clone();
    if transposed[0] {
        shape[last - 1] = left[last];
    }
    shape[last] = right[if transposed[1] { last - 1 } else { last }];
    shape
}

/// The product of this shape whose sums were cut into parts, and as many numbers more as each of them has:
/// [parts, elements + more].
fn sum_of_parts(
    products: CubeTensor,
    parts: usize,
    shape: Shape,
    more: usize,
) -> (CubeTensor, CubeTensor) {
    let [sum, rest] = sum_groups(products, parts, [shape.num_elements(), more]);
    (reshape(sum, shape), rest)
}
