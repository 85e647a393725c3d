//! What we write is what transformers writes: names, shapes, kinds of numbers, configuration.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use burn::tensor::Device;
use safetensors::SafeTensors;
use serde_json::Value;
use stratoscope_bert::names::named_values;
use stratoscope_bert::{BatchTensors, LoadOptions, Mode, Origin, checkpoint};
use stratoscope_data::Tokenize;

use crate::fixtures::{as_f64, difference, parity};
use crate::sources::installed_minilm;

/// Name, shape, kind and bytes of a tensor.
type Stored = (String, Vec<usize>, String, Vec<u8>);

/// Every tensor, and the `format` of the metadata.
fn tensors(folder: &Path) -> (Vec<Stored>, Option<String>) {
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> = file
        .iter()
        .map(|(name, view)| {
            let dtype = format!("{:?}", view.dtype());
            (
                name.to_owned(),
                view.shape().to_vec(),
                dtype,
                view.data().to_vec(),
            )
        })
        .collect();
    tensors.sort();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let format = metadata
        .metadata()
        .as_ref()
        .and_then(|all| all.get("format").cloned());
    (tensors, format)
}

fn config(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("config.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_saved_model_equals_the_references_file_bit_for_bit() {
    let reference = parity("tiny-bert/sequence-classification");
    let loaded =
        checkpoint::load_network(&reference, &LoadOptions::new(), &Device::flex()).unwrap();
    assert!(
        loaded
            .report
            .tensors
            .iter()
            .all(|tensor| tensor.origin == Origin::Loaded)
    );
    let folder = tempfile::tempdir().unwrap();
    checkpoint::save_network(folder.path(), &loaded.network, &loaded.config).unwrap();
    let (saved, format) = tensors(folder.path());
    assert_eq!(
        (&saved, format.as_deref()),
        (&tensors(&reference).0, Some("pt"))
    );

    // Every field of the reference's configuration, unchanged; `problem_type` is said besides.
    let (saved, reference) = (config(folder.path()), config(&reference));
    for (name, value) in reference.as_object().unwrap() {
        assert_eq!(saved.get(name), Some(value), "{name}");
    }
    let added: Vec<&String> = saved
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| reference.get(name).is_none())
        .collect();
    assert_eq!(added, ["problem_type"]);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no unfinished file is left behind");
}

#[test]
fn a_model_survives_saving_with_its_labels_and_its_tokenizer() {
    let Some(source) = installed_minilm() else {
        return;
    };
    let device = Device::flex();
    let options = LoadOptions::new().num_labels(3).seed(7);
    let mut loaded = checkpoint::load(&source, &options, &device).unwrap();
    loaded.config = loaded.config.with_labels(["admin", "games", "net"]);
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("new/folder");
    let written =
        checkpoint::save(&nested, &loaded.network, &loaded.config, &loaded.tokenizer).unwrap();
    let names: Vec<String> = written
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into())
        .collect();
    let expected = [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "vocab.txt",
    ];
    assert_eq!(names, expected);

    let again = checkpoint::load(&nested, &LoadOptions::new(), &device).unwrap();
    assert_eq!(again.config.labels, ["admin", "games", "net"]);
    assert_eq!(again.report.of(Origin::New).count(), 0);
    assert_eq!(named_values(&again.network), named_values(&loaded.network));
    let text = "Saved, then read: unaffable";
    assert_eq!(
        again.tokenizer.encode(text, None, 64).unwrap(),
        loaded.tokenizer.encode(text, None, 64).unwrap()
    );
    let saved = config(&nested);
    assert_eq!(saved["label2id"]["net"], 2);
    assert_eq!(saved["_name_or_path"], "nreimers/MiniLM-L6-H384-uncased");

    // A new head is fixed by its seed.
    let other = checkpoint::load(&source, &options, &device).unwrap();
    assert_eq!(named_values(&other.network), named_values(&loaded.network));
    let other = checkpoint::load(&source, &options.clone().seed(8), &device).unwrap();
    assert_ne!(named_values(&other.network), named_values(&loaded.network));
}

#[test]
fn a_folder_that_cannot_be_written_is_a_diagnostic() {
    let reference = parity("tiny-bert/sequence-classification");
    let loaded =
        checkpoint::load_network(&reference, &LoadOptions::new(), &Device::flex()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let error = checkpoint::save_network(&file, &loaded.network, &loaded.config).unwrap_err();
    assert_eq!(error.code, "SC0908", "{error}");
    let error = checkpoint::save_network(&file.join("x"), &loaded.network, &loaded.config);
    assert_eq!(error.unwrap_err().code, "SC0908");
}

/// What the transformers of this Python reads in a folder, and what it computes for some texts.
pub fn read_by_transformers(python: &OsStr, folder: &Path, texts: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bert/transformers_reads.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(folder)
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::to_vec(texts).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The real transformers reads what we write and computes the same. Runs where
/// `STRATOSCOPE_TORCH_PYTHON` names a Python that has it; the other tests compare files.
#[test]
fn transformers_reads_what_we_write() {
    let Some(python) = std::env::var_os("STRATOSCOPE_TORCH_PYTHON") else {
        println!("not run here: STRATOSCOPE_TORCH_PYTHON names no Python with transformers");
        return;
    };
    let Some(source) = installed_minilm() else {
        return;
    };
    let device = Device::flex();
    let options = LoadOptions::new().num_labels(3).seed(7);
    let mut loaded = checkpoint::load(&source, &options, &device).unwrap();
    loaded.config = loaded.config.with_labels(["admin", "games", "net"]);
    let folder = tempfile::tempdir().unwrap();
    checkpoint::save(
        folder.path(),
        &loaded.network,
        &loaded.config,
        &loaded.tokenizer,
    )
    .unwrap();

    let long = "a very long description of a package ".repeat(20);
    let texts = [
        "A text editor.",
        "Ünïcödé 東京 unaffable",
        "",
        long.as_str(),
    ];
    let reference = read_by_transformers(&python, folder.path(), &texts);
    assert_eq!(reference["class"], "BertForSequenceClassification");
    assert_eq!(reference["dtype"], "torch.float32");
    assert_eq!(
        reference["labels"],
        serde_json::json!(["admin", "games", "net"])
    );
    assert_eq!(reference["problem_type"], "single_label_classification");
    assert_eq!(reference["missing"], serde_json::json!([]));
    assert_eq!(reference["unexpected"], serde_json::json!([]));

    let rows = texts.map(|text| loaded.tokenizer.encode(text, None, 32).unwrap());
    for (row, encoded) in rows.iter().enumerate() {
        let length = encoded.ids.len();
        let ids = serde_json::to_value(&encoded.ids).unwrap();
        let theirs = &reference["ids"][row].as_array().unwrap()[..length];
        assert_eq!(ids.as_array().unwrap(), theirs, "{row}");
        let tokens: u64 = reference["mask"][row]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .sum();
        assert_eq!(tokens, length as u64, "{row}");
    }
    let batch = BatchTensors::from_rows(&rows, loaded.tokenizer.pad_id(), &device);
    let logits = as_f64(loaded.network.forward(batch, Mode::Eval).into_data());
    let expected: Vec<f64> = reference["logits"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .filter_map(Value::as_f64)
        .collect();
    let (largest, _) = difference(&logits, &expected);
    assert!(largest <= 1e-5, "{largest:e}");
}
