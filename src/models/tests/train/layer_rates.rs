//! `layer_decay` and `rate_for` through whole runs: the rate of each layer, under every strategy that this process can have.

use stratoscope_data::make_regression;
use stratoscope_models::{
    Adafactor, AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, IntoOptimizer,
    Lamb, MeanSquaredError, SGD, Sequential,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, ParameterServerStrategy, Strategy,
};

use crate::support::{
    assert_near_weights, cross_entropy, load, plain_args, sentences, tiny_bert, weights,
};

type Weights = Vec<(String, Vec<f32>)>;

fn model(
    strategy: Option<&Strategy>,
    optimizer: impl IntoOptimizer,
) -> BertForSequenceClassification {
    let _scope =
        strategy.map(|it| stratoscope_strategy::scope::enter(it).expect("no scope is active"));
    let model = load(&tiny_bert(0.0));
    let args = plain_args().loss(cross_entropy()).optimizer(optimizer);
    model.compile(args).expect("valid arguments");
    model
}

fn trained(
    strategy: Option<&Strategy>,
    optimizer: impl IntoOptimizer,
    examples: usize,
) -> (Weights, Weights) {
    let model = model(strategy, optimizer);
    let before = weights(&model);
    let fit = FitArgs::new().batch_size(4).shuffle(false).verbose(false);
    model.fit(&sentences(examples), fit).expect("it trains");
    (before, weights(&model))
}

/// The exponent of a variable, of a network with so many layers.
fn exponent(name: &str, layers: i32) -> i32 {
    let layer = name.split_once("encoder.layer.").map(|(_, rest)| {
        let number = rest.split('.').next().expect("a number");
        number.parse::<i32>().expect("a number")
    });
    match layer {
        Some(layer) => layers - layer,
        None if name.contains("embeddings") => layers + 1,
        None => 0,
    }
}

#[test]
fn a_step_of_each_variable_is_as_much_shorter_as_its_layer_is_deep() {
    let (before, whole) = trained(None, SGD::new(0.5), 4);
    let (same, decayed) = trained(None, SGD::new(0.5).layer_decay(0.5), 4);
    assert_eq!(before, same);
    let deepest = before.iter().map(|(name, _)| exponent(name, 0)).min();
    let layers = 1 - deepest.expect("variables");
    assert!(layers >= 2, "the fixture has layers");
    let mut moved = vec![0.0_f32; 2 + layers as usize];
    for (((name, start), (_, whole)), (_, decayed)) in before.iter().zip(&whole).zip(&decayed) {
        let exponent = exponent(name, layers);
        let factor = 0.5_f32.powi(exponent);
        for ((start, whole), decayed) in start.iter().zip(whole).zip(decayed) {
            let (whole, decayed) = (whole - start, decayed - start);
            assert!((decayed - factor * whole).abs() < 1e-6, "{name}");
            moved[exponent as usize] = moved[exponent as usize].max(whole.abs());
        }
    }
    assert!(moved.iter().all(|it| *it > 1e-4), "{moved:?}");
}

#[test]
fn variables_that_match_a_pattern_move_by_its_rate() {
    let (before, whole) = trained(None, SGD::new(0.5), 4);
    let optimizer = SGD::new(0.5)
        .rate_for("bert.*", 0.5)
        .rate_for("*.bias", 0.25)
        .rate_for("embeddings", 0.0);
    let (_, changed) = trained(None, optimizer, 4);
    let mut moved = [0.0_f32; 4];
    for (((name, start), (_, whole)), (_, changed)) in before.iter().zip(&whole).zip(&changed) {
        let (group, factor) = match name {
            name if name.contains("embeddings") => (0, 0.0),
            name if name.ends_with(".bias") => (1, 0.25),
            name if name.starts_with("bert.") => (2, 0.5),
            _ => (3, 1.0),
        };
        for ((start, whole), changed) in start.iter().zip(whole).zip(changed) {
            let (whole, changed) = (whole - start, changed - start);
            assert!((changed - factor * whole).abs() < 1e-6, "{name}");
            moved[group] = moved[group].max(whole.abs());
        }
    }
    assert!(moved.iter().all(|it| *it > 1e-4), "{moved:?}");
}

#[test]
fn a_pattern_of_nothing_is_refused_with_near_names() {
    let bert = load(&tiny_bert(0.0));
    let optimizer = AdamW::new(5e-5).rate_for("bert.embedings.*", 0.1);
    let args = plain_args().loss(cross_entropy()).optimizer(optimizer);
    let refused = bert.compile(args).expect_err("no name matches");
    assert_eq!(refused.code.as_str(), "SC0103");
    assert!(
        refused.to_string().contains("`bert.embeddings.*`"),
        "{refused}"
    );
    // A model whose variables `fit` makes.
    let rows = Sequential([Dense(1).seed(1)]).expect("a layer");
    let args = || CompileArgs::new().loss(MeanSquaredError);
    let data = make_regression(8, 3, 0).expect("sizes above 0");
    let fit = || FitArgs::new().verbose(false);
    rows.compile(args().optimizer(SGD::new(0.1).rate_for("*.bais", 0.5)))
        .expect("there are no variables yet");
    let refused = rows.fit(&data, fit()).expect_err("no name matches");
    assert_eq!(refused.code.as_str(), "SC0103");
    assert!(refused.to_string().contains("`*.bias`"), "{refused}");
    rows.compile(args().optimizer(SGD::new(0.1).rate_for("*.bias", 0.5)))
        .expect("it matches");
    rows.fit(&data, fit()).expect("it trains");
}

#[test]
fn every_strategy_has_the_rates_of_one_device() {
    let mirrored = MirroredStrategy::logical(2).expect("two").strategy();
    let central = CentralStorageStrategy::logical(2).expect("two").strategy();
    let servers = ParameterServerStrategy::logical(2, 1).expect("three");
    let servers = servers.synchronous().strategy();
    let optimizer = || {
        AdamW::new(1e-2)
            .epsilon(0.1)
            .layer_decay(0.5)
            .rate_for("*.bias", 2.0)
    };
    let lamb = || Lamb::new(1e-2).epsilon(0.1).layer_decay(0.5);
    let (_, alone) = trained(None, optimizer(), 12);
    let (_, alone_with_lamb) = trained(None, lamb(), 12);
    // Large enough that gradients which are nothing but rounding do not decide.
    let adafactor = || Adafactor::new(1e-2).epsilon_1(1e-2);
    let (_, alone_with_adafactor) = trained(None, adafactor(), 12);
    // The gradient of this one is 0 but for its rounding, and LAMB makes every step as long as the weights.
    let but_keys = |all: &Weights| -> Weights {
        let is_other = |it: &&(String, Vec<f32>)| !it.0.ends_with("key.bias");
        all.iter().filter(is_other).cloned().collect()
    };
    for strategy in [mirrored, central, servers] {
        let (_, found) = trained(Some(&strategy), optimizer(), 12);
        assert_near_weights(&found, &alone);
        let (_, found) = trained(Some(&strategy), lamb(), 12);
        assert_near_weights(&but_keys(&found), &but_keys(&alone_with_lamb));
        let (_, found) = trained(Some(&strategy), adafactor(), 12);
        assert_near_weights(&found, &alone_with_adafactor);
    }
}

#[test]
fn the_receipt_lists_the_groups() {
    let model = load(&tiny_bert(0.0));
    let optimizer = AdamW::new(5e-5).layer_decay(0.5);
    let args = plain_args().loss(cross_entropy()).optimizer(optimizer);
    let receipt = model.compile(args).expect("valid arguments");
    let lines = receipt.settings.iter().map(|(_, value)| value.as_str());
    let lines: Vec<&str> = lines.filter(|line| line.contains("rate ×")).collect();
    assert!(lines[0].starts_with("head: rate × 1, "), "{lines:?}");
    assert!(lines[1].starts_with("encoder layer "), "{lines:?}");
    assert!(lines[1].contains(": rate × 0.5, 16 variables, 6 of them decayed"));
    let last = lines.last().expect("lines");
    assert!(last.starts_with("embeddings: rate × "), "{lines:?}");
}

#[test]
fn a_model_without_layers_is_refused_with_its_names() {
    let model = Sequential([Dense(1).seed(1)]).expect("a layer");
    let args = CompileArgs::new().loss(MeanSquaredError);
    let refused = model.compile(args.optimizer(SGD::new(0.1).layer_decay(0.9)));
    let refused = refused.expect_err("there are no encoder layers");
    assert_eq!(refused.code.as_str(), "SC0103");
    assert!(refused.to_string().contains("layer_decay"), "{refused}");
}
