//! ModernBERT as a model: its steps against those of transformers and PyTorch, strategies, files, adapters, what one sees
//! of a run. Layers and gradients are compared in `stratoscope-bert`.

use std::fs;

use stratoscope_data::Dataset;
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, PipelineStrategy, Shard, cpu, scope,
};
use stratoscope_train::{
    AdamW, BertForMaskedLM, BertForSequenceClassification, CompileArgs, FitArgs, History,
    LoadOptions, Lora,
};
use tempfile::TempDir;

use crate::support::{cross_entropy, fixtures, load, plain_args, weights};

/// A copy of a tiny ModernBERT with this rate for each of its dropouts.
fn tiny(name: &str, dropout: f64) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for file in [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ] {
        let source = fixtures().join("../families").join(name).join(file);
        let bytes = fs::read(source).expect("the fixture's file");
        fs::write(folder.path().join(file), bytes).expect("room");
    }
    let path = folder.path().join("config.json");
    let config = fs::read_to_string(&path).expect("it was written");
    let config = config.replace("_dropout\": 0.0", &format!("_dropout\": {dropout}"));
    fs::write(path, config).expect("room");
    folder
}

/// The texts of the fixture, more tokens than a window has, a class each.
fn texts() -> Dataset {
    let [first, second, third] = [
        "a mail server",
        "A chess game for two players – and naïve signs: 漢",
        "library of fonts, version 2",
    ];
    Dataset::from_labelled([(first, 0), (second, 1), (third, 2)])
}

fn many() -> Dataset {
    let parts = [
        "mail",
        "server for news",
        "a chess game",
        "fonts of a library",
    ];
    Dataset::from_labelled((0..16).map(|index| {
        let text = [parts[index % 4], parts[index * 3 % 4], parts[index / 4]].join(" and ");
        (text, index % 3)
    }))
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().max_length(24).seed(5).verbose(false)
}

/// Losses and norms to the bit.
fn trace(history: &History) -> Vec<(u64, Option<u64>)> {
    let executions = history.executions.iter();
    executions
        .map(|it| (it.loss.to_bits(), it.gradient_norm.map(f64::to_bits)))
        .collect()
}

#[test]
fn the_losses_of_steps_are_those_of_pytorch() {
    let path = fixtures().join("../families/modernbert/steps.json");
    let text = fs::read_to_string(path).expect("the fixture's file");
    let expected: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let model = load(&tiny("modernbert", 0.0));
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
        let expected = expected.as_f64().expect("a number");
        assert!(
            (found.loss - expected).abs() <= 1e-5,
            "{}, not {expected}",
            found.loss
        );
    }
}

/// With dropout at each place: replicas that divide the state, and stages, have the bits of training without them.
#[test]
fn strategies_change_no_bit() {
    let (folder, data) = (tiny("modernbert", 0.1), many());
    let run = |strategy: &dyn AsStrategy, accumulation: usize, batch: usize, recompute: bool| {
        let strategy = strategy.strategy();
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = load(&folder);
        let args = plain_args().optimizer(AdamW::new(1e-3).global_clipnorm(0.5));
        let args = args.gradient_accumulation_steps(accumulation);
        model
            .compile(args.steps_per_execution(accumulation))
            .expect("valid arguments");
        let history = model
            .fit(&data, fit().batch_size(batch).recompute(recompute))
            .expect("it trains");
        (weights(&model), trace(&history))
    };
    let mirrored = || MirroredStrategy::logical(2).expect("logical devices");
    let whole = run(&mirrored(), 1, 4, false);
    assert!(run(&mirrored(), 1, 4, true) == whole, "recomputed");
    for shard in Shard::ALL {
        let strategy = mirrored().shard(shard).expect("several replicas");
        assert!(run(&strategy, 1, 4, false) == whole, "{shard}");
    }
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let accumulated = run(&one, 4, 2, false);
    let stages = PipelineStrategy::logical(2).expect("logical devices");
    let stages = stages.micro_batches(4).expect("a number");
    assert!(run(&stages, 1, 8, false) == accumulated, "two stages");
}

#[test]
fn it_is_saved_read_and_looked_at_like_a_bert() {
    let folder = tiny("modernbert", 0.1);
    let model = load(&folder);
    model.compile(plain_args()).expect("valid arguments");
    let run = model
        .start(&many(), fit().batch_size(4))
        .expect("good data");
    let outputs = run.activations("encoder.layer.1.*").expect("known");
    for part in ["attention.self", "intermediate", "output"] {
        let name = format!("bert.encoder.layer.1.{part}");
        assert_eq!(outputs[&*name].non_finite(), 0, "{name}");
    }
    drop(run);
    model.fit(&many(), fit().batch_size(4)).expect("it trains");
    let placement = model.placement().expect("a report").to_plain();
    assert!(placement.contains("bert.encoder.layer.3"), "{placement}");
    let copy = TempDir::new().expect("a temporary folder");
    model.save_pretrained(copy.path()).expect("it is saved");
    let config = fs::read_to_string(copy.path().join("config.json")).expect("the file");
    assert!(
        config.contains("ModernBertForSequenceClassification"),
        "{config}"
    );
    let again = load(&copy);
    let rows = |model: &BertForSequenceClassification| {
        model
            .predict(["a mail server", "chess"])
            .expect("texts")
            .rows
    };
    assert_eq!(rows(&again), rows(&model));

    // A file in the ONNX format it has not.
    let file = copy.path().join("model.onnx");
    let refused = model.export_onnx(&file).expect_err("it is refused");
    assert_eq!(refused.code, "SC0761", "{refused}");
    assert!(
        refused.message.contains("ModernBERT") && !file.exists(),
        "{refused}"
    );
}

#[test]
fn adapters_are_trained_alone() {
    let model = load(&tiny("modernbert", 0.1));
    model
        .add_lora(Lora::new(2))
        .expect("adapters on the joint layer");
    model.compile(plain_args()).expect("valid arguments");
    let before = weights(&model);
    model.fit(&many(), fit().batch_size(4)).expect("it trains");
    for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
        let is_trained =
            name.contains("lora_") || name.contains("pooler") || name.contains("classifier");
        assert_eq!(*before != after, is_trained, "{name}");
    }
}

#[test]
fn a_masked_language_model_learns() {
    let folder = tiny("modernbert-masked", 0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForMaskedLM::from_pretrained_with(path, &LoadOptions::new()).expect("it loads");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(1e-2))
        .loss(cross_entropy());
    model.compile(args).expect("valid arguments");
    let history = model
        .fit(&many(), fit().batch_size(8).epochs(8))
        .expect("it trains");
    let losses: Vec<f64> = history.epochs.iter().map(|it| it.loss).collect();
    assert!(losses[7] < 0.8 * losses[0], "{losses:?}");
}
