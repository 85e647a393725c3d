//! The attention of all heads between its projections: products, softmax and dropout, forward and backward, each in one
//! operation of burn's. Heads are views of the projections, [B, S, N · D] seen as [B, N, S, D], and products are written beside
//! each other, so that nothing is copied from one order to the other.
//!
//! # Source
//! Vaswani et al. 2017, section 3.2.

use burn::tensor::Shape;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::linear::{self, as_type_of, in_f32};
use super::mask::{Dropped, drop_elements};
use super::product::{Finish, finished, product};
use super::softmax;

/// What an attention does beside its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// N
    pub heads: usize,
    /// What scores are multiplied with: 1 / √D.
    pub scale: f32,
    /// The dropout of the probabilities; element i of the mask is that of the flat index i in [B, N, S, T].
    pub dropped: Option<Dropped>,
}

/// The output [B, S, H] and the probabilities before dropout [B, N, S, T], for query [B, S, H], key and value [B, T, H] and mask
/// [B, T] with 0 for padding.
pub fn forward(
    [query, key, value]: [CubeTensor; 3],
    mask: CubeTensor,
    attention: Attention,
) -> (CubeTensor, CubeTensor) {
    let Attention {
        heads,
        scale,
        dropped,
    } = attention;
    let [query, key, value] = [query, key, value].map(|tensor| by_head(tensor, heads));
    let scores = in_f32(product(query, key, [false, true]));
    let (probabilities, kept) = softmax::forward(scores, mask, scale, dropped);
    let kept = as_type_of(kept, &value);
    let mixed = finished(kept, value, [false, false], &Finish::joined());
    (in_f32(mixed), probabilities)
}

/// The gradients of query, key and value.
pub fn backward(
    gradient: CubeTensor,
    [query, key, value]: [CubeTensor; 3],
    probabilities: CubeTensor,
    mask: CubeTensor,
    attention: Attention,
) -> [CubeTensor; 3] {
    let Attention {
        heads,
        scale,
        dropped,
    } = attention;
    let gradient = by_head(as_type_of(gradient, &query), heads);
    let [query, key, value] = [query, key, value].map(|tensor| by_head(tensor, heads));
    let kept = match dropped {
        Some(dropped) => drop_elements(probabilities.clone(), dropped),
        None => probabilities.clone(),
    };
    let joined = |left, right, transposed| finished(left, right, transposed, &Finish::joined());
    let kept = as_type_of(kept, &value);
    let of_value = joined(kept, gradient.clone(), [true, false]);
    let of_kept = in_f32(product(gradient, value, [false, true]));
    let of_scores = softmax::backward(of_kept, probabilities, mask, scale, dropped);
    let of_scores = as_type_of(of_scores, &query);
    let of_query = joined(of_scores.clone(), key, [false, false]);
    let of_key = joined(of_scores, query, [true, false]);
    [of_query, of_key, of_value]
}

/// What an attention with its projections leaves for the backward pass.
#[derive(Clone, Debug)]
pub struct Left {
    /// [B, S, I]
    pub x: CubeTensor,
    /// Query, key and value in the type of x, [B, S, H].
    pub inputs: [CubeTensor; 3],
    /// Before dropout, [B, N, S, S].
    pub probabilities: CubeTensor,
}

/// [`forward`] of three projections of x [B, S, I]: weights [H, I] and biases `[H]` of query, key and value.
pub fn project(
    x: CubeTensor,
    layers: [[CubeTensor; 2]; 3],
    mask: CubeTensor,
    attention: Attention,
) -> (CubeTensor, Left) {
    let inputs = layers.map(|[weight, bias]| {
        let projected = linear::forward(x.clone(), weight, bias);
        as_type_of(projected, &x)
    });
    let (output, probabilities) = forward(inputs.clone(), mask, attention);
    let left = Left {
        x,
        inputs,
        probabilities,
    };
    (output, left)
}

/// The gradients of x, and of each weight and each bias, as far as they are wanted; in this order.
pub fn project_backward(
    gradient: CubeTensor,
    left: Left,
    weights: [CubeTensor; 3],
    mask: CubeTensor,
    attention: Attention,
    wanted: [bool; 7],
) -> (CubeTensor, [[CubeTensor; 2]; 3]) {
    let Left {
        x,
        inputs,
        probabilities,
    } = left;
    let gradients = backward(gradient, inputs, probabilities, mask, attention);
    let [query, key, value] = gradients.map(in_f32);
    let [of_query, of_key, of_value] = weights;
    let mut of_x = None;
    let mut layer = |gradient, weight, at: usize| {
        let wanted = [wanted[0], wanted[at], wanted[at + 1]];
        let added = of_x.take().filter(|_| wanted[0]);
        let [sum, of_weight, of_bias] =
            linear::backward(gradient, x.clone(), weight, added, wanted);
        of_x = Some(sum);
        [of_weight, of_bias]
    };
    let query = layer(query, of_query, 1);
    let key = layer(key, of_key, 3);
    let value = layer(value, of_value, 5);
    (of_x.unwrap_or(x), [query, key, value])
}

/// [B, S, N · D] seen as [B, N, S, D].
fn by_head(tensor: CubeTensor, heads: usize) -> CubeTensor {
    let shape = tensor.meta.shape();
    let (batch, sequence, hidden) = (shape[0], shape[1], shape[2]);
    let apart = Shape::new([batch, sequence, heads, hidden / heads]);
    let mut tensor = reshape(tensor, apart);
    tensor.meta.swap(1, 2);
    tensor
}
