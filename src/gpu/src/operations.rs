//! The kernels as burn sees them: operations of the CubeCL backend, queued like its own by burn's fusion.

use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::wgpu::CubeBackend;
use burn::backend::{Backend, backend_extension};
use burn::tensor::{DType, Shape};

use crate::kernels::mask::{Dropped, drop_elements};
use crate::kernels::{gelu, norm, softmax};

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

    /// GELU of `x + bias`.
    #[fusion(meta = |x, _bias| x.clone())]
    fn gelu_of_sum(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The gradients of x and bias.
    #[fusion(meta = |_gradient, x, bias| (x.clone(), bias.clone()))]
    fn gelu_of_sum_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Every element times 0 or the mask's factor.
    #[fusion(meta = |x, _dropped| x.clone())]
    fn drop_out(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self>;

    /// Probabilities before and after dropout.
    #[fusion(meta = |scores, _mask, _scale, _dropped| (scores.clone(), scores.clone()))]
    fn softmax_of_scores(
        scores: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        scale: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the scores.
    #[fusion(meta = |gradient, _probabilities, _mask, _scale, _dropped| gradient.clone())]
    fn softmax_of_scores_backward(
        gradient: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        scale: f32,
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self>;
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
        let made = norm::backward(gradient, normalized, inverse, gamma, dropped);
        (made.x, made.sum, made.gamma, made.beta)
    }

    fn gelu_of_sum(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        gelu::forward(x, bias)
    }

    fn gelu_of_sum_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        gelu::backward(gradient, x, bias)
    }

    fn drop_out(x: FloatTensor<Self>, dropped: Dropped) -> FloatTensor<Self> {
        drop_elements(x, dropped)
    }

    fn softmax_of_scores(
        scores: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        scale: f32,
        dropped: Option<Dropped>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        softmax::forward(scores, mask, scale, dropped)
    }

    fn softmax_of_scores_backward(
        gradient: FloatTensor<Self>,
        probabilities: FloatTensor<Self>,
        mask: FloatTensor<Self>,
        scale: f32,
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self> {
        softmax::backward(gradient, probabilities, mask, scale, dropped)
    }
}
