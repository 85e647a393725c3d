//! ALBERT beside what transformers computes (`tests/parity/families/make_albert.py`): the output of each of the three places where
//! its one layer is computed, the loss and every gradient, which is a sum over the places; and every way through the layers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use burn::tensor::{Device, Int, Tensor};
use stratoscope_bert::config::Gelu;
use stratoscope_bert::encoder::EncoderLayer;
use stratoscope_bert::mode::with_dropout_rate;
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::taps::Taps;
use stratoscope_bert::{
    BertTokenizer, Family, LoraConfig, Mode, SequenceClassifier, lora, named_parameters,
};
use stratoscope_data::Tokenize;

use crate::beside_transformers::{
    batch, check_classifier, check_masked, check_reading, check_sixteen_bits, folder, loaded, read,
};
use crate::fixtures::{Case, as_f64};
use crate::parity::loss;

const LAYERS: usize = 3;
const TRAIN: Mode = Mode::Train {
    seed: 3,
    step: 5,
    replica: 0,
};

/// The name of a parameter in the file.
fn in_file(parameter: &str) -> String {
    let names = [
        ("bert.pooler.dense", "albert.pooler"),
        (
            "bert.embeddings_project",
            "albert.encoder.embedding_hidden_mapping_in",
        ),
        (
            "bert.encoder.layer.0",
            "albert.encoder.albert_layer_groups.0.albert_layers.0",
        ),
        ("attention.self", "attention"),
        ("attention.output", "attention"),
        ("intermediate.dense", "ffn"),
        ("output.dense", "ffn_output"),
        ("output.LayerNorm", "full_layer_layer_norm"),
        ("cls.predictions.transform", "predictions"),
        ("cls.predictions", "predictions"),
        ("bert.embeddings", "albert.embeddings"),
    ];
    let mut name = parameter.to_owned();
    for (ours, own) in names {
        name = name.replacen(ours, own, 1);
    }
    name
}

#[test]
fn layers_and_gradients_are_those_of_transformers() {
    check_classifier("albert", LAYERS, &Device::flex(), in_file);
}

/// One test, since the first step compiles every kernel again.
#[test]
fn layers_and_gradients_are_those_of_transformers_on_gpu() {
    if let Some(device) = stratoscope_gpu::testing::device() {
        check_classifier("albert", LAYERS, &device, in_file);
    }
}

#[test]
fn the_masked_language_model_has_the_gradients_of_transformers() {
    check_masked("albert-masked", in_file);
}

/// The first token's path through the last layer, and layers that are computed again, have the bits of one pass, with and
/// without adapters: a gradient is the sum of those of all places.
#[test]
fn every_way_through_the_layers_has_the_same_bits() {
    let case = Case::read(&folder("albert").join("case.safetensors"));
    let bits = |x: Tensor<2>| -> Vec<u32> {
        let data = x.into_data();
        data.iter::<f32>().map(f32::to_bits).collect()
    };
    let device = Device::flex();
    let network = loaded::<SequenceClassifier>("albert", &device).network;
    let whole = network
        .forward_all(batch(&case, &device), Mode::Eval)
        .logits;
    let first = network.forward(batch(&case, &device), Mode::Eval);
    assert_eq!(bits(first), bits(whole));
    let device = device.autodiff();
    let plain = loaded::<SequenceClassifier>("albert", &device);
    for network in [plain.network.clone(), adapted(&plain)] {
        let gradients = |recompute: bool| {
            let pass = || network.forward(batch(&case, &device), TRAIN);
            let (logits, recorded) = Recorded::during(recompute, pass);
            assert_eq!(recorded.parts(), if recompute { LAYERS } else { 0 });
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
        assert!(others.is_empty(), "{others:?}");
    }
}

/// With adapters on queries and values, whose inputs have dropout.
fn adapted(plain: &stratoscope_bert::LoadedNetwork<SequenceClassifier>) -> SequenceClassifier {
    let candidates = lora::candidates(&plain.network, &plain.config).into_iter();
    let asked = candidates.filter(|it| ["query", "value"].iter().any(|to| it.is_meant_by(to)));
    let modules: Vec<String> = asked.map(|it| it.module).collect();
    assert_eq!(modules.len(), 2, "one layer: {modules:?}");
    let adapters = LoraConfig {
        rank: 2,
        alpha: 4.0,
        dropout: 0.5,
        targets: vec!["query".to_owned(), "value".to_owned()],
        modules: modules.iter().cloned().collect(),
        seed: 1,
        base: "albert".to_owned(),
        trained: Default::default(),
    };
    let mut config = plain.config.clone();
    config.lora = Some(adapters);
    // B begins with zeros, with which A would have no gradient.
    let given = modules
        .iter()
        .map(|module| (format!("{module}.lora_B"), vec![0.3; 32]));
    lora::with_adapters(&plain.network, &config, given.collect())
}

/// Each place has its own dropout masks, and its own adapters' masks, though its weights are those of the others.
#[test]
fn the_masks_of_the_places_differ() {
    let case = Case::read(&folder("albert").join("case.safetensors"));
    let device = Device::flex();
    let plain = loaded::<SequenceClassifier>("albert", &device);
    for network in [plain.network.clone(), adapted(&plain)] {
        let layer = |place: usize| {
            let encoder = &network.bert.encoder;
            assert_eq!((encoder.layer.len(), encoder.depth()), (1, LAYERS));
            let output = network.forward_all(batch(&case, &device), TRAIN).bert;
            let input = match place {
                0 => output.embedded,
                place => output.hidden_states[place - 1].clone(),
            };
            // The layer at the first place, with the input of this one.
            let mask = batch(&case, &device).attention_mask;
            let first = encoder.layer[0].forward(input, mask, None, TRAIN);
            (
                as_f64(first.into_data()),
                as_f64(output.hidden_states[place].clone().into_data()),
            )
        };
        let (first, found) = layer(0);
        assert_eq!(first, found);
        for place in 1..LAYERS {
            let (first, found) = layer(place);
            assert_ne!(first, found, "{place}");
        }
    }
}

/// The feed-forward part has no dropout, also where a run asks for another rate: what it adds is that of evaluation.
#[test]
fn the_feed_forward_part_has_no_dropout() {
    let device = Device::flex();
    let network = loaded::<SequenceClassifier>("albert", &device).network;
    let EncoderLayer::PostNorm(layer) = &network.bert.encoder.layer[0] else {
        panic!("ALBERT normalizes after each half");
    };
    let input = |scale: f32| {
        let numbers = Tensor::<1, Int>::arange(0..320, &device).float();
        (numbers * scale).sin().reshape([1, 20, 16])
    };
    let added = |mode: Mode| {
        let output = || {
            layer.output.forward(
                input(0.7).repeat_dim(2, 2).narrow(2, 0, 24),
                input(0.3),
                mode,
            )
        };
        as_f64(with_dropout_rate(Some(0.5), output).into_data())
    };
    assert_eq!(added(TRAIN), added(Mode::Eval));
}

/// The taps name the places as the layers of a BERT, and rows of probabilities add up to 1 over the tokens.
#[test]
fn layers_are_seen_by_the_names_of_bert() {
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
    let case = Case::read(&folder("albert").join("case.safetensors"));
    let network = loaded::<SequenceClassifier>("albert", &device).network;
    taps.during(|| network.forward(batch(&case, &device), Mode::Eval));
    let seen = seen.lock().expect("no panic");
    let mut outputs = Vec::new();
    for layer in 0..LAYERS {
        let of = |part: &str| format!("bert.encoder.layer.{layer}.{part}");
        for part in ["attention.self", "attention.output", "output"] {
            let name = of(part);
            let (shape, _) = seen.get(&name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(*shape, [4, 24, 16], "{name}");
        }
        let (shape, values) = &seen[&of("attention.self.probabilities")];
        assert_eq!(*shape, [4, 2, 24, 24]);
        for row in values.chunks(24) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        outputs.push(&seen[&of("output")].1);
    }
    assert!(outputs[0] != outputs[1] && outputs[1] != outputs[2]);
}

/// The fields of `albert/albert-base-v2`, as its file has them, and those that a file leaves out.
#[test]
fn the_fields_of_published_files_are_read() {
    let config = read(
        r#"{"architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 2,
            "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3, "gap_size": 0,
            "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "hidden_size": 768, "initializer_range": 0.02,
            "inner_group_num": 1, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
            "model_type": "albert", "net_structure_type": 0, "num_attention_heads": 12, "num_hidden_groups": 1,
            "num_hidden_layers": 12, "num_memory_blocks": 0, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30000}"#,
    )
    .expect("it is read");
    assert_eq!((config.family, config.gelu), (Family::Albert, Gelu::Tanh));
    assert_eq!((config.embedding_width(), config.hidden_size), (128, 768));
    let rates = (config.hidden_dropout_prob, config.classifier_dropout());
    assert_eq!(rates, (0.0, 0.1));
    let absent = read(r#"{"model_type": "albert"}"#).expect("it is read");
    let sizes = (absent.hidden_size, absent.embedding_size);
    assert_eq!(sizes, (4096, Some(128)));
    assert_eq!(
        (absent.num_hidden_layers, absent.num_attention_heads),
        (12, 64)
    );
    assert_eq!(
        (absent.intermediate_size, absent.vocab_size),
        (16_384, 30_000)
    );
    assert_eq!(
        (absent.gelu, absent.classifier_dropout()),
        (Gelu::Tanh, 0.1)
    );
    // The dense layer after the embeddings is there even if it changes no length. The first version has the exact GELU.
    let wide = r#"{"model_type": "albert", "hidden_size": 128, "embedding_size": 128, "hidden_act": "gelu"}"#;
    let wide = read(wide).expect("it is read");
    assert_eq!((wide.embedding_size, wide.gelu), (Some(128), Gelu::Exact));
    let text = wide.without_dropout().to_json("BertForMaskedLM");
    assert!(text.contains("\"AlbertForMaskedLM\""), "{text}");
    assert!(text.contains("\"hidden_act\": \"gelu\""), "{text}");
    assert!(text.contains("\"classifier_dropout_prob\": 0.0"), "{text}");
}

#[test]
fn what_is_not_computed_is_refused() {
    let with = |field: &str| read(&format!(r#"{{"model_type": "albert", {field}}}"#));
    for (field, code) in [
        (r#""num_hidden_groups": 2"#, "SC0903"),
        (r#""num_hidden_groups": 0"#, "SC0903"),
        (r#""inner_group_num": 2"#, "SC0903"),
        (r#""inner_group_num": "many""#, "SC0903"),
        (r#""hidden_act": "relu""#, "SC0903"),
        (r#""hidden_act": 3"#, "SC0903"),
        (r#""architectures": ["BertModel"]"#, "SC0903"),
        (r#""position_embedding_type": "relative_key""#, "SC0903"),
        (r#""embedding_size": 0"#, "SC0909"),
        (r#""embedding_size": 99999999999"#, "SC0909"),
        (r#""num_hidden_layers": 0"#, "SC0909"),
        (r#""num_hidden_layers": 5000"#, "SC0909"),
        (r#""num_attention_heads": 63"#, "SC0909"),
        (r#""classifier_dropout_prob": 1.0"#, "SC0909"),
    ] {
        let refused = with(field).expect_err(field);
        assert!(refused.starts_with(code), "{field}: {refused}");
    }
    assert!(with(r#""num_hidden_groups": null"#).is_ok());
}

/// Unigrams behind several normalizers, among them a table of characters. Without `tokenizer_config.json` the special tokens
/// are those of the vocabulary: BERT's, but for `<pad>` and `<unk>`.
#[test]
fn the_tokenizer_needs_no_names_of_special_tokens() {
    let whole = BertTokenizer::from_folder(&folder("albert")).expect("it is read");
    let copy = tempfile::tempdir().expect("a folder");
    let file = folder("albert").join("tokenizer.json");
    std::fs::copy(file, copy.path().join("tokenizer.json")).expect("room");
    let alone = BertTokenizer::from_folder(copy.path()).expect("it is read");
    for tokenizer in [&whole, &alone] {
        let ids = (tokenizer.pad_id(), tokenizer.unk_id(), tokenizer.mask_id());
        assert_eq!(ids, (0, 1, Some(4)));
    }
    // Quotation marks, letters of another width, accents, capitals, and a dash of the table.
    let same = [
        ("``mail'' Server", "\"mail\" server"),
        ("\u{ff2d}\u{e1}il", "mail"),
        ("a \u{2013} b", "a - b"),
    ];
    for (text, plain) in same {
        let ids = |text: &str| alone.ids(text).expect("it has tokens");
        assert_eq!(ids(text), ids(plain), "{text}");
    }
    let pair = alone.encode("mail", Some("a server"), 24).expect("tokens");
    assert!(pair.type_ids.contains(&1), "{pair:?}");
}

#[test]
fn transformers_reads_what_we_write() {
    check_reading("albert-masked", "AlbertForSequenceClassification");
}

/// Under a mixed policy the logits are those of float32 but for the rounding.
#[test]
fn sixteen_bits_are_near() {
    check_sixteen_bits("albert");
}
