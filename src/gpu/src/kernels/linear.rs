//! Layers with weights: a product, its bias, GELU; and the gradients of all of it, each in one operation of burn's.
//!
//! Where x and the weights are float16 (or bfloat16), products multiply numbers of that type, and so are the gradients of
//! both; biases, outputs and the gradient that comes in are float32.

use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::cast;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::product::{Finish, finished, product, with_sums};
use super::sums::sum_over_rows;
use super::{gelu, unwritten};

/// What one who does not want a gradient gets instead of it.
const NOTHING: [usize; 1] = [1];

/// `x · weightᵀ + bias`: x [.., I], weight [O, I], bias `[O]` → [.., O]
pub fn forward(x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor {
    let shape = outputs(&x, &weight);
    let finish = Finish::with_bias(bias);
    let sum = match x.dtype {
        DType::F32 => finished(rows(x), weight, [false, true], &finish),
        _ => finish.after(in_f32(product(rows(x), weight, [false, true]))),
    };
    reshape(sum, shape)
}

/// GELU of [`forward`], and the product alone, in the type of x.
pub fn gelu_forward(
    x: CubeTensor,
    weight: CubeTensor,
    bias: CubeTensor,
) -> (CubeTensor, CubeTensor) {
    let shape = outputs(&x, &weight);
    let product = reshape(product(rows(x), weight, [false, true]), shape);
    (gelu::forward(in_f32(product.clone()), bias), product)
}

/// The gradients of x, the weights and the bias, as far as they are wanted. `added` is added to that of x.
pub fn backward(
    gradient: CubeTensor,
    x: CubeTensor,
    weight: CubeTensor,
    added: Option<CubeTensor>,
    wanted: [bool; 3],
) -> [CubeTensor; 3] {
    if wanted[1] && wanted[2] && x.dtype == DType::F32 {
        let (of_weight, of_bias) = with_sums(rows(gradient.clone()), rows(x.clone()));
        let of_x = wanted[0].then(|| of_x(gradient.clone(), &x, weight, added));
        return or_nothing(&gradient, [of_x, Some(of_weight), Some(of_bias)]);
    }
    let of_bias = wanted[2].then(|| sum_over_rows(gradient.clone()));
    of_product(gradient, x, weight, added, of_bias, wanted)
}

/// [`backward`] of [`gelu_forward`], whose product is given.
pub fn gelu_backward(
    gradient: CubeTensor,
    x: CubeTensor,
    weight: CubeTensor,
    product: CubeTensor,
    bias: CubeTensor,
    wanted: [bool; 3],
) -> [CubeTensor; 3] {
    let (gradient, of_bias) = gelu::backward(gradient, in_f32(product), bias);
    let of_bias = wanted[2].then_some(of_bias);
    of_product(gradient, x, weight, None, of_bias, wanted)
}

/// The gradients of what was multiplied, for that of the product, beside that of the bias.
fn of_product(
    gradient: CubeTensor,
    x: CubeTensor,
    weight: CubeTensor,
    added: Option<CubeTensor>,
    of_bias: Option<CubeTensor>,
    wanted: [bool; 3],
) -> [CubeTensor; 3] {
    let gradient = as_type_of(gradient, &x);
    let of_x = wanted[0].then(|| of_x(gradient.clone(), &x, weight, added));
    let of_weight = wanted[1].then(|| product(rows(gradient.clone()), rows(x), [true, false]));
    or_nothing(&gradient, [of_x, of_weight, of_bias])
}

/// The gradient of x for that of the product, both of one type.
fn of_x(
    gradient: CubeTensor,
    x: &CubeTensor,
    weight: CubeTensor,
    added: Option<CubeTensor>,
) -> CubeTensor {
    let finish = Finish::added(added.map(rows));
    let of_x = finished(rows(gradient), weight, [false, false], &finish);
    reshape(of_x, x.meta.shape().clone())
}

/// A number in the place of each that there is not.
fn or_nothing<const N: usize>(
    beside: &CubeTensor,
    made: [Option<CubeTensor>; N],
) -> [CubeTensor; N] {
    made.map(|made| made.unwrap_or_else(|| unwritten(beside, NOTHING)))
}

/// [.., I] as [T, I].
fn rows(x: CubeTensor) -> CubeTensor {
    let shape = x.meta.shape();
    let (before, last) = shape.split_at(shape.num_dims() - 1);
    let shape = Shape::new([before.iter().product(), last[0]]);
    reshape(x, shape)
}

/// The shape of what a layer puts out.
fn outputs(x: &CubeTensor, weight: &CubeTensor) -> Shape {
    let mut shape = x.meta.shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = weight.meta.shape()[0];
    shape
}

/// In float32.
pub fn in_f32(tensor: CubeTensor) -> CubeTensor {
    cast(tensor, DType::F32)
}

/// A float32 tensor in the type of another.
pub fn as_type_of(tensor: CubeTensor, other: &CubeTensor) -> CubeTensor {
    cast(tensor, other.dtype)
}
