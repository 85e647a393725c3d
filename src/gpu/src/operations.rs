//! The kernels as burn sees them: operations of the CubeCL backend, queued like its own by burn's fusion.

use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::wgpu::CubeBackend;
use burn::backend::{Backend, backend_extension};
use burn::tensor::{DType, Shape};

use crate::kernels::attention::Attention;
use crate::kernels::mask::{Dropped, drop_elements};
use crate::kernels::norm::Place;
use crate::kernels::{attention, cross_entropy, embeddings, linear, norm};

/// Raw operations: forward passes with what their backward passes need, and backward passes.
#[backend_extension(Cube, Fusion)]
pub(crate) trait Kernels: Backend {
    /// The output, its part before scale and shift, and 1 / σ of each row.
    #[fusion(meta = |x, _gamma, _beta, _eps| (x.clone(), x.clone(), of_rows(x)))]
    fn normalize(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// [`Self::normalize`] of `dropout(x) + residual`.
    #[fusion(meta = |x, _residual, _gamma, _beta, _eps, _dropped| (x.clone(), x.clone(), of_rows(x)))]
    fn add_normalize(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of x, of the sum (and so of the residual), of gamma and of beta.
    #[fusion(meta = |g, _normalized, _inverse, gamma, _dropped| (g.clone(), g.clone(), gamma.clone(), gamma.clone()))]
    fn normalize_backward(
        gradient: FloatTensor<Self>,
        normalized: FloatTensor<Self>,
        inverse: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        dropped: Option<Dropped>,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    );

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

    /// Every element times 0 or the mask's factor.
    #[fusion(meta = |x, _dropped| x.clone())]
    fn drop_out(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self>;

    /// The sum of the rows' losses, and two numbers a row. `targets`: class and weight of each row.
    #[fusion(meta = |_logits, targets, _smoothing| (of_one(), targets.clone()))]
    fn cross_entropy_of_rows(
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        smoothing: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the logits.
    #[fusion(meta = |_gradient, logits, _targets, _kept, _smoothing| logits.clone())]
    fn cross_entropy_of_rows_backward(
        gradient: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        smoothing: f32,
    ) -> FloatTensor<Self>;

    /// [`Self::normalize`] of the sum of three tables' rows, with a dropout of the output.
    #[fusion(meta = |words, _types, _positions, ids, _type_ids, _gamma, _beta, _eps, _dropped| embedded(words, ids))]
    #[allow(clippy::too_many_arguments)]
    fn embed_normalize(
        words: FloatTensor<Self>,
        types: FloatTensor<Self>,
        positions: FloatTensor<Self>,
        ids: IntTensor<Self>,
        type_ids: IntTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of the sum, of gamma and of beta.
    #[fusion(meta = |g, _normalized, _inverse, gamma, _dropped| (g.clone(), gamma.clone(), gamma.clone()))]
    fn embed_normalize_backward(
        gradient: FloatTensor<Self>,
        normalized: FloatTensor<Self>,
        inverse: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of the tables of words and positions, of so many entries, for that of the sum.
    #[fusion(meta = |g, _ids, entries, _padding| (table(g, entries[0]), table(g, entries[1])))]
    fn embed_words_backward(
        of_sum: FloatTensor<Self>,
        ids: IntTensor<Self>,
        entries: [usize; 2],
        padding: Option<usize>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the table of segments.
    #[fusion(meta = |g, _type_ids, entries, _untrained| table(g, *entries))]
    fn embed_types_backward(
        of_sum: FloatTensor<Self>,
        type_ids: IntTensor<Self>,
        entries: usize,
        untrained: Option<usize>,
    ) -> FloatTensor<Self>;
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

/// A single number.
fn of_one() -> TensorSpec {
    TensorSpec::new(Shape::new([1]), DType::F32)
}

/// A table with as many columns as x.
fn table(x: &TensorSpec, entries: usize) -> TensorSpec {
    let columns = x.shape.last().copied().unwrap_or(1);
    TensorSpec::new(Shape::new([entries, columns]), DType::F32)
}

/// A row of the table for each index: two of them, and one number a row.
fn embedded(words: &TensorSpec, ids: &TensorSpec) -> (TensorSpec, TensorSpec, TensorSpec) {
    let mut shape: Vec<usize> = ids.shape.iter().copied().collect();
    shape.push(words.shape[1]);
    let rows = TensorSpec::new(Shape::from(shape), DType::F32);
    (rows.clone(), rows.clone(), of_rows(&rows))
}

/// One number for each row.
fn of_rows(x: &TensorSpec) -> TensorSpec {
    let columns = x.shape.last().copied().unwrap_or(1).max(1);
    TensorSpec::new(Shape::new([x.shape.num_elements() / columns]), DType::F32)
}

impl Kernels for CubeBackend {
    fn normalize(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let made = norm::forward(x, None, gamma, beta, eps, None);
        (made.output, made.normalized, made.inverse)
    }

    fn add_normalize(
        x: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let made = norm::forward(x, Some(residual), gamma, beta, eps, dropped);
        (made.output, made.normalized, made.inverse)
    }

    fn normalize_backward(
        gradient: FloatTensor<Self>,
        normalized: FloatTensor<Self>,
        inverse: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        dropped: Option<Dropped>,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    ) {
        let made = norm::backward(gradient, normalized, inverse, gamma, Place::Input(dropped));
        (made.x, made.sum, made.gamma, made.beta)
    }

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

    fn drop_out(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self> {
        drop_elements(x, dropped)
    }

    fn cross_entropy_of_rows(
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        smoothing: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        cross_entropy::forward(logits, targets, smoothing)
    }

    fn cross_entropy_of_rows_backward(
        gradient: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        smoothing: f32,
    ) -> FloatTensor<Self> {
        cross_entropy::backward(gradient, logits, targets, kept, smoothing)
    }

    fn embed_normalize(
        words: FloatTensor<Self>,
        types: FloatTensor<Self>,
        positions: FloatTensor<Self>,
        ids: IntTensor<Self>,
        type_ids: IntTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        eps: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let tables = embeddings::Tables {
            words,
            types,
            positions,
        };
        let made = embeddings::forward(tables, ids, type_ids, gamma, beta, eps, dropped);
        (made.output, made.normalized, made.inverse)
    }

    fn embed_normalize_backward(
        gradient: FloatTensor<Self>,
        normalized: FloatTensor<Self>,
        inverse: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let made = norm::backward(gradient, normalized, inverse, gamma, Place::Output(dropped));
        (made.sum, made.gamma, made.beta)
    }

    fn embed_words_backward(
        of_sum: FloatTensor<Self>,
        ids: IntTensor<Self>,
        entries: [usize; 2],
        padding: Option<usize>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        embeddings::words_and_positions(of_sum, ids, entries, padding)
    }

    fn embed_types_backward(
        of_sum: FloatTensor<Self>,
        type_ids: IntTensor<Self>,
        entries: usize,
        untrained: Option<usize>,
    ) -> FloatTensor<Self> {
        embeddings::types(of_sum, type_ids, entries, untrained)
    }
}
