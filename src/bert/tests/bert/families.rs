//! Tiny models of the other families, beside what transformers computes with them (`tests/parity/families/make.py`): token
//! ids, outputs, and a saved copy that has the file's tensors.

use std::path::Path;

use burn::tensor::Device;
use serde_json::Value;
use stratoscope_bert::checkpoint::{self, LoadOptions, TensorFile};
use stratoscope_bert::{
    BatchTensors, BertNetwork, BertTokenizer, Mode, QuestionAnswerer, SequenceClassifier,
    TokenClassifier,
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
            tokenizer.encode(text.as_str().expect("a text"), pair, LONGEST)
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
    assert!(
        types.iter().all(|&it: &i64| it == 0),
        "there are no segments"
    );
    BatchTensors::from_values(ids, mask, types, [encoded.len(), length], device)
}

/// The outputs in the order of the file; of padding, nothing.
type Forward<N> = fn(&N, BatchTensors) -> Vec<f64>;

fn check<N: BertNetwork>(name: &str, is_by_token: bool, forward: Forward<N>) {
    let folder = parity("families").join(name);
    let device = Device::flex();
    let load = |folder: &Path| checkpoint::load_as::<N>(folder, &LoadOptions::new(), &device);
    let loaded = load(&folder).expect("it is read");
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

    // What is saved has the names, the shapes and, but for rows that no model uses, the values of the original.
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
        let unused = original.iter().zip(&saved).filter(|(a, b)| a != b).count();
        assert!(unused == 0 || name.contains("position_embeddings") && unused <= 2 * 16);
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

/// The body of a checkpoint for another task is taken, and its head is not.
#[test]
fn a_body_gets_another_head() {
    for name in ["distilbert", "roberta", "camembert"] {
        let folder = parity("families").join(name);
        let options = LoadOptions::new().num_labels(5);
        let loaded = checkpoint::load_as::<QuestionAnswerer>(&folder, &options, &Device::flex());
        let report = loaded.expect("it is read").report.to_string();
        assert!(report.contains("classifier"), "{report}");
        assert!(report.contains("qa_outputs"), "{report}");
    }
}
