//! The kernels as burn sees them: operations of the CubeCL backend, queued like its own by burn's fusion.

use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::wgpu::CubeBackend;
use burn::backend::{Backend, backend_extension};
use burn::tensor::{DType, Shape};

use crate::kernels::mask::{Dropped, drop_elements};
use crate::kernels::norm::Place;
use crate::kernels::{cross_entropy, embeddings, norm};

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

/// A single number.
pub(crate) fn of_one() -> TensorSpec {
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
