//! MPNet and DeBERTa-v3 beside what transformers computes (`tests/parity/families/make_relative.py`): every layer's output, the
//! loss and every gradient, over more tokens than distances have buckets of their own for; and every way through the layers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use burn::tensor::{Device, Tensor};
use stratoscope_bert::config::{DistanceVectors, Relative};
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::taps::Taps;
use stratoscope_bert::{Family, Mode, SequenceClassifier, named_parameters};

use crate::beside_transformers::{
    batch, check_classifier, check_masked, check_reading, check_sixteen_bits, folder, loaded, read,
};
use crate::fixtures::Case;
use crate::parity::loss;

const FAMILIES: [&str; 2] = ["mpnet", "deberta"];
const TRAIN: Mode = Mode::Train {
    seed: 3,
    step: 5,
    replica: 0,
};

/// The name of a parameter of a classifier or of a masked language model in the file.
fn in_file(family: &str, parameter: &str) -> String {
    let names: &[(&str, &str)] = match family {
        "mpnet" => &[
            ("bert.pooler.dense", "classifier.dense"),
            ("attention.self.query", "attention.attn.q"),
            ("attention.self.key", "attention.attn.k"),
            ("attention.self.value", "attention.attn.v"),
            ("attention.output.dense", "attention.attn.o"),
            ("attention.output.LayerNorm", "attention.LayerNorm"),
            ("relative.table", "relative_attention_bias"),
            ("cls.predictions.transform.LayerNorm", "lm_head.layer_norm"),
            ("cls.predictions.transform.dense", "lm_head.dense"),
            ("cls.predictions", "lm_head"),
            ("bert.", "mpnet."),
        ],
        _ => &[
            ("bert.pooler", "pooler"),
            (".query", ".query_proj"),
            (".key", ".key_proj"),
            (".value", ".value_proj"),
            ("relative.table", "rel_embeddings"),
            ("encoder.relative.LayerNorm", "encoder.LayerNorm"),
            ("bert.", "deberta."),
        ],
    };
    let mut name = parameter.to_owned();
    if let Some(part) = name
        .strip_prefix("classifier.")
        .filter(|_| family == "mpnet")
    {
        return format!("classifier.out_proj.{part}");
    }
    for (ours, own) in names {
        name = name.replacen(ours, own, 1);
    }
    name
}

#[test]
fn layers_and_gradients_are_those_of_transformers() {
    for family in FAMILIES {
        check_classifier(family, 2, &Device::flex(), |it| in_file(family, it));
    }
}

/// One test, since the first step compiles every kernel anew.
#[test]
fn layers_and_gradients_are_those_of_transformers_on_gpu() {
    if let Some(device) = stratoscope_gpu::testing::device() {
        for family in FAMILIES {
            check_classifier(family, 2, &device, |it| in_file(family, it));
        }
    }
}

#[test]
fn the_masked_language_models_have_the_gradients_of_transformers() {
    for family in FAMILIES {
        check_masked(&format!("{family}-masked"), |it| in_file(family, it));
    }
}

/// The first token's path through the last layer, and layers that are computed again, have the bits of one pass: the table's
/// gradient is the sum of those of all layers.
#[test]
fn every_way_through_the_layers_has_the_same_bits() {
    for family in FAMILIES {
        let case = Case::read(&folder(family).join("case.safetensors"));
        let bits = |x: Tensor<2>| -> Vec<u32> {
            let data = x.into_data();
            data.iter::<f32>().map(f32::to_bits).collect()
        };
        let device = Device::flex();
        let network = loaded::<SequenceClassifier>(family, &device).network;
        let whole = network
            .forward_all(batch(&case, &device), Mode::Eval)
            .logits;
        let first = network.forward(batch(&case, &device), Mode::Eval);
        assert_eq!(bits(first), bits(whole), "{family}");
        let device = device.autodiff();
        let network = loaded::<SequenceClassifier>(family, &device).network;
        let gradients = |recompute: bool| {
            let pass = || network.forward(batch(&case, &device), TRAIN);
            let (logits, recorded) = Recorded::during(recompute, pass);
            assert_eq!(recorded.parts(), if recompute { 2 } else { 0 });
            let loss = loss(logits, case.values("input.labels"));
            let gradients = recorded.backward(&loss, &network);
            let parameters = named_parameters(&network).into_iter();
            let each = parameters.map(|parameter| {
                let data = stratoscope_bert::gradient(&network, &gradients, &parameter.name);
                let data = data.unwrap_or_else(|| panic!("{} has none", parameter.name));
                let bits: Vec<u32> = data.iter::<f32>().map(f32::to_bits).collect();
                (parameter.name, bits)
            });
            each.collect::<HashMap<_, _>>()
        };
        let (again, kept) = (gradients(true), gradients(false));
        let others = kept.iter().filter(|(name, bits)| again[*name] != **bits);
        let others: Vec<&String> = others.map(|it| it.0).collect();
        assert!(others.is_empty(), "{family}: {others:?}");
    }
}

/// The taps name the layers as in BERT, and rows of probabilities add up to 1 over the tokens.
#[test]
fn layers_are_seen_by_the_names_of_bert() {
    for family in FAMILIES {
        let seen = Arc::new(Mutex::new(HashMap::new()));
        let sink = seen.clone();
        let taps = Taps::new(
            |_| true,
            move |name, shape, x| {
                let values: Vec<f32> = x.into_data().iter::<f32>().collect();
                let mut seen = sink.lock().expect("no panic");
                seen.insert(name.to_owned(), (shape.to_vec(), values));
            },
        );
        let device = Device::flex();
        let case = Case::read(&folder(family).join("case.safetensors"));
        let network = loaded::<SequenceClassifier>(family, &device).network;
        taps.during(|| network.forward(batch(&case, &device), Mode::Eval));
        let seen = seen.lock().expect("no panic");
        for layer in 0..2 {
            let of = |part: &str| format!("bert.encoder.layer.{layer}.{part}");
            for part in ["self", "self.query", "self.key", "self.value", "output"] {
                let name = of(&format!("attention.{part}"));
                let (shape, _) = seen.get(&name).unwrap_or_else(|| panic!("no {name}"));
                assert_eq!(*shape, [4, 24, 16], "{family} {name}");
            }
            let (shape, values) = &seen[&of("attention.self.probabilities")];
            assert_eq!(*shape, [4, 2, 24, 24]);
            for row in values.chunks(24) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
            // The last text has 3 tokens.
            let last = &values[values.len() - 24..];
            assert!(last[3..].iter().all(|it| *it == 0.0));
        }
    }
}

/// The fields of `microsoft/deberta-v3-base` and of `sentence-transformers/all-mpnet-base-v2`, as their files have them.
#[test]
fn the_fields_of_published_files_are_read() {
    let config = read(
        r#"{"model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
            "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 512,
            "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true,
            "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7, "max_relative_positions": -1, "position_biased_input": false,
            "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 0, "vocab_size": 128100}"#,
    )
    .expect("it is read");
    assert_eq!(config.family, Family::Deberta);
    assert_eq!((config.type_vocab_size, config.layer_norm_eps), (1, 1e-7));
    assert_eq!(
        (config.max_position_embeddings, config.pad_token_id),
        (512, Some(0))
    );
    let vectors = DistanceVectors {
        span: 256,
        largest_distance: Some(512),
        content_to_position: true,
        position_to_content: true,
        normalized: true,
    };
    assert_eq!(config.relative, Some(Relative::Vectors(vectors)));
    let config = read(
        r#"{"architectures": ["MPNetForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2,
            "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
            "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "mpnet",
            "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "relative_attention_num_buckets": 32,
            "vocab_size": 30527}"#,
    )
    .expect("it is read");
    assert_eq!(config.family, Family::MpNet);
    assert_eq!(
        (config.max_position_embeddings, config.type_vocab_size),
        (512, 1)
    );
    assert_eq!(config.relative, Some(Relative::Scores));
}

#[test]
fn what_is_not_computed_is_refused() {
    let usual = r#""relative_attention": true, "share_att_key": true, "position_biased_input": false, "hidden_size": 48"#;
    let with = |field: &str| {
        read(&format!(
            r#"{{"model_type": "deberta-v2", {usual}, "num_attention_heads": 4, {field}}}"#
        ))
    };
    for (field, code) in [
        (r#""relative_attention": false"#, "SC0903"),
        (r#""share_att_key": false"#, "SC0903"),
        (r#""position_biased_input": true"#, "SC0903"),
        (r#""legacy": false"#, "SC0903"),
        (r#""type_vocab_size": 2"#, "SC0903"),
        (r#""conv_kernel_size": 3"#, "SC0903"),
        (r#""pooler_dropout": 0.1"#, "SC0903"),
        (r#""pooler_hidden_act": "tanh""#, "SC0903"),
        (r#""embedding_size": 24"#, "SC0903"),
        (r#""pos_att_type": "p2p""#, "SC0903"),
        (r#""pos_att_type": 3"#, "SC0903"),
        (r#""norm_rel_ebd": "batch_norm""#, "SC0903"),
        (r#""position_buckets": 1"#, "SC0909"),
        (r#""position_buckets": "many""#, "SC0909"),
        (r#""max_relative_positions": 99999999999"#, "SC0909"),
    ] {
        let refused = with(field).expect_err(field);
        assert!(refused.starts_with(code), "{field}: {refused}");
    }
    let plain = with(r#""pos_att_type": ["c2p"]"#).expect("it is read");
    let Some(Relative::Vectors(vectors)) = plain.relative else {
        panic!("it has vectors of distances");
    };
    assert_eq!((vectors.span, vectors.largest_distance), (512, None));
    assert!(vectors.content_to_position && !vectors.position_to_content && !vectors.normalized);
    // Absent, they have another value.
    let absent = read(r#"{"model_type": "deberta-v2"}"#).expect_err("no relative attention");
    assert!(absent.starts_with("SC0903"), "{absent}");
    let mpnet = |count: &str| {
        let field = format!(r#""relative_attention_num_buckets": {count}"#);
        read(&format!(r#"{{"model_type": "mpnet", {field}}}"#))
    };
    assert!(
        mpnet("16")
            .expect_err("a table of 16")
            .starts_with("SC0903")
    );
    assert!(mpnet("null").is_ok());
}

#[test]
fn transformers_reads_what_we_write() {
    check_reading("mpnet-masked", "MPNetForSequenceClassification");
    check_reading("deberta-masked", "DebertaV2ForSequenceClassification");
}

/// Under a mixed policy the logits are those of float32 but for the rounding.
#[test]
fn sixteen_bits_are_near() {
    for family in FAMILIES {
        check_sixteen_bits(family);
    }
}
