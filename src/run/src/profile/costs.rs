//! FLOPs and bytes of a layer, from the shapes of what it computes and of its weights.
//!
//! A multiplication and an addition are two FLOPs; only products count, as in `examples/train_step.rs`:
//!
//! ```text
//! linear layer      2 · rows · inputs · outputs        rows = elements of its output / outputs
//! self-attention    4 · B · S² · H                     Q·Kᵀ and P·V, beside its linear layers
//! within a window   4 · B · pairs · H                  pairs = S·(2w + 1) − w·(w + 1), for at most w positions on either side
//! backward          2 · forward                        ∂L/∂input and ∂L/∂weight are a product each
//! ```
//!
//! Source: Kaplan et al. 2020, "Scaling laws for neural language models", table 1 and section 2.1. A frozen layer has one
//! product in the backward pass; layers that are computed again (`recompute`) have the forward pass once more in it.
//!
//! Bytes are what has to go through memory in any case, four for a number: weights are read once in either direction and their gradients
//! written; outputs are written once and read once forward, and backward the outputs are read and their gradients are written and read.
//! What operations keep for themselves is not counted, so that this is a lower bound.

use std::collections::{BTreeSet, HashMap, HashSet};

use stratoscope_report::inspection::layer_of;

/// Bytes of a number in float32.
const BYTES: f64 = 4.0;
/// What the names of an encoder's layers have before their numbers.
const ENCODER_LAYER: &str = "encoder.layer.";

/// What a layer costs in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Costs {
    pub flops: f64,
    pub bytes: f64,
}

/// A variable as a whole, also where replicas or stages divide it among them.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    pub name: String,
    pub shape: Vec<usize>,
    /// Whether it has a gradient.
    pub is_trained: bool,
}

impl Weight {
    pub(super) fn elements(&self) -> f64 {
        self.shape.iter().product::<usize>() as f64
    }
}

/// The costs of each layer for this number of passes, each forward and backward. `outputs`: the shapes of the outputs of the parts that
/// ran in them. `recomputed`: the forward passes are computed twice. `window`: how far the positions of an encoder layer attend.
pub(super) fn costs(
    weights: &[Weight],
    outputs: &[(String, Vec<usize>)],
    passes: usize,
    recomputed: bool,
    window: &dyn Fn(usize) -> Option<usize>,
) -> HashMap<String, Costs> {
    let mut costs: HashMap<String, Costs> = HashMap::new();
    let again = |layer: &str| {
        let is_again = recomputed && is_recomputed(layer);
        f64::from(u8::from(is_again))
    };
    let rows = rows_by_part(outputs);
    let without = layers_without_weights(weights, outputs);
    let places = weights.iter().flat_map(|weight| {
        let places = places_of(&weight.name, &without);
        places.into_iter().map(move |name| (weight, name))
    });
    for (weight, name) in places {
        let elements = weight.elements();
        let name = as_part(&name, &rows);
        let layer = layer_of(name);
        let products = 2.0 + f64::from(u8::from(weight.is_trained)) + again(layer);
        let own = costs.entry(layer.to_owned()).or_default();
        let is_read = !is_table(&weight.name);
        if is_read && weight.shape.len() == 2 {
            let rows = rows_of(name, &rows);
            own.flops += products * 2.0 * rows * elements;
        }
        // Of a table only the rows of the batch are read; its outputs count them.
        let reads = if is_read { 2.0 } else { 0.0 };
        own.bytes +=
            BYTES * elements * passes as f64 * (reads + f64::from(u8::from(weight.is_trained)));
    }
    for (path, shape) in outputs {
        let layer = layer_of_part(path);
        let again = again(&layer);
        let number = layer.rsplit('.').next().and_then(|it| it.parse().ok());
        let own = costs.entry(layer).or_default();
        let elements = shape.iter().product::<usize>() as f64;
        own.bytes += BYTES * elements * (2.0 + 3.0 + again);
        if let (true, &[batch, length, hidden]) = (path.ends_with("attention.self"), &shape[..]) {
            let pairs = pairs(length, number.and_then(window)) as f64;
            let forward = 4.0 * batch as f64 * pairs * hidden as f64;
            own.flops += (3.0 + again) * forward;
        }
    }
    costs
}

/// The encoder layers that compute and have no weights: those of an ALBERT after the first, which compute with its weights.
fn layers_without_weights(weights: &[Weight], outputs: &[(String, Vec<usize>)]) -> Vec<String> {
    let with: HashSet<&str> = weights.iter().map(|it| layer_of(&it.name)).collect();
    let computed = outputs.iter().map(|(path, _)| layer_of_part(path));
    let without = computed.filter(|it| it.contains(ENCODER_LAYER) && !with.contains(&**it));
    let without: BTreeSet<String> = without.collect();
    without.into_iter().collect()
}

/// The names of a weight at all places where it is used: its own, and where it is of an encoder's first layer, those in `others`.
fn places_of(weight: &str, others: &[String]) -> Vec<String> {
    let layer = layer_of(weight);
    let mut places = vec![weight.to_owned()];
    let encoder = layer.strip_suffix('0');
    if let Some(encoder) = encoder.filter(|it| it.ends_with(ENCODER_LAYER)) {
        let path = &weight[layer.len()..];
        let others = others.iter().filter(|it| it.starts_with(encoder));
        places.extend(others.map(|other| format!("{other}{path}")));
    }
    places
}

/// How many positions the positions of a sequence attend to, all together.
fn pairs(length: usize, window: Option<usize>) -> usize {
    match window {
        Some(window) if window + 1 < length => length * (2 * window + 1) - window * (window + 1),
        _ => length * length,
    }
}

/// Whether it is one of the layers that `recompute` computes again: those of an encoder, which have numbers.
fn is_recomputed(layer: &str) -> bool {
    let number = layer.rsplit('.').next().unwrap_or("");
    layer.contains('.') && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether it is a table whose rows are looked up, and not multiplied.
fn is_table(name: &str) -> bool {
    name.split('.').any(|part| {
        let number = part.strip_prefix("embedding_");
        let is_numbered = number.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        let is_of_words = part.ends_with("embeddings") || part == "embedding" || is_numbered;
        is_of_words && !name.contains("LayerNorm")
    })
}

/// The rows that each part puts out, of all passes.
fn rows_by_part(outputs: &[(String, Vec<usize>)]) -> HashMap<&str, f64> {
    let mut rows: HashMap<&str, f64> = HashMap::new();
    for (path, shape) in outputs {
        let width = shape.last().copied().unwrap_or(1).max(1);
        let own = shape.iter().product::<usize>() / width;
        *rows.entry(path).or_default() += own as f64;
    }
    rows
}

/// The name of a variable as the parts have it: a network around another one has fields of its own before the names of the parts.
fn as_part<'n>(name: &'n str, rows: &HashMap<&str, f64>) -> &'n str {
    let inner = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
    let is_known = |it: &&str| rows_of(it, rows) > 0.0;
    std::iter::once(name)
        .chain(inner)
        .find(is_known)
        .unwrap_or(name)
}

/// The rows that a weight is multiplied with: those of the output of its layer, or of the innermost part around it that has one.
fn rows_of(weight: &str, rows: &HashMap<&str, f64>) -> f64 {
    let parts = weight.match_indices('.').rev().map(|(at, _)| &weight[..at]);
    let mut known = parts.filter_map(|part| rows.get(part));
    known.next().copied().unwrap_or(0.0)
}

/// The layer of a part of a network, which has no name of a variable behind it.
pub(super) fn layer_of_part(path: &str) -> String {
    layer_of(&format!("{path}.")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(name: &str, shape: &[usize], is_trained: bool) -> Weight {
        Weight {
            name: name.to_owned(),
            shape: shape.to_vec(),
            is_trained,
        }
    }

    fn output(path: &str, shape: &[usize]) -> (String, Vec<usize>) {
        (path.to_owned(), shape.to_vec())
    }

    #[test]
    fn the_flops_of_a_layer_are_those_worked_out_by_hand() {
        // B = 2, S = 5, H = 4: a query, a table, a classifier over the first token.
        let weights = [
            weight("bert.embeddings.word_embeddings.weight", &[100, 4], true),
            weight(
                "bert.encoder.layer.0.attention.self.query.weight",
                &[4, 4],
                true,
            ),
            weight("bert.encoder.layer.0.attention.self.query.bias", &[4], true),
            weight("classifier.weight", &[3, 4], false),
        ];
        let outputs = [
            output("bert.embeddings", &[2, 5, 4]),
            output("bert.encoder.layer.0.attention.self", &[2, 5, 4]),
            output("classifier", &[2, 3]),
        ];
        let found = costs(&weights, &outputs, 1, false, &|_| None);
        assert_eq!(found["bert.embeddings"].flops, 0.0);
        // The gradient of the table, and five passes over its output.
        assert_eq!(found["bert.embeddings"].bytes, 4.0 * (400.0 + 5.0 * 40.0));
        let layer = found["bert.encoder.layer.0"];
        let forward = 2.0 * 10.0 * 16.0 + 4.0 * 2.0 * 25.0 * 4.0;
        assert_eq!(layer.flops, 3.0 * forward);
        assert_eq!(layer.bytes, 4.0 * (3.0 * 20.0 + 5.0 * 40.0));
        // Frozen: two products.
        assert_eq!(found["classifier"].flops, 2.0 * 2.0 * 2.0 * 12.0);
        // A field of a network around it changes nothing.
        let around = [weight("inner.classifier.weight", &[3, 4], false)];
        let wrapped = costs(&around, &outputs, 1, false, &|_| None);
        assert_eq!(wrapped["classifier"].flops, found["classifier"].flops);
        let again = costs(&weights, &outputs, 1, true, &|_| None);
        assert_eq!(again["bert.encoder.layer.0"].flops, 4.0 * forward);
        assert_eq!(again["classifier"], found["classifier"]);
        // Of 5 positions with one neighbor on either side, 3 have three and 2 have two.
        let local = costs(&weights, &outputs, 1, false, &|layer| {
            (layer == 0).then_some(1)
        });
        let forward = 2.0 * 10.0 * 16.0 + 4.0 * 2.0 * 13.0 * 4.0;
        assert_eq!(local["bert.encoder.layer.0"].flops, 3.0 * forward);
    }

    #[test]
    fn a_layer_that_is_computed_twice_costs_twice() {
        let query = "bert.encoder.layer.0.attention.self.query.weight";
        let part = |layer: usize| {
            output(
                &format!("bert.encoder.layer.{layer}.attention.self"),
                &[2, 5, 4],
            )
        };
        let outputs = [part(0), part(1)];
        let shared = costs(&[weight(query, &[4, 4], true)], &outputs, 1, false, &|_| {
            None
        });
        let layers = [0, 1].map(|layer| shared[&*format!("bert.encoder.layer.{layer}")]);
        assert_eq!(layers[0], layers[1]);
        // A network around a BERT has other names and nothing in common.
        let wrapped = [weight(&format!("inner.{query}"), &[4, 4], true)];
        let wrapped = costs(&wrapped, &outputs[..1], 1, false, &|_| None);
        assert_eq!(wrapped["bert.encoder.layer.0"], layers[0]);
    }

    #[test]
    fn pairs_within_a_window_are_counted() {
        for length in 1..9_usize {
            for window in 0..9 {
                let near = |a: usize| (0..length).filter(|b| a.abs_diff(*b) <= window).count();
                let counted: usize = (0..length).map(near).sum();
                assert_eq!(pairs(length, Some(window)), counted, "{length} {window}");
            }
        }
        assert_eq!(pairs(5, None), 25);
    }

    #[test]
    fn parts_are_folded_to_layers_like_variables() {
        for (path, layer) in [
            ("bert.encoder.layer.3.output", "bert.encoder.layer.3"),
            ("bert.encoder.layer.3", "bert.encoder.layer.3"),
            ("bert.embeddings", "bert.embeddings"),
            ("bert.pooler.dense", "bert.pooler"),
            ("classifier", "classifier"),
            ("dense_1", "dense_1"),
            ("bert", "bert"),
        ] {
            assert_eq!(layer_of_part(path), layer, "{path}");
        }
        assert!(is_table("embedding.weight") && is_table("bert.embeddings.word_embeddings.weight"));
        assert!(!is_table("bert.embeddings_project.weight"));
    }
}
