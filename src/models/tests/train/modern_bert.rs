//! ModernBERT as a model: its steps against those of transformers and PyTorch, strategies, files, adapters, what one sees
//! of a run. Layers and gradients are compared in `stratoscope-bert`.

use std::fs;

use stratoscope_data::{Dataset, Example, Label};
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSentenceEmbedding, BertForSequenceClassification, CompileArgs,
    FitArgs, History, Interventions, LoadOptions, Lora, MeanSquaredError, Phase, Run,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, PipelineStrategy, Shard, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{assert_near, cross_entropy, fixtures, heard, load, plain_args, weights};
use crate::why_operations::with_tensor;

/// A copy of a tiny model of another family; of a ModernBERT with this rate for each of its dropouts.
pub(crate) fn tiny(name: &str, dropout: f64) -> TempDir {
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
pub(crate) fn texts() -> Dataset {
    let [first, second, third] = [
        "a mail server",
        "A chess game for two players – and naïve signs: 漢",
        "library of fonts, version 2",
    ];
    Dataset::from_labelled([(first, 0), (second, 1), (third, 2)])
}

pub(crate) fn many() -> Dataset {
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

pub(crate) fn fit() -> FitArgs<'static> {
    FitArgs::new().max_length(24).seed(5).verbose(false)
}

/// Losses and norms to the bit.
pub(crate) fn trace(history: &History) -> Vec<(u64, Option<u64>)> {
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

/// A saved copy has the same vectors. The tokenizer gives the two texts of a pair no segments, by which a model could learn from them.
#[test]
fn sentence_embeddings_are_computed_and_not_trained() {
    let folder = tiny("modernbert-masked", 0.0);
    let path = |folder: &TempDir| folder.path().to_str().expect("a path in UTF-8").to_owned();
    let model = BertForSentenceEmbedding::from_pretrained(&path(&folder)).expect("it loads");
    let copy = TempDir::new().expect("a temporary folder");
    model.save_pretrained(copy.path()).expect("it is saved");
    let again = BertForSentenceEmbedding::from_pretrained(&path(&copy)).expect("it loads");
    let texts = ["a mail server", "chess games of two players", "fonts"];
    let vectors = model.embed(texts).expect("vectors").vectors;
    assert_eq!(again.embed(texts).expect("vectors").vectors, vectors);
    assert!(vectors.len() == 3 && vectors[0].len() == 16 && vectors[0] != vectors[1]);
    let args = CompileArgs::new().optimizer(AdamW::new(1e-3));
    model
        .compile(args.loss(MeanSquaredError))
        .expect("valid arguments");
    let pair = Example::new("a").with_pair("b");
    let pair = pair.with_label(Label::Value(0.5));
    let data = Dataset::from_examples(vec![pair; 8], Vec::new(), "pairs");
    let refused = model.fit(&data, fit()).expect_err("there are no segments");
    assert_eq!(refused.code, "SC0103");
    assert!(refused.message.contains("segment"), "{}", refused.message);
}

/// A run over texts that are longer than a window.
fn started(dropout: f64) -> (BertForSequenceClassification, Run) {
    let model = load(&tiny("modernbert", dropout));
    model.compile(plain_args()).expect("valid arguments");
    let args = fit().batch_size(4).epochs(2);
    let run = model.start(&many(), args).expect("good data");
    run.keep_snapshots(2, 1000).expect("the run is not over");
    (model, run)
}

/// Heads, layers, the joint projection, gradients, labels and dropout: the step with a change is the one that was shown.
#[test]
fn what_if_shows_the_changed_step() {
    type Kind = (&'static str, fn(&mut Interventions));
    let kinds: [Kind; 8] = [
        ("head", |it| it.head(1, 0).scale(0.0)),
        ("layer", |it| it.layer(2).token(1).set(0.25)),
        ("embeddings", |it| it.embeddings().scale(0.5)),
        ("pooler", |it| it.output("pooler").example(1).scale(2.0)),
        ("projection", |it| {
            it.weights("encoder.layer.1.attention.self.qkv.*")
                .scale(1.5);
        }),
        ("gradients", |it| {
            it.gradients("encoder.layer.3.*").scale(0.5)
        }),
        ("label", |it| {
            (0..4).for_each(|example| it.label(example, 2))
        }),
        ("dropout", |it| it.dropout(0.0)),
    ];
    for (name, change) in kinds {
        let (_model, run) = started(0.2);
        run.step(2).expect("it steps");
        let shown = run.what_if(change).expect(name);
        assert!(shown.before != shown.after, "{name}: {shown}");
        shown.commit().expect("the step comes");
        run.step(1).expect("it steps");
        let report = run.report().expect("no callback");
        let made = report.recent.last().expect("a step");
        assert_near(made.loss, shown.after.loss);
        assert_near(made.gradient_norm, shown.after.gradient_norm);
    }
    let (_model, run) = started(0.2);
    let refused = run.what_if(|it| it.head(0, 2).scale(0.0));
    assert_eq!(refused.expect_err("there are two heads").code, "SC0730");
}

/// The effect of a row is that of a run in which it has no weight.
#[test]
fn influence_is_exact() {
    let (model, run) = started(0.2);
    run.step(6).expect("it steps");
    let before = weights(&model);
    let found = run.influence("a chess game and news", "1", [3, 8]);
    let found = found.expect("the rows are there");
    assert!(weights(&model) == before);
    for row in &found.rows {
        let mut data = many();
        data.examples[row.row].weight = 0.0;
        let without = load(&tiny("modernbert", 0.2));
        without.compile(plain_args()).expect("valid arguments");
        let args = fit().batch_size(4).epochs(2);
        let reference = without.start(&data, args).expect("good data");
        reference.step(6).expect("it steps");
        let expected = without.predict("a chess game and news").expect("a text");
        let exact = found.probability + row.probability_change;
        let expected = expected.rows[0].probabilities[1];
        assert!(
            (exact - expected).abs() < 1e-12,
            "{exact} {expected}: {found}"
        );
        assert!(row.probability_change != 0.0, "{found}");
    }
}

/// A profile counts the products that a layer needs: with a window those of the positions within it.
#[test]
fn a_profile_counts_the_pairs_within_a_window() {
    let (_model, run) = started(0.2);
    let profile = run.profile(1).expect("there are steps");
    let positions = profile.replicas[0].positions;
    let (rows, length) = (4.0, positions / 4.0);
    // H = 16, F = 24; queries, keys and values, the projection after the heads, the gate and the way back.
    let dense = 3.0 * 256.0 + 256.0 + 48.0 * 16.0 + 24.0 * 16.0;
    for (layer, window) in [(0, None), (1, Some(4.0)), (2, Some(4.0)), (3, None)] {
        let pairs = match window {
            Some(window) => length * (2.0 * window + 1.0) - window * (window + 1.0),
            None => length * length,
        };
        let forward = 2.0 * positions * dense + 4.0 * rows * pairs * 16.0;
        let name = format!("bert.encoder.layer.{layer}");
        let found = profile.layer(&name).expect("a layer");
        assert!(
            (found.flops / (3.0 * forward) - 1.0).abs() < 1e-9,
            "{name}: {} {forward}",
            found.flops
        );
        assert!(found.forward > 0.0 && found.backward > 0.0, "{profile}");
    }
    assert!(length > 9.0, "longer than a window: {length}");
}

/// Planted faults are named by the operation and the layer, as in BERT.
#[test]
fn why_names_the_operation_and_the_layer() {
    const LAYERS: &str = "bert.encoder.layer";
    let product = "product of queries and keys";
    for (tensor, value, operation, place) in [
        (
            "layers.1.attn.Wqkv",
            3e38,
            "product",
            "1.attention.self.qkv",
        ),
        ("layers.2.attn.Wqkv", 1e25, product, "2.attention.self"),
        ("layers.1.attn_norm", 3e38, "scale", "1.attention.LayerNorm"),
        (
            "layers.0.mlp_norm",
            3e38,
            "scale",
            "0.intermediate.LayerNorm",
        ),
        ("layers.2.mlp.Wi", 3e38, "product", "2.intermediate.dense"),
        ("layers.1.mlp.Wi", 1e25, "gate", "1.intermediate"),
        ("final_norm", 3e38, "scale", "3.output.LayerNorm"),
    ] {
        let folder = with_tensor(
            tiny("modernbert", 0.1),
            &format!("model.{tensor}.weight"),
            |data| data.fill(value),
        );
        let model = load(&folder);
        model.compile(plain_args()).expect("valid arguments");
        let run = model.start(&many(), fit().batch_size(4));
        let why = run.expect("good data").why().expect("no device fails");
        let first = why.first.as_ref();
        let first = first.unwrap_or_else(|| panic!("{tensor}: nothing found: {why}"));
        let found = (
            first.phase,
            first.operation.as_deref().unwrap_or_default(),
            first.name.clone(),
        );
        let expected = (Phase::Forward, operation, format!("{LAYERS}.{place}"));
        assert_eq!(found, expected, "{tensor}: {why}");
        let cause = "a bad weight before the first step";
        assert!(why.causes.iter().any(|it| it.contains(cause)), "{why}");
        assert!(first.row.is_some() && first.text.is_some(), "{why}");
    }
}

/// Published ModernBERTs have rates of 0, and are fine-tuned with them.
#[test]
fn no_dropout_is_no_finding() {
    let model = load(&tiny("modernbert", 0.0));
    model.compile(plain_args()).expect("valid arguments");
    let (_, found) = heard(&["SC0509"], || {
        model.fit(&many(), fit()).expect("it trains")
    });
    assert!(found.is_empty(), "{found:?}");
}

/// The model has 64 positions.
#[test]
fn more_tokens_than_positions_are_refused() {
    let model = load(&tiny("modernbert", 0.0));
    model.compile(plain_args()).expect("valid arguments");
    let refused = model.fit(&many(), fit().max_length(65));
    let refused = refused.expect_err("it has no such position");
    assert_eq!(refused.code, "SC0401");
    assert!(refused.message.contains("64"), "{}", refused.message);
    model.fit(&many(), fit().max_length(64)).expect("it trains");
}
