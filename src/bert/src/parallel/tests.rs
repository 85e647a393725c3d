//! A network in slices against the same one as a whole.

use burn::module::ModuleMapper;
use burn::optim::GradientsParams;

use super::*;
use crate::mode::with_dropout_rate;
use crate::recompute::Recorded;
use crate::{BatchTensors, BertConfig, SequenceClassifier};

/// The network of one device: its slices of what is cut, and all else.
struct Cut<'a>(&'a Axes, usize, usize);

impl ModuleMapper for Cut<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(&axis) = self.0.get(&param.id) else {
            return param;
        };
        let (id, whole, mapper) = param.consume();
        let each = whole.dims()[axis] / self.2;
        let slice = whole.inner().narrow(axis, self.1 * each, each);
        let data = slice.into_data();
        let slice: Tensor<D> = Tensor::from_data(data, &Device::flex().autodiff());
        Param::from_mapped_value(id, slice.require_grad(), mapper)
    }
}

fn network(heads: usize) -> SequenceClassifier {
    let text = format!(
        r#"{{"vocab_size": 20, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": {heads}, "intermediate_size": 40,
            "initializer_range": 0.05}}"#
    );
    let config = BertConfig::from_json(&text, "config.json".as_ref()).expect("valid");
    let config = config.with_num_labels(3).expect("three");
    SequenceClassifier::init(&config, 42, &Device::flex().autodiff()).expect("room")
}

fn axes(network: &SequenceClassifier) -> Axes {
    let axis = |name: &str| match name {
        _ if name.contains(".self.") || name.contains("intermediate") => Some(0),
        _ if name.ends_with("output.dense.weight") => Some(1),
        _ => None,
    };
    let parameters = crate::named_parameters(network).into_iter();
    let cut = parameters.filter_map(|it| Some((it.id, axis(&it.name)?)));
    cut.collect()
}

fn batch() -> BatchTensors {
    let (rows, length) = (5, 7);
    let ids = (0..rows * length).map(|at| (at * 7 % 20) as i64).collect();
    let mask = (0..rows * length)
        .map(|at| {
            if at % length < 3 + at / length {
                1.0
            } else {
                0.0
            }
        })
        .collect();
    let types = vec![0; rows * length];
    BatchTensors::from_values(ids, mask, types, [rows, length], &Device::flex().autodiff())
}

/// The outputs for a batch, and the gradients of all parameters, with dropout.
fn run(network: &SequenceClassifier, recompute: bool) -> (Vec<f32>, GradientsParams) {
    let mode = Mode::Train {
        seed: 3,
        step: 4,
        replica: 0,
    };
    let forward = || with_dropout_rate(Some(0.2), || network.forward(batch(), mode));
    with_dropout_rate(Some(0.2), || {
        let (logits, recorded) = Recorded::during(recompute, forward);
        let outputs = logits.clone().into_data().iter::<f32>().collect();
        let scales = Tensor::from_floats([[0.3, -1.0, 0.7]], &logits.device());
        let loss = (logits * scales).sum();
        (outputs, recorded.backward(&loss, network))
    })
}

/// ‖found − expected‖ / ‖expected‖ for each parameter.
fn distances(
    network: &SequenceClassifier,
    found: &mut GradientsParams,
    expected: &mut GradientsParams,
) -> Vec<(String, f64)> {
    struct Distances<'a>(&'a mut GradientsParams, &'a mut GradientsParams, Vec<f64>);
    impl ModuleVisitor for Distances<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let found = self.0.remove::<D>(param.id).expect("a gradient");
            let expected = self.1.remove::<D>(param.id).expect("a gradient");
            assert_eq!(found.dims(), expected.dims());
            let norm = |x: Tensor<D>| {
                let squares = x.into_data().iter::<f64>().map(|x| x * x).sum::<f64>();
                squares.sqrt()
            };
            self.2.push(norm(found - expected.clone()) / norm(expected));
        }
    }
    let mut distances = Distances(found, expected, Vec::new());
    network.visit(&mut distances);
    let names = crate::named_parameters(network).into_iter();
    names.map(|it| it.name).zip(distances.2).collect()
}

/// Two, four and eight devices of one processor, with and without recomputing, against the whole network: every
/// gradient, under the same dropout masks.
#[test]
fn slices_have_the_gradients_of_the_whole_network() {
    let whole = network(8);
    let axes = axes(&whole);
    assert_eq!(axes.len(), 3 * 10);
    assert_eq!(computed_in_slices(&whole, &axes).len(), axes.len());
    let (expected, _) = run(&whole, false);
    for devices in [2, 4, 8] {
        let networks: Vec<SequenceClassifier> = (0..devices)
            .map(|device| whole.clone().map(&mut Cut(&axes, device, devices)))
            .collect();
        let slices = Slices::of(&networks[1..], &axes);
        let mut bits = Vec::new();
        for recompute in [false, true] {
            let pass = || run(&networks[0], recompute);
            let (found, mut gradients) = slices.during(pass);
            let largest = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            assert!(largest.fold(0.0, f32::max) < 1e-5, "{found:?} {expected:?}");
            let (_, mut all) = run(&whole, false);
            for (name, distance) in distances(&whole, &mut gradients, &mut all) {
                // The gradient by a key's bias is 0 but for rounding.
                let is_nothing = name.ends_with("key.bias");
                assert!(is_nothing || distance < 1e-6, "{name}: {distance:e}");
            }
            bits.push(found.iter().map(|it| it.to_bits()).collect::<Vec<_>>());
        }
        assert_eq!(
            bits[0], bits[1],
            "the bits are those of a pass with a graph"
        );
    }
}

/// A layer whose weights are not all cut computes with whole ones.
#[test]
fn a_part_of_a_layer_that_is_not_cut_is_not_computed_in_slices() {
    let network = network(4);
    let all = axes(&network);
    let without = |end: &str| {
        let named = crate::named_parameters(&network).into_iter();
        let left = named.filter(|it| all.contains_key(&it.id) && !it.name.ends_with(end));
        let axes: Axes = left.map(|it| (it.id, all[&it.id])).collect();
        computed_in_slices(&network, &axes).len()
    };
    // The attention has seven parameters, the feed-forward part three.
    assert_eq!(without("0.attention.self.key.bias"), 23);
    assert_eq!(without("2.intermediate.dense.weight"), 27);
    let turned = all.keys().map(|&id| (id, 1)).collect();
    assert!(computed_in_slices(&network, &turned).is_empty());
}
