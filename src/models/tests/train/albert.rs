//! ALBERT as a model: steps against those of transformers and PyTorch, strategies, files, adapters, what one sees of its places.
//! Layers and gradients are compared in `stratoscope-bert`.

use std::fs;

use stratoscope_bert::checkpoint::TensorFile;
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSentenceEmbedding, BertForSequenceClassification, CompileArgs,
    GradualUnfreezing, IntoOptimizer, LoadOptions, Lora, Optimizer, Place, SGD,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, ModelParallel, OneDeviceStrategy, PipelineStrategy, Shard, cpu,
    scope,
};
use tempfile::TempDir;

use crate::modern_bert::{fit, many, texts, tiny, trace};
use crate::relative::without_dropout;
use crate::support::{
    assert_near_by, assert_near_weights, cross_entropy, fixtures, load, plain_args, weights,
};

const FAMILY: &str = "albert";
const CLASS: &str = "AlbertForSequenceClassification";

#[test]
fn the_losses_of_steps_are_those_of_pytorch() {
    let path = fixtures().join("../families").join(FAMILY);
    let text = fs::read_to_string(path.join("steps.json")).expect("the fixture's file");
    let expected: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let model = load(&without_dropout(FAMILY));
    let rate = expected["learning_rate"].as_f64().expect("a number");
    let args = CompileArgs::new().optimizer(AdamW::new(rate).weight_decay(0.0));
    model
        .compile(args.loss(cross_entropy()))
        .expect("valid arguments");
    let args = fit().batch_size(3).epochs(5).shuffle(false);
    let history = model.fit(&texts(), args).expect("it trains");
    let expected = expected["losses"].as_array().expect("losses");
    assert_eq!(history.executions.len(), expected.len());
    for (found, expected) in history.executions.iter().zip(expected) {
        assert_near_by(found.loss, expected.as_f64().expect("a number"), 1e-5);
    }
}

/// With dropout: replicas that divide the state, and places that are computed again, have the bits of training without them.
#[test]
fn strategies_change_no_bit() {
    let (folder, data) = (tiny(FAMILY, 0.0), many());
    let run = |strategy: &dyn AsStrategy, recompute: bool, optimizer: Optimizer| {
        let _scope = scope::enter(&strategy.strategy()).expect("no scope is active");
        let model = load(&folder);
        let args = plain_args().optimizer(optimizer);
        model.compile(args).expect("valid arguments");
        let args = fit().batch_size(4).recompute(recompute);
        let history = model.fit(&data, args).expect("it trains");
        (weights(&model), trace(&history))
    };
    let mirrored = || MirroredStrategy::logical(2).expect("logical devices");
    let adam = || {
        let optimizer = AdamW::new(1e-3).global_clipnorm(0.5);
        optimizer.into_optimizer().expect("valid arguments")
    };
    let whole = run(&mirrored(), false, adam());
    assert!(run(&mirrored(), true, adam()) == whole, "recomputed");
    for shard in Shard::ALL {
        let strategy = mirrored().shard(shard).expect("several replicas");
        assert!(run(&strategy, false, adam()) == whole, "{shard}");
    }
    // Devices that compute each place together add in another order.
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let sliced = ModelParallel::logical(2).expect("two devices");
    let descent = || {
        let optimizer = SGD::new(0.05).momentum(0.9).global_clipnorm(0.5);
        optimizer.into_optimizer().expect("valid arguments")
    };
    let expected = run(&one, false, descent());
    let found = run(&sliced, false, descent());
    assert_near_weights(&found.0, &expected.0);
    assert!(
        run(&sliced, true, descent()) == found,
        "recomputed in slices"
    );
}

/// All places need the weights of the one layer, which two stages would need.
#[test]
fn a_pipeline_is_refused() {
    let stages = PipelineStrategy::logical(2).expect("logical devices");
    let _scope = scope::enter(&stages.strategy()).expect("no scope is active");
    let folder = tiny(FAMILY, 0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let refused = BertForSequenceClassification::from_pretrained(path, 3);
    let refused = refused.expect_err("two stages would need the layer");
    assert_eq!(refused.code, "SC0624", "{refused}");
    assert!(refused.message.contains("share their weights"), "{refused}");
}

#[test]
fn it_is_saved_read_and_looked_at_like_a_bert() {
    let folder = tiny(FAMILY, 0.0);
    let model = load(&folder);
    model.compile(plain_args()).expect("valid arguments");
    let run = model
        .start(&many(), fit().batch_size(4))
        .expect("good data");
    let outputs = run.activations("encoder.layer.*").expect("known");
    for layer in 0..3 {
        for part in ["attention.self", "intermediate", "output"] {
            let name = format!("bert.encoder.layer.{layer}.{part}");
            assert_eq!(outputs[&*name].non_finite(), 0, "{name}");
        }
    }
    drop(run);
    model.fit(&many(), fit().batch_size(4)).expect("it trains");
    // One variable for all places.
    let variables = weights(&model);
    let queries = variables.iter().filter(|(name, _)| name.contains("query"));
    assert_eq!(queries.count(), 2, "weight and bias");
    let placement = model.placement().expect("a report").to_plain();
    assert!(placement.contains("bert.encoder.layer.0"), "{placement}");
    assert!(!placement.contains("bert.encoder.layer.1"), "{placement}");
    let copy = TempDir::new().expect("a temporary folder");
    model.save_pretrained(copy.path()).expect("it is saved");
    let config = fs::read_to_string(copy.path().join("config.json")).expect("the file");
    assert!(config.contains(CLASS), "{config}");
    let again = load(&copy);
    let rows = |model: &BertForSequenceClassification| {
        let found = model.predict(["a mail server", "chess"]);
        found.expect("texts").rows
    };
    assert_eq!(rows(&again), rows(&model));
}

/// The layer is frozen as a whole; a place after the first has no variables of its own.
#[test]
fn places_are_not_frozen_one_by_one() {
    let model = load(&tiny(FAMILY, 0.0));
    model.compile(plain_args()).expect("valid arguments");
    let refused = model.freeze("bert.encoder.layer.1").expect_err("none");
    assert!(refused.code.starts_with("SC"), "{refused}");
    model.freeze("bert.encoder.layer.0").expect("it is there");
    let before = weights(&model);
    model.fit(&many(), fit().batch_size(4)).expect("it trains");
    for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
        let is_frozen = name.contains("encoder.layer.0");
        let is_zero = name.ends_with("key.bias");
        assert!(is_zero || is_frozen == (*before == after), "{name}");
    }
}

/// A step passes every place, forward and backward.
#[test]
fn a_step_goes_from_place_to_place() {
    let model = load(&tiny(FAMILY, 0.0));
    model.compile(plain_args()).expect("valid arguments");
    let run = model
        .start(&many(), fit().batch_size(4))
        .expect("good data");
    let mut names = Vec::new();
    loop {
        let place = run.next_layer().expect("no device fails");
        if matches!(place.place, Place::Update(_)) {
            break;
        }
        names.extend(place.pass().map(ToString::to_string));
    }
    let layer = |at: usize| format!("bert.encoder.layer.{at}");
    let forward = (0..3).map(|at| format!("forward: {}", layer(at)));
    let backward = (0..3).rev().map(|at| format!("backward: {}", layer(at)));
    let expected: Vec<String> = forward.chain(backward).collect();
    names.retain(|name| name.contains("encoder.layer"));
    assert_eq!(names, expected);
}

/// What goes by layers takes all places together: rates that decay, and layers that are trained later.
#[test]
fn rates_and_unfreezing_know_one_layer() {
    let compiled = |optimizer: AdamW| {
        let model = load(&tiny(FAMILY, 0.0));
        let args = plain_args().optimizer(optimizer);
        model.compile(args).map(|_| model)
    };
    let optimizer = AdamW::new(1e-3).rate_for("bert.encoder.layer.1.*", 0.1);
    let refused = compiled(optimizer).expect_err("no name matches");
    assert_eq!(refused.code, "SC0103", "{refused}");
    let model = compiled(AdamW::new(1e-3).layer_decay(0.5)).expect("valid arguments");
    let args = fit().batch_size(4).epochs(3);
    let args = args.callbacks(GradualUnfreezing::new());
    let history = model.fit(&many(), args).expect("it trains");
    let edits: Vec<String> = history.edits.iter().map(ToString::to_string).collect();
    assert_eq!(
        edits.len(),
        3,
        "the head, the layer, the embeddings: {edits:?}"
    );
    assert!(edits[1].contains("encoder layer 0"), "{edits:?}");
    assert!(edits[2].contains("embeddings"), "{edits:?}");
}

/// The layer is in the file once.
#[test]
fn an_export_has_the_layer_once() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = load(&tiny(FAMILY, 0.0));
    let file = model.export_onnx(folder.path().join("model.onnx"));
    let file = file.expect("it is exported");
    let small = model.export_onnx_int8(folder.path().join("small.onnx"));
    let small = small.expect("it is exported");
    let names = ["input_ids", "attention_mask", "token_type_ids"];
    assert_eq!(file.inputs, names);
    assert_eq!(small.inputs, names);
    let bytes = fs::read(folder.path().join("model.onnx")).expect("the file");
    let name = b"bert.encoder.layer.0.output.dense.bias";
    let found = bytes.windows(name.len()).filter(|it| it == name).count();
    // As a weight, and as the input of three sums.
    assert_eq!(found, 4);
}

#[test]
fn adapters_are_trained_alone() {
    let folder = tiny(FAMILY, 0.0);
    let model = load(&folder);
    model
        .add_lora(Lora::new(2))
        .expect("adapters on queries and values");
    model.compile(plain_args()).expect("valid arguments");
    let before = weights(&model);
    model.fit(&many(), fit().batch_size(4)).expect("it trains");
    let mut adapters = 0;
    for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
        adapters += usize::from(name.contains("lora_"));
        let is_trained = name.contains("lora_") || name.contains("classifier");
        assert_eq!(*before != after, is_trained, "{name}");
    }
    assert_eq!(adapters, 4, "two matrices for queries and for values");
    // The file has them by the names that PEFT gives them.
    let copy = TempDir::new().expect("a temporary folder");
    model.save_pretrained(copy.path()).expect("it is saved");
    let saved = TensorFile::open(&copy.path().join("adapter_model.safetensors"));
    let saved = saved.expect("the adapters' file");
    let layer = "base_model.model.albert.encoder.albert_layer_groups.0.albert_layers.0";
    for part in ["query", "value"] {
        let name = format!("{layer}.attention.{part}.lora_A.weight");
        assert_eq!(saved.shape(&name), Some(&[2, 16][..]), "{name}");
    }
    assert_eq!(saved.names().count(), 6, "with the classifier");
    let again = load(&copy);
    let rows = |model: &BertForSequenceClassification| {
        let found = model.predict(["a mail server", "chess"]);
        found.expect("texts").rows
    };
    assert_eq!(rows(&again), rows(&model));
    // Merged, the model computes the same but for rounding.
    let probabilities = |model: &BertForSequenceClassification| -> Vec<f64> {
        let rows = rows(model).into_iter();
        rows.flat_map(|row| row.probabilities).collect()
    };
    let before = probabilities(&model);
    model.merge_lora().expect("adapters");
    for (found, expected) in probabilities(&model).iter().zip(&before) {
        assert_near_by(*found, *expected, 1e-5);
    }
}

#[test]
fn masked_language_models_learn_and_bodies_make_vectors() {
    let folder = without_dropout("albert-masked");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForMaskedLM::from_pretrained_with(path, &LoadOptions::new());
    let model = model.expect("it loads");
    let args = CompileArgs::new().optimizer(AdamW::new(1e-2));
    model
        .compile(args.loss(cross_entropy()))
        .expect("valid arguments");
    let history = model.fit(&many(), fit().batch_size(8).epochs(8));
    let epochs = history.expect("it trains").epochs;
    let losses: Vec<f64> = epochs.iter().map(|it| it.loss).collect();
    assert!(losses[7] < 0.8 * losses[0], "{losses:?}");
    let model = BertForSentenceEmbedding::from_pretrained(path).expect("it loads");
    let vectors = model
        .embed(["a mail server", "fonts"])
        .expect("vectors")
        .vectors;
    assert!(vectors.len() == 2 && vectors[0].len() == 16 && vectors[0] != vectors[1]);
}
