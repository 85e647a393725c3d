//! From which tokens the first one has its information: attention rollout. Source: Abnar and Zuidema 2020, "Quantifying
//! attention flow in transformers", section 3: of each layer the mean over the heads, half of it replaced by the identity for
//! the residual connection; layers are multiplied.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use stratoscope_bert::taps::Taps;
use stratoscope_data::Encoding;

use crate::view::View;

/// What the name of a layer's attention probabilities ends with, [1, N, S, S].
const PROBABILITIES: &str = "attention.self.probabilities";

/// The share of each token in the last layer's first position, [S]; the sum is 1. It depends on the text alone, not on the
/// class.
pub(crate) fn rollout(view: &View, row: &Encoding) -> Vec<f64> {
    let layers: Arc<Mutex<Vec<Vec<f64>>>> = Arc::default();
    let sink = Arc::clone(&layers);
    let taps = Taps::new(
        |name| name.ends_with(PROBABILITIES),
        move |_, shape, elements: Tensor<1>| {
            let data = elements.into_data().convert::<f32>();
            let values: Vec<f64> = data.iter::<f32>().map(f64::from).collect();
            let mean = mean_of_heads(shape, &values);
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(mean);
        },
    );
    taps.during(|| view.run(row));
    let layers = layers.lock().unwrap_or_else(PoisonError::into_inner);
    flow(&layers, row.ids.len())
}

/// [1, N, S, S] → [S·S]
fn mean_of_heads(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let (heads, size) = (shape[1], shape[2] * shape[3]);
    let at = |place: usize| {
        (0..heads)
            .map(|head| values[head * size + place])
            .sum::<f64>()
            / heads as f64
    };
    (0..size).map(at).collect()
}

/// The first row of the product of the layers, the last one on the left.
fn flow(layers: &[Vec<f64>], tokens: usize) -> Vec<f64> {
    // The row is multiplied from the last layer to the first.
    let mut row = vec![0.0; tokens];
    row.iter_mut().take(1).for_each(|first| *first = 1.0);
    for layer in layers.iter().rev() {
        let mut next: Vec<f64> = row.iter().map(|x| 0.5 * x).collect();
        for (from, share) in row.iter().enumerate() {
            let line = &layer[from * tokens..(from + 1) * tokens];
            next.iter_mut()
                .zip(line)
                .for_each(|(sum, a)| *sum += 0.5 * share * a);
        }
        row = next;
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_multiplied_with_half_of_the_identity() {
        // Layer 1 takes everything from the second token, layer 2 attends evenly.
        let layers = [vec![0.0, 1.0, 0.0, 1.0], vec![0.5; 4]];
        // (0.75, 0.25) · [[0.5, 0.5], [0, 1]]
        assert_eq!(flow(&layers, 2), [0.375, 0.625]);
        assert_eq!(flow(&[], 2), [1.0, 0.0]);
        assert_eq!(
            mean_of_heads(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 1.0]),
            [0.5, 0.5]
        );
    }
}
