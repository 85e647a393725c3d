//! ModernBERT beside what transformers computes (`tests/parity/families/make_modernbert.py`): every layer's output, the loss and
//! every gradient, over texts longer than the window of local attention; and what the layers have in common with BERT's.

use std::collections::{BTreeSet, HashMap};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::config::{LayerAttention, Pooling};
use stratoscope_bert::names::named_values;
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::taps::Taps;
use stratoscope_bert::{
    BertNetwork, Computed, Family, LoadOptions, LoraConfig, MaskedLm, Mode, Origin,
    QuestionAnswerer, Segment, SequenceClassifier, TokenClassifier, checkpoint, gradient, lora,
    named_parameters,
};

use crate::beside_transformers::{
    batch, check_classifier, check_masked, check_reading, check_sixteen_bits, folder, loaded, read,
};
use crate::fixtures::{Case, as_f64, difference};
use crate::parity::loss;

const TRAIN: Mode = Mode::Train {
    seed: 3,
    step: 5,
    replica: 0,
};

/// The name of a parameter in the file, where a saved copy has it.
fn in_file(parameter: &str) -> String {
    let names = [
        ("embeddings.word_embeddings", "embeddings.tok_embeddings"),
        ("embeddings.LayerNorm", "embeddings.norm"),
        ("encoder.layer.3.output.LayerNorm", "final_norm"),
        ("encoder.layer", "layers"),
        ("attention.LayerNorm", "attn_norm"),
        ("attention.self.qkv", "attn.Wqkv"),
        ("attention.output.dense", "attn.Wo"),
        ("intermediate.LayerNorm", "mlp_norm"),
        ("intermediate.dense", "mlp.Wi"),
        ("output.dense", "mlp.Wo"),
        ("bert.pooler.dense", "head.dense"),
        ("bert.pooler.LayerNorm", "head.norm"),
        ("cls.predictions.transform.dense", "head.dense"),
        ("cls.predictions.transform.LayerNorm", "head.norm"),
        ("cls.predictions.bias", "decoder.bias"),
    ];
    let mut name = parameter.to_owned();
    for (ours, own) in names {
        name = name.replace(ours, own);
    }
    match name.strip_prefix("bert.") {
        Some(body) => format!("model.{body}"),
        None => name,
    }
}

#[test]
fn layers_and_gradients_are_those_of_transformers() {
    check_classifier("modernbert", 4, &Device::flex(), in_file);
}

/// One test, since the first step compiles every kernel anew.
#[test]
fn layers_and_gradients_are_those_of_transformers_on_gpu() {
    if let Some(device) = stratoscope_gpu::testing::device() {
        check_classifier("modernbert", 4, &device, in_file);
    }
}

#[test]
fn the_masked_language_model_has_the_gradients_of_transformers() {
    check_masked("modernbert-masked", in_file);
}

/// The first token's path through the last layer, segments one after the other, and layers that are computed again have the
/// bits of one pass.
#[test]
fn every_way_through_the_layers_has_the_same_bits() {
    let case = Case::read(&folder("modernbert").join("case.safetensors"));
    let bits = |x: Tensor<2>| -> Vec<u32> {
        let data = x.into_data();
        data.iter::<f32>().map(f32::to_bits).collect()
    };
    let device = Device::flex();
    for name in ["modernbert", "modernbert-mean"] {
        let network = loaded::<SequenceClassifier>(name, &device).network;
        let batch = batch(&case, &device);
        let whole = bits(network.forward_all(batch.clone(), Mode::Eval).logits);
        assert_eq!(
            bits(network.forward(batch.clone(), Mode::Eval)),
            whole,
            "{name}"
        );
        let segment = |layers: std::ops::Range<usize>| Segment {
            has_head: layers.end == 4,
            layers,
        };
        let mut hidden = None;
        for part in [segment(0..1), segment(1..3), segment(3..4)] {
            let mask = batch.attention_mask.clone();
            let output = part.hidden(&network.bert, hidden.take(), batch.clone(), Mode::Eval);
            match part.computed(output, |x| network.of_hidden(x, mask, Mode::Eval)) {
                Computed::Hidden(x) => hidden = Some(x),
                Computed::Outputs(logits) => assert_eq!(bits(logits), whole, "{name}"),
            }
        }
        assert!(hidden.is_none());
    }
    let device = device.autodiff();
    let network = loaded::<SequenceClassifier>("modernbert", &device).network;
    let gradients = |recompute: bool| -> Vec<Vec<f64>> {
        let pass = || {
            loss(
                network.forward(batch(&case, &device), TRAIN),
                &[2.0, 0.0, 1.0, 1.0],
            )
        };
        let (loss, recorded) = Recorded::during(recompute, pass);
        let gradients = recorded.backward(&loss, &network);
        let all = named_parameters(&network).into_iter();
        let of = all.map(|it| gradient(&network, &gradients, &it.name).expect("it is trained"));
        of.map(as_f64).collect()
    };
    assert_eq!(gradients(true), gradients(false));
}

/// The taps name the layers as in BERT; probabilities are zero beyond the window, and rows add up to 1.
#[test]
fn layers_are_seen_by_the_names_of_bert() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(HashMap::new()));
    let sink = seen.clone();
    let taps = Taps::new(
        |_| true,
        move |name, shape, x| {
            let values: Vec<f32> = x.into_data().iter::<f32>().collect();
            sink.lock()
                .expect("no panic")
                .insert(name.to_owned(), (shape.to_vec(), values));
        },
    );
    let device = Device::flex();
    let case = Case::read(&folder("modernbert").join("case.safetensors"));
    let network = loaded::<SequenceClassifier>("modernbert", &device).network;
    taps.during(|| network.forward(batch(&case, &device), Mode::Eval));
    let seen = seen.lock().expect("no panic");
    let shape = |name: &str| {
        seen.get(name)
            .unwrap_or_else(|| panic!("no {name}"))
            .0
            .clone()
    };
    for layer in 0..4 {
        let of = |part: &str| format!("bert.encoder.layer.{layer}.{part}");
        for part in [
            "attention.self",
            "attention.self.query",
            "attention.output",
            "output",
        ] {
            assert_eq!(shape(&of(part)), [4, 24, 16], "{part}");
        }
        assert_eq!(shape(&of("intermediate")), [4, 24, 24]);
        let (shape, values) = &seen[&of("attention.self.probabilities")];
        assert_eq!(*shape, [4, 2, 24, 24]);
        // The first text has no padding.
        for (at, row) in values.chunks(24).take(48).enumerate() {
            let sum: f32 = row.iter().sum();
            assert!((sum - 1.0).abs() < 1e-5);
            for (key, &value) in row.iter().enumerate() {
                let is_far = key.abs_diff(at % 24) > 4 && (1..3).contains(&layer);
                assert_eq!(value == 0.0, is_far, "layer {layer}, {at} → {key}: {value}");
            }
        }
    }
    assert_eq!(shape("bert.embeddings"), [4, 24, 16]);
    assert_eq!(shape("bert.pooler"), [4, 16]);
    assert_eq!(shape("classifier"), [4, 3]);
}

/// The published files, which transformers before version 5 has written.
#[test]
fn the_fields_of_published_files_are_read() {
    let config = read(
        r#"{"architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "classifier_pooling": "mean",
            "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "hidden_activation": "gelu",
            "hidden_size": 768, "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128,
            "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "norm_eps": 1e-05,
            "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283,
            "position_embedding_type": "absolute", "vocab_size": 50368}"#,
    )
    .expect("it is read");
    assert_eq!(config.family, Family::ModernBert);
    assert_eq!((config.type_vocab_size, config.layer_norm_eps), (1, 1e-5));
    assert_eq!(
        (config.hidden_dropout_prob, config.classifier_dropout()),
        (0.0, 0.0)
    );
    let modern = config.modern.as_ref().expect("it is one");
    assert_eq!(modern.pooling, Pooling::Mean);
    assert_eq!(modern.initializer_cutoff_factor, 2.0);
    let global = LayerAttention {
        base: 160_000.0,
        window: None,
    };
    let local = LayerAttention {
        base: 10_000.0,
        window: Some(64),
    };
    let kinds: Vec<bool> = modern.layers.iter().map(|it| *it == global).collect();
    assert_eq!(kinds.len(), 22);
    assert!(
        kinds
            .iter()
            .enumerate()
            .all(|(layer, is_global)| *is_global == (layer % 3 == 0))
    );
    assert!(modern.layers.iter().all(|it| *it == global || *it == local));
    // Absent fields have the values of ModernBERT-base.
    let absent = read(r#"{"model_type": "modernbert"}"#).expect("it is read");
    assert_eq!(
        absent.modern.as_ref().map(|it| &it.layers),
        Some(&modern.layers)
    );
    assert_eq!(
        (absent.vocab_size, absent.pad_token_id),
        (50_368, Some(50_283))
    );
}

#[test]
fn what_is_not_computed_is_refused() {
    let with = |field: &str| {
        read(&format!(
            r#"{{"model_type": "modernbert", "num_hidden_layers": 2, {field}}}"#
        ))
    };
    for (field, code) in [
        (r#""norm_bias": true"#, "SC0903"),
        (r#""decoder_bias": false"#, "SC0903"),
        (r#""hidden_activation": "silu""#, "SC0903"),
        (r#""classifier_activation": "relu""#, "SC0903"),
        (r#""classifier_pooling": "max""#, "SC0903"),
        (
            r#""rope_parameters": {"full_attention": {"rope_type": "yarn"}}"#,
            "SC0903",
        ),
        (
            r#""rope_scaling": {"type": "linear", "factor": 2.0}"#,
            "SC0903",
        ),
        (r#""layer_types": ["full_attention"]"#, "SC0909"),
        (r#""layer_types": ["full_attention", "chunked"]"#, "SC0909"),
        (r#""local_attention": 0"#, "SC0909"),
        (r#""global_attn_every_n_layers": 0"#, "SC0909"),
        (r#""global_rope_theta": "many""#, "SC0909"),
        (r#""local_rope_theta": 0.0"#, "SC0909"),
        (r#""mlp_dropout": 1.0"#, "SC0909"),
        (r#""hidden_size": 36, "num_attention_heads": 12"#, "SC0909"),
        (r#""initializer_cutoff_factor": 0.0"#, "SC0909"),
        (r#""initializer_cutoff_factor": "2""#, "SC0909"),
    ] {
        let refused = with(field).expect_err(field);
        assert!(refused.starts_with(code), "{field}: {refused}");
    }
    assert!(with(r#""layer_types": ["sliding_attention", "full_attention"]"#).is_ok());
}

/// The layer in front of each head is that of the pretraining's, and only the last layer is new.
#[test]
fn other_heads_take_the_layer_of_the_pretraining() {
    fn new<N: BertNetwork>() -> Vec<String> {
        let device = Device::flex();
        let report = loaded::<N>("modernbert-masked", &device).report;
        report.of(Origin::New).map(|it| it.name.clone()).collect()
    }
    assert_eq!(
        new::<SequenceClassifier>(),
        ["classifier.weight", "classifier.bias"]
    );
    assert_eq!(
        new::<TokenClassifier>(),
        ["classifier.weight", "classifier.bias"]
    );
    assert_eq!(
        new::<QuestionAnswerer>(),
        ["qa_outputs.weight", "qa_outputs.bias"]
    );
    assert!(new::<MaskedLm>().is_empty());
}

/// The deviations and the bound of transformers' `_init_weights`: 1/√H for the last layer of a head, `initializer_range` for
/// others, divided by √(2·L) where a product is added to a layer's input, and nothing beyond two deviations.
#[test]
fn new_weights_are_those_of_transformers() {
    let device = Device::flex();
    let options = LoadOptions::new().num_labels(200).seed(7);
    let loaded: checkpoint::LoadedNetwork<SequenceClassifier> =
        checkpoint::load_network_as(&folder("modernbert-masked"), &options, &device)
            .expect("the fixture loads");
    let check = |network: &SequenceClassifier, name: &str, deviation: f64| {
        let values = named_values(network).into_iter();
        let found = values.filter(|it| it.0 == name).map(|it| it.1).next();
        let values = as_f64(found.unwrap_or_else(|| panic!("no {name}")));
        let most = values.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        assert!(most <= 2.0 * deviation + 1e-6, "{name}: {most}");
        let square = values.iter().map(|it| it * it).sum::<f64>() / values.len() as f64;
        // What is left of the variance within two deviations; the weights are few.
        let share = square.sqrt() / deviation / 0.7737_f64.sqrt();
        assert!((share - 1.0).abs() < 0.15, "{name}: {share}");
    };
    check(&loaded.network, "classifier.weight", 1.0 / 16.0_f64.sqrt());
    let new = SequenceClassifier::init(&loaded.config, 3, &device).expect("valid sizes");
    for (name, deviation) in [
        ("bert.encoder.layer.1.attention.self.qkv.weight", 0.02),
        ("bert.encoder.layer.1.intermediate.dense.weight", 0.02),
        (
            "bert.encoder.layer.1.output.dense.weight",
            0.02 / 8.0_f64.sqrt(),
        ),
        (
            "bert.encoder.layer.1.attention.output.dense.weight",
            0.02 / 8.0_f64.sqrt(),
        ),
        ("bert.pooler.dense.weight", 0.02 / 8.0_f64.sqrt()),
        ("classifier.weight", 0.25),
    ] {
        check(&new, name, deviation);
    }
}

/// An adapter on the layer for queries, keys and values, which BERT's names of the three mean, too.
#[test]
fn adapters_change_nothing_at_first_and_are_merged() {
    let device = Device::flex();
    let loaded = loaded::<SequenceClassifier>("modernbert", &device);
    let layers = lora::candidates(&loaded.network, &loaded.config);
    let meant = |target: &str| -> Vec<&str> {
        let meant = layers.iter().filter(|it| it.is_meant_by(target));
        meant.map(|it| it.in_file.as_str()).collect()
    };
    let all: Vec<String> = (0..4)
        .map(|layer| format!("model.layers.{layer}.attn.Wqkv"))
        .collect();
    for target in [
        "query",
        "value",
        "qkv",
        "Wqkv",
        "attention.self.qkv",
        "attn.Wqkv",
    ] {
        assert_eq!(meant(target), all, "{target}");
    }
    assert_eq!(meant("mlp.Wi").len(), 4);
    let mut config = loaded.config.clone();
    config.lora = Some(LoraConfig {
        rank: 2,
        alpha: 6.0,
        dropout: 0.0,
        targets: vec!["query".to_owned(), "value".to_owned()],
        modules: (0..4)
            .map(|it| format!("bert.encoder.layer.{it}.attention.self.qkv"))
            .collect(),
        seed: 7,
        base: "a model".to_owned(),
        trained: BTreeSet::new(),
    });
    let case = Case::read(&folder("modernbert").join("case.safetensors"));
    let logits = |network: &SequenceClassifier| {
        as_f64(
            network
                .forward(batch(&case, &device), Mode::Eval)
                .into_data(),
        )
    };
    let before = logits(&loaded.network);
    let adapted = lora::with_adapters(&loaded.network, &config, HashMap::new());
    assert_eq!(logits(&adapted), before);
    let values: HashMap<String, Vec<f32>> = named_values(&adapted)
        .into_iter()
        .filter(|(name, _)| name.ends_with("lora_B"))
        .map(|(name, data)| {
            (
                name,
                (0..data.num_elements())
                    .map(|it| (it % 5) as f32 * 0.1)
                    .collect(),
            )
        })
        .collect();
    assert_eq!(values.len(), 4);
    let adapted = lora::with_adapters(&adapted, &config, values);
    let merged = lora::merged(&adapted, &config).expect("values are there");
    let (changed, merged_logits) = (logits(&adapted), logits(&merged));
    assert!(difference(&changed, &before).0 > 1e-2);
    assert!(difference(&changed, &merged_logits).0 < 1e-5);
    assert_eq!(merged.num_params(), loaded.network.num_params());
    // PEFT finds the layer by its name in the file.
    let copy = tempfile::tempdir().expect("a folder");
    let tokenizer = stratoscope_bert::BertTokenizer::from_folder(&folder("modernbert"));
    checkpoint::save(
        copy.path(),
        &adapted,
        &config,
        &tokenizer.expect("it is read"),
    )
    .expect("it is saved");
    let file = std::fs::read_to_string(copy.path().join("adapter_config.json")).expect("the file");
    let file: serde_json::Value = serde_json::from_str(&file).expect("it is JSON");
    let targets: Vec<&str> = file["target_modules"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    assert_eq!(targets, all);
}

/// The classifier on the pretraining's body.
#[test]
fn transformers_reads_a_modernbert_that_we_write() {
    check_reading("modernbert-masked", "ModernBertForSequenceClassification");
}

/// Under a mixed policy the logits are those of float32 but for the rounding.
#[test]
fn sixteen_bits_are_near() {
    check_sixteen_bits("modernbert");
}
