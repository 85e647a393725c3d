//! MPNet and DeBERTa as models: steps against those of transformers and PyTorch, strategies, files, adapters. Layers and gradients
//! are compared in `stratoscope-bert`.

use std::fs;

use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSentenceEmbedding, BertForSequenceClassification, CompileArgs,
    LoadOptions, Lora,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, PipelineStrategy, Shard, scope};
use tempfile::TempDir;

use crate::modern_bert::{fit, many, texts, tiny, trace};
use crate::support::{cross_entropy, fixtures, load, plain_args, weights};

const FAMILIES: [(&str, &str); 2] = [
    ("mpnet", "MPNetForSequenceClassification"),
    ("deberta", "DebertaV2ForSequenceClassification"),
];

/// A copy of the tiny model of a family, whose file has rates of 0.1, without dropout.
pub(crate) fn without_dropout(name: &str) -> TempDir {
    let folder = tiny(name, 0.0);
    let path = folder.path().join("config.json");
    let config = fs::read_to_string(&path).expect("it was copied");
    let config = config.replace("_dropout_prob\": 0.1", "_dropout_prob\": 0.0");
    fs::write(path, config).expect("room");
    folder
}

#[test]
fn the_losses_of_steps_are_those_of_pytorch() {
    for (family, _) in FAMILIES {
        let path = fixtures()
            .join("../families")
            .join(family)
            .join("steps.json");
        let text = fs::read_to_string(path).expect("the fixture's file");
        let expected: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let model = load(&without_dropout(family));
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
            let difference = (found.loss - expected).abs();
            assert!(
                difference <= 1e-5,
                "{family}: {}, not {expected}",
                found.loss
            );
        }
    }
}

/// With dropout: replicas that divide the state, and layers that are computed again, have the bits of training without them.
#[test]
fn strategies_change_no_bit() {
    for (family, _) in FAMILIES {
        let (folder, data) = (tiny(family, 0.0), many());
        let run = |strategy: &dyn AsStrategy, recompute: bool| {
            let _scope = scope::enter(&strategy.strategy()).expect("no scope is active");
            let model = load(&folder);
            let args = plain_args().optimizer(AdamW::new(1e-3).global_clipnorm(0.5));
            model.compile(args).expect("valid arguments");
            let args = fit().batch_size(4).recompute(recompute);
            let history = model.fit(&data, args).expect("it trains");
            (weights(&model), trace(&history))
        };
        let mirrored = || MirroredStrategy::logical(2).expect("logical devices");
        let whole = run(&mirrored(), false);
        assert!(run(&mirrored(), true) == whole, "{family} recomputed");
        for shard in Shard::ALL {
            let strategy = mirrored().shard(shard).expect("several replicas");
            assert!(run(&strategy, false) == whole, "{family} {shard}");
        }
    }
}

/// All layers read one table, which two stages would need.
#[test]
fn a_pipeline_is_refused() {
    let stages = PipelineStrategy::logical(2).expect("logical devices");
    let _scope = scope::enter(&stages.strategy()).expect("no scope is active");
    for (family, _) in FAMILIES {
        let folder = tiny(family, 0.0);
        let path = folder.path().to_str().expect("a path in UTF-8");
        let refused = BertForSequenceClassification::from_pretrained(path, 3);
        let refused = refused.expect_err("two stages would need the table");
        assert_eq!(refused.code, "SC0624", "{refused}");
        assert!(refused.message.contains("table of distances"), "{refused}");
    }
}

#[test]
fn they_are_saved_read_and_looked_at_like_a_bert() {
    for (family, class) in FAMILIES {
        let folder = tiny(family, 0.0);
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
        assert!(placement.contains("bert.encoder.layer.1"), "{placement}");
        let copy = TempDir::new().expect("a temporary folder");
        model.save_pretrained(copy.path()).expect("it is saved");
        let config = fs::read_to_string(copy.path().join("config.json")).expect("the file");
        assert!(config.contains(class), "{config}");
        let again = load(&copy);
        let rows = |model: &BertForSequenceClassification| {
            let found = model.predict(["a mail server", "chess"]);
            found.expect("texts").rows
        };
        assert_eq!(rows(&again), rows(&model));
        let file = copy.path().join("model.onnx");
        let refused = model.export_onnx(&file).expect_err("it is refused");
        assert_eq!(refused.code, "SC0761", "{refused}");
        assert!(!file.exists());
    }
}

#[test]
fn adapters_are_trained_alone() {
    for (family, _) in FAMILIES {
        let model = load(&tiny(family, 0.0));
        model
            .add_lora(Lora::new(2))
            .expect("adapters on queries and values");
        model.compile(plain_args()).expect("valid arguments");
        let before = weights(&model);
        model.fit(&many(), fit().batch_size(4)).expect("it trains");
        for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
            let is_trained =
                name.contains("lora_") || name.contains("pooler") || name.contains("classifier");
            assert_eq!(*before != after, is_trained, "{family} {name}");
        }
    }
}

#[test]
fn masked_language_models_learn_and_bodies_make_vectors() {
    for (family, _) in FAMILIES {
        let folder = without_dropout(&format!("{family}-masked"));
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
        assert!(losses[7] < 0.8 * losses[0], "{family}: {losses:?}");
        let model = BertForSentenceEmbedding::from_pretrained(path).expect("it loads");
        let vectors = model
            .embed(["a mail server", "fonts"])
            .expect("vectors")
            .vectors;
        assert!(vectors.len() == 2 && vectors[0].len() == 16 && vectors[0] != vectors[1]);
    }
}
