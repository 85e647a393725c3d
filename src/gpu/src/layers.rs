//! Linear layers and attention as burn sees them: operations of the CubeCL backend, queued like its own by burn's fusion, each
//! of which launches several kernels.

use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::wgpu::CubeBackend;
use burn::backend::{Backend, backend_extension};
use burn::tensor::{DType, Shape};

use crate::kernels::attention::{self, Attention};
use crate::kernels::linear;
use crate::operations::of_one;

/// Raw operations: forward passes with what their backward passes need, and backward passes.
#[backend_extension(Cube, Fusion)]
pub(crate) trait LayerKernels: Backend {
    /// `x · weightᵀ + bias`.
    #[fusion(meta = |x, weight, _bias| outputs(x, weight, DType::F32))]
    fn dense(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// The gradients of x, weight and bias; of those that are not wanted, a single number.
    #[fusion(meta = |_gradient, x, weight, wanted| gradients(x, weight, *wanted))]
    fn dense_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        wanted: [bool; 3],
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// GELU of [`Self::dense`], and the product without the bias in the type of x.
    #[fusion(meta = |x, weight, _bias| (outputs(x, weight, DType::F32), outputs(x, weight, x.dtype)))]
    fn dense_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// As [`Self::dense_backward`].
    #[fusion(meta = |_gradient, x, weight, _product, _bias, wanted| gradients(x, weight, *wanted))]
    fn dense_gelu_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        product: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        wanted: [bool; 3],
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The mean of the values, and the probabilities before dropout.
    #[fusion(meta = |query, key, _value, _mask, attention| attended(query, key, attention.heads))]
    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of query, key and value.
    #[fusion(meta = |_g, query, key, value, _p, _mask, _attention| (query.clone(), key.clone(), value.clone()))]
    fn attend_backward(
        gradient: FloatTensor<Self>,
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// [`Self::attend`] of the projections of x; then query, key and value in the type of x.
    #[fusion(meta = |x, query, _bq, _key, _bk, _value, _bv, _mask, attention| projected(x, query, attention.heads))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn attend_projected(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    );

    /// The gradients of x, and of weight and bias of query, key and value; of those that are not wanted, a single number.
    #[fusion(meta = |_g, x, q, k, v, _query, _key, _value, _p, _mask, _attention, wanted| projections(x, [q, k, v], *wanted))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn attend_projected_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
        wanted: [bool; 7],
    ) -> (
        FloatTensor<Self>,
        (FloatTensor<Self>, FloatTensor<Self>),
        (FloatTensor<Self>, FloatTensor<Self>),
        (FloatTensor<Self>, FloatTensor<Self>),
    );
}

/// What a layer puts out.
fn outputs(x: &TensorSpec, weight: &TensorSpec, dtype: DType) -> TensorSpec {
    let mut shape = x.shape.clone();
    let last = shape.num_dims() - 1;
    shape[last] = weight.shape[0];
    TensorSpec::new(shape, dtype)
}

/// What an attention with its projections puts out and leaves.
fn projected(
    x: &TensorSpec,
    weight: &TensorSpec,
    heads: usize,
) -> (TensorSpec, TensorSpec, TensorSpec, TensorSpec, TensorSpec) {
    let query = outputs(x, weight, x.dtype);
    let (output, probabilities) = attended(&query, &query, heads);
    (output, probabilities, query.clone(), query.clone(), query)
}

/// The gradients of an attention with its projections that are wanted.
#[allow(clippy::type_complexity)]
fn projections(
    x: &TensorSpec,
    weights: [&TensorSpec; 3],
    wanted: [bool; 7],
) -> (
    TensorSpec,
    (TensorSpec, TensorSpec),
    (TensorSpec, TensorSpec),
    (TensorSpec, TensorSpec),
) {
    let layer = |at: usize| {
        let wanted = [wanted[0], wanted[2 * at + 1], wanted[2 * at + 2]];
        gradients(x, weights[at], wanted)
    };
    let ((of_x, qw, qb), (_, kw, kb), (_, vw, vb)) = (layer(0), layer(1), layer(2));
    (of_x, (qw, qb), (kw, kb), (vw, vb))
}

/// Those of x, weight and bias that are wanted.
fn gradients(
    x: &TensorSpec,
    weight: &TensorSpec,
    wanted: [bool; 3],
) -> (TensorSpec, TensorSpec, TensorSpec) {
    let bias = TensorSpec::new(Shape::new([weight.shape[0]]), DType::F32);
    let or_nothing = |made: &TensorSpec, wanted| match wanted {
        true => made.clone(),
        false => of_one(),
    };
    (
        or_nothing(x, wanted[0]),
        or_nothing(weight, wanted[1]),
        or_nothing(&bias, wanted[2]),
    )
}

/// What an attention puts out, and its probabilities.
fn attended(query: &TensorSpec, key: &TensorSpec, heads: usize) -> (TensorSpec, TensorSpec) {
    let (batch, positions) = (query.shape[0], query.shape[1]);
    let probabilities = Shape::new([batch, heads, positions, key.shape[1]]);
    (
        TensorSpec::new(query.shape.clone(), DType::F32),
        TensorSpec::new(probabilities, DType::F32),
    )
}

impl LayerKernels for CubeBackend {
    fn dense(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        linear::forward(x, weight, bias)
    }

    fn dense_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        wanted: [bool; 3],
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        linear::backward(gradient, x, weight, None, wanted).into()
    }

    fn dense_gelu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        linear::gelu_forward(x, weight, bias)
    }

    fn dense_gelu_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        product: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        wanted: [bool; 3],
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        linear::gelu_backward(gradient, x, weight, product, bias, wanted).into()
    }

    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        attention::forward([query, key, value], mask, attention)
    }

    fn attend_backward(
        gradient: FloatTensor<Self>,
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let inputs = [query, key, value];
        attention::backward(gradient, inputs, probabilities, mask, attention).into()
    }

    fn attend_projected(
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        query_bias: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        key_bias: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        value_bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    ) {
        let layers = [
            [query_weight, query_bias],
            [key_weight, key_bias],
            [value_weight, value_bias],
        ];
        let (output, left) = attention::project(x, layers, mask, attention);
        let [query, key, value] = left.inputs;
        (output, left.probabilities, query, key, value)
    }

    fn attend_projected_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        query_weight: FloatTensor<Self>,
        key_weight: FloatTensor<Self>,
        value_weight: FloatTensor<Self>,
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        attention: Attention,
        wanted: [bool; 7],
    ) -> (
        FloatTensor<Self>,
        (FloatTensor<Self>, FloatTensor<Self>),
        (FloatTensor<Self>, FloatTensor<Self>),
        (FloatTensor<Self>, FloatTensor<Self>),
    ) {
        let weights = [query_weight, key_weight, value_weight];
        let left = attention::Left {
            x,
            inputs: [query, key, value],
            probabilities,
        };
        let (of_x, [query, key, value]) =
            attention::project_backward(gradient, left, weights, mask, attention, wanted);
        (of_x, query.into(), key.into(), value.into())
    }
}
