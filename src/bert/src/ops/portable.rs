//! The operations composed of burn's own: they run on wgpu and CUDA, and the fused ones are tested
//! against them. Shapes and meanings are those of the functions in [`super`].

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData, module};

use super::key::{Heads, MIX_A, MIX_B, Mask, SPREAD};
use super::relative::{Scores, of_pairs};
use super::rotary::Angles;
use crate::operation;

/// The score of padding. It is finite, because with −∞ a row of padding only would become NaN, and so low that its
/// probability is 0 next to any real score. It is representable in bfloat16.
pub(super) const MASKED_SCORE: f32 = -3.0e38;
/// The same where the range is that of half precision.
const MASKED_SCORE_F16: f32 = -6.0e4;

pub(super) fn embedding(
    table: Tensor<2>,
    indices: Tensor<2, Int>,
    padding: Option<usize>,
) -> Tensor<3> {
    let vectors = operation!(
        "look up",
        [table],
        module::embedding(table, indices.clone())
    );
    let Some(padding) = padding.filter(|_| vectors.is_tracked()) else {
        return vectors;
    };
    // The same values twice, once detached from the graph: at the padding index, the
    // gradient stops here.
    let is_padding = indices.equal_elem(padding as i64).unsqueeze_dim::<3>(2);
    let is_padding = is_padding.expand(vectors.dims());
    let without_history = vectors.clone().detach();
    vectors.mask_where(is_padding, without_history)
}

pub(super) fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    let [batch, sequence, inputs] = x.dims();
    let [outputs, _] = weight.dims();
    let rows = batch * sequence;
    // One product over all rows: a batched one would repeat the weights.
    let y = operation!("product", [x, weight], {
        x.reshape([rows, inputs]).matmul(weight.transpose())
    });
    let y = operation!("add bias", [product = y, bias], {
        product + bias.unsqueeze::<2>()
    });
    y.reshape([batch, sequence, outputs])
}

pub(super) fn gelu(x: Tensor<3>) -> Tensor<3> {
    // burn's own `activation::gelu` is exact forwards, but its gradient is that of the tanh
    // approximation; composed of erf, both are exact.
    operation!("GELU", [x], {
        let twice_normal = (x.clone() / SQRT_2).erf() + 1.0; // 2·Φ(x)
        x * twice_normal * 0.5
    })
}

pub(super) fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    operation!("GELU", [x], {
        // Beyond these bounds the tanh is ±1 in any precision, and a power could be infinite in half precision.
        let near = x.clone().clamp(-10.0, 10.0);
        let cubic = near.clone() * near.clone() * near.clone() * 0.044_715;
        let twice_normal = ((near + cubic) * (FRAC_2_SQRT_PI / SQRT_2)).tanh() + 1.0; // about 2·Φ(x)
        x * twice_normal * 0.5
    })
}

pub(super) fn layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f64) -> Tensor<3> {
    let mean = operation!("mean", [x = x.clone()], x.mean_dim(2));
    let centered = operation!("center", [x, mean], x - mean);
    let variance = operation!("variance", [centered = centered.clone()], {
        (centered.clone() * centered).mean_dim(2)
    });
    let deviation = operation!("square root", [variance], (variance + eps).sqrt());
    let normalized = operation!("divide", [centered, deviation], centered / deviation);
    let scaled = operation!("scale", [normalized, weight = gamma], {
        normalized * weight.unsqueeze::<3>()
    });
    operation!(
        "add bias",
        [scaled, bias = beta],
        scaled + bias.unsqueeze::<3>()
    )
}

pub(super) fn dropout<const D: usize>(x: Tensor<D>, mask: Mask) -> Tensor<D> {
    let shape = x.dims();
    let count: usize = shape.iter().product();
    let index = Tensor::<1, Int>::arange(0..count as i64, (&x.device(), DType::U32));
    let index = match mask.heads {
        Some(heads) => numbered(index, heads, shape[0]),
        None => index,
    };
    // Unsigned 32-bit arithmetic wraps, on every device as in `Mask::factor`.
    let hash = index.mul_scalar(SPREAD).add_scalar(mask.first);
    let hash = hash
        .clone()
        .bitwise_xor(hash.bitwise_right_shift_scalar(16))
        .mul_scalar(MIX_A);
    let hash = hash
        .clone()
        .bitwise_xor(hash.bitwise_right_shift_scalar(15));
    let hash = hash.bitwise_xor_scalar(mask.second).mul_scalar(MIX_B);
    let hash = hash
        .clone()
        .bitwise_xor(hash.bitwise_right_shift_scalar(15));
    let dropped = hash.lower_elem(mask.threshold).reshape(shape);
    operation!(
        "dropout",
        [x],
        x.mul_scalar(mask.scale).mask_fill(dropped, 0.0)
    )
}

/// The numbers of the probabilities of some heads, among those of all heads of the layer, from their numbers in this tensor of
/// `batch` sequences.
fn numbered(index: Tensor<1, Int>, heads: Heads, batch: usize) -> Tensor<1, Int> {
    let count = index.dims()[0];
    let own = count / batch.max(1);
    let each = own / heads.count.max(1);
    let others = each * (heads.of - heads.count);
    let skipped = Tensor::<1, Int>::arange(0..batch as i64, (&index.device(), DType::U32));
    let skipped = skipped.mul_scalar(others as u32);
    let skipped = skipped.add_scalar((heads.first * each) as u32);
    let index = index.reshape([batch, own]) + skipped.reshape([batch, 1]);
    index.reshape([count])
}

pub(super) fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: usize,
    mask: Tensor<2>,
    dropped: Option<Mask>,
) -> Tensor<3> {
    local_attention(query, key, value, heads, (mask, None), dropped)
}

/// Attention to the tokens, and to those within a window.
pub(super) fn local_attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: usize,
    mask: (Tensor<2>, Option<usize>),
    dropped: Option<Mask>,
) -> Tensor<3> {
    let probabilities = attention_probabilities(query, key, heads, mask);
    mixed(probabilities, value, heads, dropped)
}

/// The values of each head in the shares that probabilities [B, N, S, S] say, side by side.
pub(super) fn mixed(
    probabilities: Tensor<4>,
    value: Tensor<3>,
    heads: usize,
    dropped: Option<Mask>,
) -> Tensor<3> {
    let [batch, sequence, hidden] = value.dims();
    let probabilities = match dropped {
        Some(dropped) => dropout(probabilities, dropped),
        None => probabilities,
    };
    // [B, N, S, D] → [B, S, H]
    operation!("product with the values", [probabilities, value], {
        let mixed = probabilities.matmul(split(value, heads));
        mixed.swap_dims(1, 2).reshape([batch, sequence, hidden])
    })
}

/// The products of all vectors of `x` with all of `with`, head by head. One sequence of `with` is that of all.
///
/// # Shapes
/// x [B, S, H], with [B or 1, P, H] → [B, N, S, P]
pub(super) fn products_of_heads(x: Tensor<3>, with: Tensor<3>, heads: usize) -> Tensor<4> {
    operation!("product of queries and keys", [x, with], {
        split(x, heads).matmul(split(with, heads).swap_dims(2, 3))
    })
}

/// Of the numbers [B, N, S, P] of each query or key the one in the row of the distance, [B, N, S, S].
pub(super) fn by_distance(numbers: Tensor<4>, rows: &[usize], of_keys: bool) -> Tensor<4> {
    let [batch, heads, sequence, _] = numbers.dims();
    let places = TensorData::new(of_pairs(rows, sequence), [1, 1, sequence, sequence]);
    let places = Tensor::<4, Int>::from_data(places, &numbers.device());
    // A key has its queries in a row.
    let places = match of_keys {
        true => places.swap_dims(2, 3),
        false => places,
    };
    let places = places.expand([batch, heads, sequence, sequence]);
    operation!("by distance", [numbers], {
        let picked = numbers.gather(3, places);
        match of_keys {
            true => picked.swap_dims(2, 3),
            false => picked,
        }
    })
}

/// [B, S, H] → [B, N, S, D]
fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, sequence, hidden] = x.dims();
    let size = hidden / heads;
    x.reshape([batch, sequence, heads, size]).swap_dims(1, 2)
}

pub(super) fn attention_probabilities(
    query: Tensor<3>,
    key: Tensor<3>,
    heads: usize,
    mask: (Tensor<2>, Option<usize>),
) -> Tensor<4> {
    let scale = 1.0 / ((query.dims()[2] / heads) as f64).sqrt();
    let scores = Scores { scale, added: None };
    probabilities_of(query, key, heads, mask, scores)
}

/// The probabilities of scores that are not only products of queries and keys.
pub(super) fn probabilities_of(
    query: Tensor<3>,
    key: Tensor<3>,
    heads: usize,
    (mask, window): (Tensor<2>, Option<usize>),
    Scores { scale, added }: Scores,
) -> Tensor<4> {
    let [batch, sequence, _] = query.dims();
    let scores = products_of_heads(query, key, heads); // [B, N, S, S]
    let scores = operation!("scale", [scores], scores * scale);
    let is_biased = added.is_some();
    let scores = match added {
        Some(added) => operation!("add by distance", [scores, added], scores + added),
        None => scores,
    };
    let lowest = match scores.dtype() {
        DType::F16 => MASKED_SCORE_F16,
        _ => MASKED_SCORE,
    };
    let padding = mask.equal_elem(0.0).reshape([batch, 1, 1, sequence]);
    let hidden = padding.expand([batch, heads, sequence, sequence]);
    let hidden = match window {
        Some(window) => hidden.bool_or(outside(sequence, window, &scores.device())),
        None => hidden,
    };
    let scores = operation!("mask", [scores], scores.mask_fill(hidden, lowest));
    if !is_biased {
        return operation!("softmax", [scores], softmax(scores, 3));
    }
    // The CPU backend's own softmax adds in another order than the one with gradients: the bits would depend on whether there
    // are some.
    operation!("softmax", [scores], {
        let largest = scores.clone().detach().max_dim(3);
        let powers = (scores - largest).exp();
        powers.clone() / powers.sum_dim(3)
    })
}

/// Which positions (columns) are farther from each position (rows) than the window reaches, [1, 1, S, S].
fn outside(sequence: usize, window: usize, device: &Device) -> Tensor<4, Bool> {
    let positions = || Tensor::<1, Int>::arange(0..sequence as i64, device);
    let distance = positions().unsqueeze_dim::<2>(1) - positions().unsqueeze_dim::<2>(0);
    let outside = distance.abs().greater_elem(window as i64);
    outside.reshape([1, 1, sequence, sequence])
}

/// [B, S, H] with each head's numbers j and j + D/2 rotated by the angle of the position and of j.
pub(super) fn rotary(x: Tensor<3>, heads: usize, angles: &Angles) -> Tensor<3> {
    let [batch, sequence, hidden] = x.dims();
    let half = hidden / heads / 2;
    let device = x.device();
    let table = |values: &[f32]| {
        let data = TensorData::new(values.to_vec(), [1, sequence, 1, half]);
        Tensor::<4>::from_data(data, &device)
    };
    let (cos, sin) = (table(&angles.cos), table(&angles.sin));
    operation!("rotate", [x], {
        let x = x.reshape([batch, sequence, heads, 2 * half]);
        let (first, second) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        let of_first = first.clone() * cos.clone() - second.clone() * sin.clone();
        let of_second = second * cos + first * sin;
        Tensor::cat(vec![of_first, of_second], 3).reshape([batch, sequence, hidden])
    })
}
