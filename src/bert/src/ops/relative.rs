//! Attention whose scores depend on the distance of query and key. Dimensions as in [`super`]; P rows of a table of distances.

use burn::tensor::Tensor;

use super::key::{DropoutKey, Mask};
use super::{portable, rounded, stop};
use crate::operation;

/// What scores are made of beside queries and keys.
#[derive(Clone, Debug)]
pub struct Scores {
    /// What the product of a query and a key is multiplied with.
    pub scale: f64,
    /// What is added to it, [B or 1, N, S, S].
    pub added: Option<Tensor<4>>,
}

/// [`attention`](super::attention) with these scores: `softmax(scale · Q·Kᵀ + added + mask) · V`. It is computed by burn's
/// operations on every device.
///
/// # Shapes
/// query, key and value [B, S, H]; mask [B, S], 1 = token, 0 = padding → [B, S, H]
pub fn biased_attention(
    [query, key, value]: [Tensor<3>; 3],
    heads: usize,
    mask: Tensor<2>,
    scores: Scores,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    if stop::asked() {
        return query;
    }
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    let probabilities = probabilities_of(query, key, heads, mask, scores);
    rounded(portable::mixed(probabilities, value, heads, dropped))
}

/// The probabilities of [`biased_attention`] without dropout; each row adds up to 1.
///
/// # Shapes
/// query and key [B, S, H]; mask [B, S], 1 = token, 0 = padding → [B, N, S, S]
pub fn probabilities_of(
    query: Tensor<3>,
    key: Tensor<3>,
    heads: usize,
    mask: Tensor<2>,
    scores: Scores,
) -> Tensor<4> {
    portable::probabilities_of(query, key, heads, (mask, None), scores)
}

/// The products of all vectors of `x` with all of `with`, head by head.
///
/// # Shapes
/// x [B, S, H], with [1, P, H] → [B, N, S, P]
pub fn products_of_heads(x: Tensor<3>, with: Tensor<3>, heads: usize) -> Tensor<4> {
    portable::products_of_heads(x, with, heads)
}

/// A number for each query and key: of each query's P numbers the one in the row of the distance, added to that of the key's P
/// numbers. `rows` is as for [`of_pairs`]. `None` without numbers.
///
/// # Shapes
/// of queries and of keys [B, N, S, P] → [B, N, S, S]
///
/// # Source
/// He et al. 2021, "DeBERTa", section 3.1, the second and the third term of equation 4.
pub fn by_distance(
    [of_queries, of_keys]: [Option<Tensor<4>>; 2],
    rows: &[usize],
) -> Option<Tensor<4>> {
    let of_queries = of_queries.map(|it| portable::by_distance(it, rows, false));
    let of_keys = of_keys.map(|it| portable::by_distance(it, rows, true));
    match (of_queries, of_keys) {
        (Some(query), Some(key)) => Some(operation!("sum", [query, key], query + key)),
        (one, other) => one.or(other),
    }
}

/// For each query and key, query by query, the row of their distance. `rows` has one for each distance of a query behind a key, from
/// 1 − S to S − 1.
pub fn of_pairs(rows: &[usize], sequence: usize) -> Vec<i64> {
    let of_query = |query: usize| {
        let keys = 0..sequence;
        keys.map(move |key| rows[query + sequence - 1 - key] as i64)
    };
    (0..sequence).flat_map(of_query).collect()
}
