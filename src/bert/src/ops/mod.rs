//! The encoder's arithmetic, behind one function per operation.
//!
//! Each operation has up to three forms, chosen at run time by the tensor's device and type: `portable`
//! composes burn's own operations and runs everywhere; the fused form computes on the float32 slices
//! of burn's CPU backend, forward and backward, in as few passes as possible; `gpu` is one operation of
//! burn's on wgpu or CUDA, of few kernels, where the portable form is many. All are differentiable.
//! The fused form gives the same bits however many threads there are: every sum has a fixed order.
//! Under a mixed-precision policy outputs and weights are rounded to 16 bits, or products multiply numbers of 16 bits
//! (`precision`). A pass can be canceled (`stop`).
//!
//! Dimensions: B sequences, S positions, H = hidden size, N heads, D = H / N, I inputs, O outputs.

mod cpu;
mod fused;
mod gpu;
mod key;
mod portable;
mod precision;
mod probe;
mod relative;
mod rotary;
mod stop;

#[cfg(test)]
mod agreement;

use burn::backend::Dispatch;
use burn::tensor::{DType, Int, Tensor};

pub use key::{DropoutKey, Heads};
pub use precision::{Bfloat16, Precision, bfloat16_on_cpu, rounded};
pub use relative::{
    Scores, biased_attention, by_distance, of_pairs, probabilities_of, products_of_heads,
};
pub use rotary::{local_attention, rotary};
pub use stop::Stop;
pub use stratoscope_gpu::Lookup;

pub(crate) use probe::{arrival, probed};

use crate::{operation, taps};
use fused::FusedOps;
use key::Mask;

/// Whether loops may use AVX2: the processor has it, and `STRATOSCOPE_CPU` does not disable it.
pub fn allows_avx2() -> bool {
    cpu::level() >= cpu::Level::Avx2
}

/// The entries of `table` at the indices. In training the entry `padding` gets no gradient.
///
/// # Shapes
/// table [V, H]; indices [B, S], below V → [B, S, H]
pub fn embedding(table: Tensor<2>, indices: Tensor<2, Int>, padding: Option<usize>) -> Tensor<3> {
    if stop::asked() {
        let ([batch, sequence], [_, hidden]) = (indices.dims(), table.dims());
        return Tensor::zeros([batch, sequence, hidden], &table.device());
    }
    let known = matches!(indices.dtype(), DType::I64 | DType::I32 | DType::U32);
    if !(fused::takes(&table) && known) {
        return rounded(portable::embedding(table, indices, padding));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_embedding(
        table.into_dispatch(),
        indices.into_dispatch(),
        padding,
    )))
}

/// Whether [`embed`] takes these: a GPU, float32, and nobody who looks at single operations.
pub fn embeds(lookup: &Lookup) -> bool {
    !stop::asked() && gpu::embeds(lookup)
}

/// `dropout(layer_norm(word + segment + position))` of each token, in one pass; of what [`embeds`].
///
/// # Shapes
/// gamma and beta `[H]` → [B, S, H]
pub fn embed(
    lookup: Lookup,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    gpu::embed(lookup, gamma, beta, eps, dropped)
}

/// `x · weightᵀ + bias`.
///
/// # Shapes
/// x [B, S, I]; weight [O, I], as checkpoints store it; bias `[O]` → [B, S, O]
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    if stop::asked() {
        return unfilled(&x, &weight);
    }
    let (weight, bias) = (rounded(weight), rounded(bias));
    if gpu::takes(&x) && fits(&x, &weight, &bias) && can_number_outputs(&x, &weight) {
        return rounded(gpu::linear(x, weight, bias));
    }
    if !(fused::takes(&x) && fits(&x, &weight, &bias)) {
        return rounded(portable::linear(x, weight, bias));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    )))
}

/// [`gelu`] of [`linear`], in one pass over the widened rows.
pub fn linear_gelu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    if stop::asked() {
        return unfilled(&x, &weight);
    }
    let (weight, bias) = (rounded(weight), rounded(bias));
    if gpu::takes(&x) && fits(&x, &weight, &bias) && can_number_outputs(&x, &weight) {
        return rounded(gpu::linear_gelu(x, weight, bias));
    }
    if !(fused::takes(&x) && fits(&x, &weight, &bias)) {
        return rounded(portable::gelu(portable::linear(x, weight, bias)));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_linear_gelu(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    )))
}

/// The exact GELU, `x · Φ(x)` with the normal distribution's Φ (by erf, not the tanh approximation).
///
/// # Source
/// Hendrycks and Gimpel 2016.
pub fn gelu(x: Tensor<3>) -> Tensor<3> {
    if stop::asked() {
        return x;
    }
    if !fused::takes(&x) {
        return rounded(portable::gelu(x));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_gelu(
        x.into_dispatch(),
    )))
}

/// The tanh approximation of [`gelu`], `½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`, with its own gradient: transformers'
/// `gelu_new`.
///
/// # Source
/// Hendrycks and Gimpel 2016, section 2.
pub fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    if stop::asked() {
        return x;
    }
    rounded(portable::gelu_tanh(x))
}

/// Normalizes the last dimension to mean 0 and variance 1, then scales by `gamma` and shifts by `beta`.
///
/// # Shapes
/// x [B, S, H]; gamma and beta `[H]` → [B, S, H]
///
/// # Source
/// Ba, Kiros and Hinton 2016; `eps` is inside the square root.
pub fn layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f64) -> Tensor<3> {
    normalize(x, None, gamma, beta, eps, None)
}

/// [`layer_norm`] of `x + residual`.
pub fn add_layer_norm(
    x: Tensor<3>,
    residual: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
) -> Tensor<3> {
    normalize(x, Some(residual), gamma, beta, eps, None)
}

/// [`layer_norm`] of `dropout(x) + residual`, the end of both halves of an encoder layer.
pub fn dropout_add_layer_norm(
    x: Tensor<3>,
    residual: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    normalize(x, Some(residual), gamma, beta, eps, dropout)
}

fn normalize(
    x: Tensor<3>,
    residual: Option<Tensor<3>>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    if stop::asked() {
        return x;
    }
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    let (gamma, beta) = (rounded(gamma), rounded(beta));
    let columns = [x.dims()[2]];
    let fits = gamma.dims() == columns
        && beta.dims() == columns
        && residual
            .as_ref()
            .is_none_or(|residual| residual.dims() == x.dims());
    if gpu::takes(&x) && fits && gpu::fits_a_row(&x) {
        return rounded(gpu::normalize(x, residual, gamma, beta, eps, dropped));
    }
    if !(fused::takes(&x) && fits) {
        let x = match dropped {
            Some(mask) => portable::dropout(x, mask),
            None => x,
        };
        let sum = match residual {
            Some(residual) => operation!("add input", [x, input = residual], x + input),
            None => x,
        };
        let normalize = || portable::layer_norm(sum, gamma, beta, eps);
        return rounded(taps::within("LayerNorm", normalize));
    }
    let (x, gamma, beta) = (
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
    );
    rounded(Tensor::from_dispatch(match residual {
        Some(residual) => {
            let residual = residual.into_dispatch();
            Dispatch::fused_add_layer_norm(x, residual, gamma, beta, eps, dropped)
        }
        None => Dispatch::fused_layer_norm(x, gamma, beta, eps),
    }))
}

/// Sets a share `rate` of the elements to 0 and multiplies the others by `1 / (1 - rate)`, which preserves the expected
/// value.
///
/// The same key drops the same elements on every run, thread count and backend.
///
/// # Source
/// Srivastava et al. 2014; inverted dropout, which scales in training instead of in evaluation.
pub fn dropout(x: Tensor<3>, rate: f64, key: DropoutKey) -> Tensor<3> {
    if stop::asked() {
        return x;
    }
    match Mask::new(rate, key) {
        Some(mask) if fused::takes(&x) => rounded(Tensor::from_dispatch(Dispatch::fused_dropout(
            x.into_dispatch(),
            mask,
        ))),
        Some(mask) if gpu::takes(&x) => rounded(gpu::dropout(x, mask)),
        Some(mask) => rounded(portable::dropout(x, mask)),
        None => x,
    }
}

/// Scaled dot-product attention of every head, `softmax(Q·Kᵀ/√D + mask) · V`, with dropout on the
/// probabilities. A sequence of padding only attends to all positions equally and stays finite. Some [`Heads`] of a layer are
/// computed as they are among all.
///
/// # Shapes
/// query, key and value [B, S, H]; mask [B, S], 1 = token, 0 = padding → [B, S, H]. H must be a
/// multiple of `heads`.
///
/// # Source
/// Vaswani et al. 2017, section 3.2.
pub fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: impl Into<Heads>,
    mask: Tensor<2>,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    if stop::asked() {
        return query;
    }
    let own = heads.into();
    let heads = own.count;
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    let dropped = dropped.map(|mask| mask.of_heads(own));
    let [batch, sequence, hidden] = query.dims();
    let fits = key.dims() == query.dims()
        && value.dims() == query.dims()
        && mask.dims() == [batch, sequence]
        && hidden.is_multiple_of(heads);
    let can_number = gpu::can_number([batch, heads, sequence, sequence]) && gpu::numbers(dropped);
    if gpu::takes(&query) && gpu::takes(&mask) && fits && can_number {
        return rounded(gpu::attention(query, key, value, heads, mask, dropped));
    }
    if !(fused::takes(&query) && fused::takes(&mask) && fits) {
        return rounded(portable::attention(query, key, value, heads, mask, dropped));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_attention(
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
        mask.into_dispatch(),
        heads,
        None,
        dropped,
    )))
}

/// The probabilities of [`local_attention`], `softmax(Q·Kᵀ/√D + mask)`, without dropout: for looking at, since no form of
/// the operation keeps them. Each row adds up to 1. Without a window they are those of [`attention`].
///
/// # Shapes
/// query and key [B, S, H]; mask [B, S], 1 = token, 0 = padding → [B, N, S, S]: how much each position (rows) attends
/// to each (columns)
pub fn attention_probabilities(
    query: Tensor<3>,
    key: Tensor<3>,
    heads: usize,
    mask: Tensor<2>,
    window: Option<usize>,
) -> Tensor<4> {
    portable::attention_probabilities(query, key, heads, (mask, window))
}

/// [`attention`] of three [`linear`] projections of the same `x`, without the copies between them.
///
/// # Shapes
/// x [B, S, I]; weights [H, I] and biases `[H]` of query, key and value; mask [B, S] → [B, S, H]
pub fn self_attention(
    x: Tensor<3>,
    [query, key, value]: [(Tensor<2>, Tensor<1>); 3],
    heads: impl Into<Heads>,
    mask: Tensor<2>,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    if stop::asked() {
        return unfilled(&x, &query.0);
    }
    let own = heads.into();
    let heads = own.count;
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    let dropped = dropped.map(|mask| mask.of_heads(own));
    let [batch, sequence, _] = x.dims();
    let [query, key, value] =
        [query, key, value].map(|(weight, bias)| (rounded(weight), rounded(bias)));
    let same = query.0.dims() == key.0.dims() && query.0.dims() == value.0.dims();
    let layers_fit = [&query, &key, &value]
        .iter()
        .all(|(weight, bias)| fits(&x, weight, bias));
    let fits = same
        && layers_fit
        && mask.dims() == [batch, sequence]
        && query.0.dims()[0].is_multiple_of(heads);
    let can_number = gpu::can_number([batch, heads, sequence, sequence]) && gpu::numbers(dropped);
    if fits && can_number && gpu::takes(&x) && gpu::takes(&mask) {
        let layers = [query, key, value];
        return rounded(gpu::self_attention(x, layers, heads, mask, dropped));
    }
    if !(fused::takes(&x) && fused::takes(&mask) && fits) {
        let project = |name: &str, (weight, bias): (Tensor<2>, Tensor<1>)| {
            taps::within(name, || portable::linear(x.clone(), weight, bias))
        };
        let (query, key) = (project("query", query), project("key", key));
        let value = project("value", value);
        return rounded(portable::attention(query, key, value, heads, mask, dropped));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_self_attention(
        x.into_dispatch(),
        query.0.into_dispatch(),
        query.1.into_dispatch(),
        key.0.into_dispatch(),
        key.1.into_dispatch(),
        value.0.into_dispatch(),
        value.1.into_dispatch(),
        mask.into_dispatch(),
        heads,
        dropped,
    )))
}

/// Whether the kernels of GPUs can number the outputs of a layer, of which a vocabulary makes many.
fn can_number_outputs(x: &Tensor<3>, weight: &Tensor<2>) -> bool {
    let ([batch, sequence, _], [outputs, _]) = (x.dims(), weight.dims());
    gpu::can_number([batch, sequence, outputs])
}

/// The output of a layer in a canceled pass.
fn unfilled(x: &Tensor<3>, weight: &Tensor<2>) -> Tensor<3> {
    let ([batch, sequence, _], [outputs, _]) = (x.dims(), weight.dims());
    Tensor::zeros([batch, sequence, outputs], &x.device())
}

/// Whether the dimensions of a layer's parameters and of x agree; if not, burn's own operations report it.
fn fits(x: &Tensor<3>, weight: &Tensor<2>, bias: &Tensor<1>) -> bool {
    let [outputs, inputs] = weight.dims();
    x.dims()[2] == inputs && bias.dims() == [outputs]
}
