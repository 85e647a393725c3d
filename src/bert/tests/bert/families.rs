//! Tiny models of the other families, beside what transformers computes with them (`tests/parity/families/make.py`): token
//! ids, outputs, and a saved copy that has the file's tensors.

use std::path::Path;

use burn::tensor::{Device, Tensor};
use serde_json::Value;
use stratoscope_bert::checkpoint::{self, LoadOptions, TensorFile};
use stratoscope_bert::{
    BatchTensors, BertNetwork, BertTokenizer, MaskedLm, Mode, MultipleChoice, Origin,
    QuestionAnswerer, SequenceClassifier, TokenClassifier,
};
use stratoscope_data::Tokenize;

use crate::fixtures::{as_f64, parity};

const FORWARD: f64 = 1e-5;
const LONGEST: usize = 24;

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file");
    serde_json::from_str(&text).expect("it is JSON")
}

/// A list of lists as numbers.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().expect("a number")],
    }
}

/// The batch of a case, by our tokenizer.
fn batch(case: &Value, tokenizer: &BertTokenizer, device: &Device) -> BatchTensors {
    let texts = case["first"].as_array().expect("texts");
    let encoded: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(row, text)| {
            let pair = case["second"][row].as_str();
            let text = text.as_str().expect("a text");
            let encoded = tokenizer.encode(text, pair, LONGEST);
            encoded.expect("it has tokens")
        })
        .collect();
    let length = encoded.iter().map(|it| it.ids.len()).max().unwrap_or(0);
    let (mut ids, mut mask, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for it in &encoded {
        for at in 0..length {
            ids.push(
                it.ids
                    .get(at)
                    .map_or(i64::from(tokenizer.pad_id()), |&id| id.into()),
            );
            mask.push(if at < it.ids.len() { 1.0 } else { 0.0 });
            types.push(it.type_ids.get(at).map_or(0, |&id| id.into()));
        }
    }
    let expected: Vec<f64> = numbers(&case["ids"]);
    assert_eq!(
        ids.iter().map(|&id| id as f64).collect::<Vec<_>>(),
        expected
    );
    let expected = match case.get("types") {
        Some(types) => numbers(types),
        // There are no segments.
        None => vec![0.0; types.len()],
    };
    let found: Vec<f64> = types.iter().map(|&id: &i64| id as f64).collect();
    assert_eq!(found, expected, "segments");
    BatchTensors::from_values(ids, mask, types, [encoded.len(), length], device)
}

/// The outputs in the order of the file; of padding, nothing.
type Forward<N> = fn(&N, BatchTensors) -> Vec<f64>;

/// The outputs of every case, which are compared with the file's.
fn outputs<N: BertNetwork>(
    name: &str,
    loaded: &checkpoint::Loaded<N>,
    is_by_token: bool,
    forward: Forward<N>,
) -> Vec<Vec<f64>> {
    let folder = parity("families").join(name);
    let device = Device::flex();
    let mut outputs = Vec::new();
    for case in json(&folder.join("cases.json")).as_array().expect("cases") {
        let found = forward(&loaded.network, batch(case, &loaded.tokenizer, &device));
        let expected = numbers(&case["outputs"]);
        assert_eq!(found.len(), expected.len(), "{name}");
        let mask = numbers(&case["mask"]);
        let width = match is_by_token {
            true => expected.len() / mask.len(),
            false => expected.len(),
        };
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let counts = !is_by_token || mask[at / width] == 1.0;
            let difference = (found - expected).abs();
            assert!(
                !counts || difference <= FORWARD,
                "{name} {at}: {found} {expected}"
            );
        }
        outputs.push(found);
    }
    outputs
}

fn check<N: BertNetwork>(name: &str, is_by_token: bool, forward: Forward<N>) {
    let folder = parity("families").join(name);
    let device = Device::flex();
    let load = |folder: &Path| checkpoint::load_as::<N>(folder, &LoadOptions::new(), &device);
    let loaded = load(&folder).expect("it is read");
    let outputs = outputs(name, &loaded, is_by_token, forward);

    // What is saved has the names, the shapes and the values of the original, also in rows that no model uses.
    let copy = tempfile::tempdir().expect("a folder");
    checkpoint::save(
        copy.path(),
        &loaded.network,
        &loaded.config,
        &loaded.tokenizer,
    )
    .expect("it is saved");
    let (original, saved) = (
        TensorFile::open_in(&folder).expect("the original"),
        TensorFile::open_in(copy.path()).expect("the copy"),
    );
    let names: Vec<&str> = original.names().collect();
    assert_eq!(names, saved.names().collect::<Vec<_>>());
    for name in names {
        assert_eq!(original.shape(name), saved.shape(name), "{name}");
        let values = |file: &TensorFile| file.values(name).expect("floats").expect("it is there");
        let (original, saved) = (values(&original), values(&saved));
        assert_eq!(original, saved, "{name}");
    }
    let (before, after) = (
        json(&folder.join("config.json")),
        json(&copy.path().join("config.json")),
    );
    for (field, value) in before.as_object().expect("an object") {
        assert_eq!(value, &after[field], "{field}");
    }
    assert!(after.get("type_vocab_size").is_none() || before.get("type_vocab_size").is_some());
    let again = load(copy.path()).expect("the copy is read");
    for (case, outputs) in json(&folder.join("cases.json"))
        .as_array()
        .expect("cases")
        .iter()
        .zip(outputs)
    {
        let found = forward(&again.network, batch(case, &again.tokenizer, &device));
        assert_eq!(found, outputs, "the copy computes the same bits");
    }
}

#[test]
fn distilbert_classifies() {
    check::<SequenceClassifier>("distilbert", false, |network, batch| {
        as_f64(network.forward(batch, Mode::Eval).into_data())
    });
}

#[test]
fn roberta_classifies() {
    check::<SequenceClassifier>("roberta", false, |network, batch| {
        as_f64(network.forward(batch, Mode::Eval).into_data())
    });
}

#[test]
fn xlm_roberta_answers() {
    check::<QuestionAnswerer>("xlm-roberta", true, |network, batch| {
        // [B, 2, S] → [B, S, 2], as the file has it.
        let logits = network.forward(batch, Mode::Eval).swap_dims(1, 2);
        as_f64(logits.into_data())
    });
}

#[test]
fn camembert_tags() {
    check::<TokenClassifier>("camembert", true, |network, batch| {
        as_f64(network.forward(batch, Mode::Eval).into_data())
    });
}

#[test]
fn electra_classifies() {
    check::<SequenceClassifier>("electra", false, |network, batch| {
        as_f64(network.forward(batch, Mode::Eval).into_data())
    });
}

/// The logits of each token of a batch for the first 12 tokens of the vocabulary: the files have these.
fn first_tokens(network: &MaskedLm, batch: BatchTensors) -> Vec<f64> {
    let tokens: usize = batch.input_ids.dims().iter().product();
    let places = Tensor::arange(0..tokens as i64, &Device::flex());
    let logits = network
        .forward(batch, places, Mode::Eval)
        .slice([0..tokens, 0..12]);
    as_f64(logits.into_data())
}

#[test]
fn the_generator_of_electra_predicts_tokens() {
    check::<MaskedLm>("electra-generator", true, first_tokens);
}

#[test]
fn electra_chooses() {
    check::<MultipleChoice>("electra-choice", false, |network, batch| {
        let [choices, _] = batch.input_ids.dims();
        as_f64(network.forward(batch, choices, Mode::Eval).into_data())
    });
    // A summary of another kind is not computed.
    let copy = tempfile::tempdir().expect("a folder");
    let folder = parity("families").join("electra-choice");
    for file in std::fs::read_dir(&folder).expect("a folder").flatten() {
        std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("room");
    }
    let config = std::fs::read_to_string(folder.join("config.json")).expect("the file");
    let config = config.replace("\"summary_type\": \"first\"", "\"summary_type\": \"mean\"");
    std::fs::write(copy.path().join("config.json"), config).expect("room");
    let options = LoadOptions::new();
    let load = checkpoint::load_as::<MultipleChoice>(copy.path(), &options, &Device::flex());
    let problem = load.expect_err("it is refused");
    assert_eq!(problem.code, "SC0903", "{problem}");
    assert!(problem.message.contains("summary_type"), "{problem}");
    checkpoint::load(copy.path(), &options, &Device::flex()).expect("other heads have none");
}

#[test]
fn modernbert_classifies() {
    // Of the first token, and of the mean over all.
    for name in ["modernbert", "modernbert-mean"] {
        check::<SequenceClassifier>(name, false, |network, batch| {
            as_f64(network.forward(batch, Mode::Eval).into_data())
        });
    }
}

#[test]
fn modernbert_predicts_tokens() {
    check::<MaskedLm>("modernbert-masked", true, first_tokens);
}

#[test]
fn modernbert_tags() {
    check::<TokenClassifier>("modernbert-tokens", true, |network, batch| {
        as_f64(network.forward(batch, Mode::Eval).into_data())
    });
}

#[test]
fn modernbert_answers() {
    check::<QuestionAnswerer>("modernbert-questions", true, |network, batch| {
        let logits = network.forward(batch, Mode::Eval).swap_dims(1, 2);
        as_f64(logits.into_data())
    });
}

#[test]
fn modernbert_chooses() {
    check::<MultipleChoice>("modernbert-choice", false, |network, batch| {
        let [choices, _] = batch.input_ids.dims();
        as_f64(network.forward(batch, choices, Mode::Eval).into_data())
    });
}

#[test]
fn mpnet_deberta_and_albert_have_every_head() {
    for family in ["mpnet", "deberta", "albert"] {
        check::<SequenceClassifier>(family, false, |network, batch| {
            as_f64(network.forward(batch, Mode::Eval).into_data())
        });
        check::<MaskedLm>(&format!("{family}-masked"), true, first_tokens);
        check::<TokenClassifier>(&format!("{family}-tokens"), true, |network, batch| {
            as_f64(network.forward(batch, Mode::Eval).into_data())
        });
        check::<QuestionAnswerer>(&format!("{family}-questions"), true, |network, batch| {
            let logits = network.forward(batch, Mode::Eval).swap_dims(1, 2);
            as_f64(logits.into_data())
        });
        check::<MultipleChoice>(&format!("{family}-choice"), false, |network, batch| {
            let [choices, _] = batch.input_ids.dims();
            as_f64(network.forward(batch, choices, Mode::Eval).into_data())
        });
    }
}

/// Another head on the discriminator's body, whose own head is listed as not used; and what is saved is an ELECTRA.
#[test]
fn the_discriminator_of_electra_gets_a_head() {
    let folder = parity("families").join("electra-discriminator");
    let (options, device) = (LoadOptions::new().num_labels(3), Device::flex());
    let loaded = checkpoint::load_as::<TokenClassifier>(&folder, &options, &device);
    let loaded = loaded.expect("it is read");
    assert_eq!(
        loaded.config.embedding_size, None,
        "the tables are as wide as the layers"
    );
    outputs("electra-discriminator", &loaded, true, |network, batch| {
        let output = network.forward_all(batch, Mode::Eval);
        as_f64(output.bert.last_hidden_state().into_data())
    });
    let unused = loaded.report.of(Origin::Unused);
    let unused: Vec<&str> = unused.map(|it| it.name.as_str()).collect();
    assert_eq!(unused.len(), 4, "{unused:?}");
    assert!(
        unused
            .iter()
            .all(|it| it.starts_with("discriminator_predictions."))
    );
    let new = loaded.report.of(Origin::New);
    assert!(
        new.map(|it| it.name.as_str())
            .eq(["classifier.weight", "classifier.bias"])
    );

    let options = LoadOptions::new().num_labels(2);
    let classifier = checkpoint::load(&folder, &options, &device).expect("it is read");
    let copy = tempfile::tempdir().expect("a folder");
    checkpoint::save_network(copy.path(), &classifier.network, &classifier.config)
        .expect("it is saved");
    let saved = TensorFile::open_in(copy.path()).expect("the copy");
    for (name, shape) in [
        ("classifier.dense.weight", &[16, 16][..]),
        ("classifier.out_proj.weight", &[2, 16]),
        ("electra.embeddings.word_embeddings.weight", &[300, 16]),
    ] {
        assert_eq!(saved.shape(name), Some(shape), "{name}");
    }
    let config = json(&copy.path().join("config.json"));
    assert_eq!(
        config["architectures"][0],
        "ElectraForSequenceClassification"
    );
    assert_eq!(config["embedding_size"], 16);
}

/// The body of a checkpoint for another task is taken, and its head is not.
#[test]
fn a_body_gets_another_head() {
    for name in [
        "distilbert",
        "roberta",
        "camembert",
        "electra",
        "modernbert",
        "mpnet",
        "deberta",
        "albert",
    ] {
        let folder = parity("families").join(name);
        let options = LoadOptions::new().num_labels(5);
        let loaded = checkpoint::load_as::<QuestionAnswerer>(&folder, &options, &Device::flex());
        let report = loaded.expect("it is read").report.to_string();
        assert!(report.contains("classifier"), "{report}");
        assert!(report.contains("qa_outputs"), "{report}");
    }
}
