//! Attention that knows positions by rotation and may be limited to a window. Dimensions as in [`super`].

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::fused::{self, FusedOps};
use super::key::{DropoutKey, Mask};
use super::precision::in_bf16;
use super::{attention, portable, rounded, stop};

/// The angles by which the numbers of a head are rotated, as their cosines and sines, [S, D/2]. Source: Su et al. 2021,
/// "RoFormer", section 3.4.2; as in transformers v4.57.1, `ModernBertRotaryEmbedding`, angles are numbers of float32, which
/// for long texts differ from the exact ones.
#[derive(Clone, Debug)]
pub(super) struct Angles {
    pub cos: Vec<f32>,
    pub sin: Vec<f32>,
}

impl Angles {
    /// Of `sequence` positions, for heads of `size` numbers: `position / base^(2·j/D)`.
    pub(super) fn new(sequence: usize, size: usize, base: f64) -> Self {
        let frequency = |j: usize| 1.0 / (base as f32).powf((2 * j) as f32 / size as f32);
        let frequencies: Vec<f32> = (0..size / 2).map(frequency).collect();
        let positions =
            (0..sequence).flat_map(|at| frequencies.iter().map(move |it| at as f32 * it));
        let angles = positions.map(|angle| f64::from(angle).sin_cos());
        let (sin, cos) = angles.map(|(sin, cos)| (sin as f32, cos as f32)).unzip();
        Self { cos, sin }
    }

    /// The same angles in the other direction.
    pub(super) fn reversed(mut self) -> Self {
        self.sin.iter_mut().for_each(|sin| *sin = -*sin);
        self
    }
}

/// Queries or keys whose numbers know their position: of each head, the numbers j and j + D/2 are a point that is rotated by
/// `position / base^(2·j/D)`. So the product of a query and a key depends on the distance of their positions only.
///
/// # Shapes
/// x [B, S, H] → [B, S, H]; D = H / `heads` is even
///
/// # Source
/// Su et al. 2021, section 3.2; the order of the numbers is that of transformers' `rotate_half`.
pub fn rotary(x: Tensor<3>, heads: usize, base: f64) -> Tensor<3> {
    if stop::asked() {
        return x;
    }
    let [_, sequence, hidden] = x.dims();
    let angles = Angles::new(sequence, hidden / heads, base);
    if !fused::takes(&x) {
        return rounded(portable::rotary(x, heads, &angles));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_rotary(
        x.into_dispatch(),
        heads,
        angles,
    )))
}

/// [`attention`] in which a position attends to those at most `window` away; without one, to all. Where the padding is
/// wider than the window, what is computed there depends on the form of the operation: no token attends to it.
///
/// In bfloat16 on the CPU, and on GPUs, a window is computed by burn's operations.
///
/// # Shapes
/// query, key and value [B, S, H]; mask [B, S], 1 = token, 0 = padding → [B, S, H]
///
/// # Source
/// Beltagy et al. 2020, "Longformer", section 3.1, "sliding window attention".
pub fn local_attention(
    [query, key, value]: [Tensor<3>; 3],
    heads: usize,
    mask: Tensor<2>,
    window: Option<usize>,
    dropout: Option<(f64, DropoutKey)>,
) -> Tensor<3> {
    let [batch, sequence, hidden] = query.dims();
    // A window that no position is outside of is none.
    let Some(window) = window.filter(|window| window + 1 < sequence) else {
        return attention(query, key, value, heads, mask, dropout);
    };
    if stop::asked() {
        return query;
    }
    let dropped = dropout.and_then(|(rate, key)| Mask::new(rate, key));
    let fits = key.dims() == query.dims()
        && value.dims() == query.dims()
        && mask.dims() == [batch, sequence]
        && hidden.is_multiple_of(heads);
    if !fits || in_bf16() || !(fused::takes(&query) && fused::takes(&mask)) {
        let mask = (mask, Some(window));
        return rounded(portable::local_attention(
            query, key, value, heads, mask, dropped,
        ));
    }
    rounded(Tensor::from_dispatch(Dispatch::fused_attention(
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
        mask.into_dispatch(),
        heads,
        Some(window),
        dropped,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_those_of_positions() {
        let angles = Angles::new(3, 4, 100.0);
        let exact = [0.0_f64, 0.0, 1.0, 0.1, 2.0, 0.2];
        for (at, angle) in exact.into_iter().enumerate() {
            assert!(
                (f64::from(angles.cos[at]) - angle.cos()).abs() < 1e-7,
                "{at}"
            );
            assert!(
                (f64::from(angles.sin[at]) - angle.sin()).abs() < 1e-7,
                "{at}"
            );
        }
    }
}
