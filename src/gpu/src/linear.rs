//! Layers with weights as checkpoints store them, [outputs, inputs], and products. The gradient of the weights
//! comes in their own order, so that nobody has to copy it into that order, and GELU is one launch with the bias.
//!
//! Where x and the weights are float16 (or bfloat16), products read and write that type and add in float32, in both
//! directions, and what is kept for the backward pass has it. Biases, outputs and the gradient that comes in are float32.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, FloatDType, Shape, Tensor};
use burn_cubecl::CubeDevice;

use crate::operations::Kernels;

/// `x · weightᵀ + bias`.
///
/// # Shapes
/// x [T, I]; weight [O, I], of the same type; bias `[O]` → [T, O]
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gpu_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    ))
}

/// The exact GELU of [`linear`].
pub fn linear_gelu(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gpu_linear_gelu(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    ))
}

/// `left · right`, or `left · rightᵀ` of the last two dimensions.
///
/// # Shapes
/// left [B, N, M, K]; right [B, N, K, L], or [B, N, L, K] where it is transposed; of one type → [B, N, M, L]
pub fn product(left: Tensor<4>, right: Tensor<4>, transposed: bool) -> Tensor<4> {
    Tensor::from_dispatch(Dispatch::gpu_product(
        left.into_dispatch(),
        right.into_dispatch(),
        transposed,
    ))
}

/// Shapes and meanings are those of the functions above.
#[backend_extension(Cube, Autodiff)]
trait Layers: Backend {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    fn gpu_product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        transposed: bool,
    ) -> FloatTensor<Self>;
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

/// The product of the last two dimensions, of which those of `transposed` are exchanged first: by our choice of a kernel, but
/// for 16 bits on other devices than CUDA, where burn takes the one that it finds the fastest.
fn multiplied(left: Primitive, right: Primitive, transposed: [bool; 2]) -> Primitive {
    if left.dtype() == DType::F32 || matches!(left.device(), CubeDevice::Cuda(_)) {
        return Cube::product(left, right, transposed);
    }
    let exchanged = |tensor: Primitive, exchanged: bool| match exchanged {
        true => Cube::float_transpose(tensor),
        false => tensor,
    };
    Cube::float_matmul(
        exchanged(left, transposed[0]),
        exchanged(right, transposed[1]),
    )
}

fn in_f32(tensor: Primitive) -> Primitive {
    match tensor.dtype() {
        DType::F32 => tensor,
        _ => Cube::float_cast(tensor, FloatDType::F32),
    }
}

/// A float32 tensor in the type of another.
fn as_type_of(tensor: Primitive, other: &Primitive) -> Primitive {
    match other.dtype() {
        DType::F16 => Cube::float_cast(tensor, FloatDType::F16),
        DType::BF16 => Cube::float_cast(tensor, FloatDType::BF16),
        _ => tensor,
    }
}

impl Layers for Cube {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let outputs = bias.shape().num_elements();
        let bias = Self::float_reshape(bias, Shape::new([1, outputs]));
        Self::float_add(in_f32(multiplied(x, weight, [false, true])), bias)
    }

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::gelu_of_sum(in_f32(multiplied(x, weight, [false, true])), bias)
    }

    fn gpu_product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        multiplied(left, right, [false, transposed])
    }
}

impl<C: CheckpointStrategy> Layers for Autodiff<Cube, C> {
    fn gpu_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let output = Cube::gpu_linear(x.clone(), weight.clone(), bias);
        let prepared = LinearBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => prep.finish((x, weight), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn gpu_linear_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let product = multiplied(x.clone(), weight.clone(), [false, true]);
        let output = Cube::gelu_of_sum(in_f32(product.clone()), bias.clone());
        let prepared = LinearGeluBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = GeluState {
                    x,
                    weight,
                    product,
                    bias,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn gpu_product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        let nodes = [left.node(), right.node()];
        let [left, right] = [left, right].map(|tensor| tensor.into_primitive());
        let output = Cube::gpu_product(left.clone(), right.clone(), transposed);
        let prepared = ProductBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => prep.finish((left, right, transposed), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// The gradients of x and weight, as far as they are wanted, for that of the product.
fn of_product(
    gradient: &Primitive,
    x: Primitive,
    weight: Primitive,
    wanted: [bool; 2],
) -> [Option<Primitive>; 2] {
    let gradient = as_type_of(gradient.clone(), &x);
    let of_x = wanted[0].then(|| multiplied(gradient.clone(), weight, [false, false]));
    let of_weight = wanted[1].then(|| multiplied(gradient.clone(), x, [true, false]));
    [of_x, of_weight]
}

/// Rows that one unit may add up.
const MOST_ROWS: usize = 16_384;

/// [T, O] → [1, O], the sum over the rows; in two stages where they are many, for the reason in [`crate::sum`].
fn over_rows(x: Primitive) -> Primitive {
    let (shape, mut x) = (x.shape(), x);
    let columns = shape.last().copied().unwrap_or(1);
    let rows = shape.num_elements() / columns.max(1);
    if rows > MOST_ROWS {
        let parts = (1..=MOST_ROWS).rev().find(|parts| rows % parts == 0);
        let parts = parts.unwrap_or(1);
        let cut = Cube::float_reshape(x, Shape::new([parts, rows / parts, columns]));
        x = Cube::float_reshape(Cube::float_sum_dim(cut, 1), Shape::new([parts, columns]));
    }
    Cube::float_sum_dim(x, 0)
}

/// `linear`: keeps x and the weights.
#[derive(Debug)]
struct LinearBackward;

impl Backward<Cube, 3> for LinearBackward {
    type State = (Primitive, Primitive);

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (x, weight) = ops.state;
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let wanted = [parents[0].is_some(), parents[1].is_some()];
        let [of_x, of_weight] = of_product(&gradient, x, weight, wanted);
        let of_bias = parents[2].is_some().then(|| {
            let outputs = gradient.shape().last().copied().unwrap_or(1);
            Cube::float_reshape(over_rows(gradient), Shape::new([outputs]))
        });
        for (parent, gradient) in parents.into_iter().zip([of_x, of_weight, of_bias]) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Cube>(parent, gradient);
            }
        }
    }
}

/// `linear_gelu`: keeps x, the parameters and the product.
#[derive(Debug)]
struct LinearGeluBackward;

#[derive(Clone, Debug)]
struct GeluState {
    x: Primitive,
    weight: Primitive,
    product: Primitive,
    bias: Primitive,
}

impl Backward<Cube, 3> for LinearGeluBackward {
    type State = GeluState;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let GeluState {
            x,
            weight,
            product,
            bias,
        } = ops.state;
        let (of_sum, of_bias) = Cube::gelu_of_sum_backward(gradient, in_f32(product), bias);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let wanted = [parents[0].is_some(), parents[1].is_some()];
        let [of_x, of_weight] = of_product(&of_sum, x, weight, wanted);
        for (parent, gradient) in parents.into_iter().zip([of_x, of_weight, Some(of_bias)]) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Cube>(parent, gradient);
            }
        }
    }
}

/// `product`: keeps both factors.
#[derive(Debug)]
struct ProductBackward;

impl Backward<Cube, 2> for ProductBackward {
    type State = (Primitive, Primitive, bool);

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let (left, right, transposed) = ops.state;
        let [of_left, of_right] = ops.parents.map(|parent| parent.map(|node| node.id));
        if let Some(parent) = of_left {
            let of_left = multiplied(gradient.clone(), right, [false, !transposed]);
            grads.register::<Cube>(parent, of_left);
        }
        if let Some(parent) = of_right {
            let of_right = match transposed {
                true => multiplied(gradient, left, [true, false]),
                false => multiplied(left, gradient, [true, false]),
            };
            grads.register::<Cube>(parent, of_right);
        }
    }
}
