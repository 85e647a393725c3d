//! Damaged, foreign and mismatched checkpoints: a diagnostic each, never a panic.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use stratoscope_bert::{BertTokenizer, LoadOptions, Origin, checkpoint, source};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_render::text::thousands;
use tempfile::TempDir;

use crate::fixtures::parity;
use crate::sources::installed_minilm;

/// A copy of the tiny classifier that a test may damage.
fn copy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        let from = parity("tiny-bert/sequence-classification").join(file);
        fs::copy(from, folder.path().join(file)).unwrap();
    }
    folder
}

fn load(folder: &Path, options: &LoadOptions) -> Result<(), Box<Diagnostic>> {
    checkpoint::load_network(folder, options, &Device::flex()).map(|_| ())
}

/// The code, and what the one line must contain; every diagnostic has a way out.
fn check(folder: &Path, code: &str, words: &[&str]) -> Box<Diagnostic> {
    check_with(folder, &LoadOptions::new(), code, words)
}

fn check_with(folder: &Path, options: &LoadOptions, code: &str, words: &[&str]) -> Box<Diagnostic> {
    let error = load(folder, options).expect_err(code);
    assert_eq!(error.code, code, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no `{word}` in: {error}");
    }
    assert!(
        !error.fixes.is_empty() && !error.labels.is_empty(),
        "{error}"
    );
    assert!(!error.message.contains("/tmp"), "{error}");
    error
}

type Change<'a> = &'a mut dyn FnMut(
    &str,
    Dtype,
    Vec<usize>,
    Vec<u8>,
) -> Vec<(String, Dtype, Vec<usize>, Vec<u8>)>;

/// Writes the tensors anew, each as `change` gives it.
fn rewrite(folder: &Path, change: Change) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        tensors.extend(change(
            name,
            view.dtype(),
            view.shape().to_vec(),
            view.data().to_vec(),
        ));
    }
    let views: Vec<(&String, TensorView)> = tensors
        .iter()
        .map(|(name, dtype, shape, data)| {
            (name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        })
        .collect();
    fs::write(&path, serialize(views, None).unwrap()).unwrap();
}

/// Changes a field of the configuration.
fn set(folder: &Path, field: &str, value: serde_json::Value) {
    let path = folder.join("config.json");
    let mut config: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    config[field] = value;
    fs::write(&path, config.to_string()).unwrap();
}

#[test]
fn every_truncation_is_noticed() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut lengths = vec![
        0,
        1,
        7,
        8,
        9,
        100,
        header - 1,
        header,
        header + 1,
        header + 1000,
    ];
    lengths.extend([bytes.len() / 2, bytes.len() - 4, bytes.len() - 1]);
    for length in lengths {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = check(
            folder.path(),
            "SC0902",
            &["model.safetensors", "cannot be read"],
        );
        assert!(
            error
                .evidence
                .iter()
                .any(|e| e.value == format!("{length} bytes")),
            "{error:?}"
        );
    }
    fs::write(&path, [bytes.as_slice(), b"more"].concat()).unwrap();
    check(folder.path(), "SC0902", &["cannot be read"]);
}

#[test]
fn every_damaged_header_is_noticed() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    for length in [
        0,
        1,
        2,
        4303,
        4305,
        1 << 20,
        100_000_001,
        1 << 40,
        u64::MAX - 7,
        u64::MAX,
    ] {
        let mut changed = bytes.clone();
        changed[..8].copy_from_slice(&u64::to_le_bytes(length));
        fs::write(&path, changed).unwrap();
        check(folder.path(), "SC0902", &["cannot be read"]);
    }
    // Any one byte of the header may be flipped: an error or the same model, never a panic.
    for position in (8..4312).step_by(13) {
        let mut changed = bytes.clone();
        changed[position] ^= 0x15;
        fs::write(&path, changed).unwrap();
        if let Err(error) = load(folder.path(), &LoadOptions::new()) {
            assert!(error.code.starts_with("SC09"), "{error}");
        }
    }
    // A shape that promises more than there is.
    let text = String::from_utf8_lossy(&bytes[8..4312]).replace("[128,32]", "[999999999999,32]");
    let header = (text.len() as u64).to_le_bytes();
    fs::write(&path, [&header, text.as_bytes(), &bytes[4312..]].concat()).unwrap();
    check(folder.path(), "SC0902", &["cannot be read"]);
}

#[test]
fn absent_files_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path(), "SC0902", &["config.json", "does not exist"]);
    let folder = copy();
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    check(
        folder.path(),
        "SC0902",
        &["model.safetensors", "does not exist"],
    );
    fs::write(folder.path().join("pytorch_model.bin"), "pickle").unwrap();
    check(folder.path(), "SC0902", &["pytorch_model.bin"]);
    fs::create_dir(folder.path().join("model.safetensors")).unwrap();
    check(folder.path(), "SC0902", &["a folder, not a regular file"]);
}

/// Puts something else in the place of a file.
fn put(path: &Path, other: &str) {
    // Whether there was a file or not.
    let _ = fs::remove_file(path);
    match other {
        "loop" => std::os::unix::fs::symlink(path, path).unwrap(),
        "nowhere" => std::os::unix::fs::symlink("/no/such/file", path).unwrap(),
        "device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        "pipe" => {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.unwrap().success());
        }
        text => fs::write(path, text).unwrap(),
    }
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 90868376\n";

/// None of them is read for ever, and none of them is absent.
#[test]
fn what_is_no_file_of_a_checkpoint_is_named() {
    let others = [
        ("loop", "a link that leads nowhere"),
        ("nowhere", "a link that leads nowhere"),
        ("device", "a device, not a regular file"),
        ("pipe", "a pipe, not a regular file"),
        (POINTER, "a Git LFS pointer"),
        ("<!DOCTYPE html>\n<html lang=\"en\">", "an HTML page"),
    ];
    for (other, words) in others {
        for name in ["config.json", "model.safetensors", "pytorch_model.bin"] {
            let folder = copy();
            if name == "pytorch_model.bin" {
                fs::remove_file(folder.path().join("model.safetensors")).unwrap();
            }
            put(&folder.path().join(name), other);
            let error = check(folder.path(), "SC0902", &[name, words]);
            assert!(!error.message.contains("does not exist"), "{error}");
            // Also where the model is searched by its folder.
            let found = source::find(&folder.path().display().to_string()).unwrap();
            assert_eq!(found.folder, folder.path());
        }
        for name in ["tokenizer.json", "tokenizer_config.json", "vocab.txt"] {
            let folder = tempfile::tempdir().unwrap();
            let words_of_bert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nchess\n";
            fs::write(folder.path().join("vocab.txt"), words_of_bert).unwrap();
            put(&folder.path().join(name), other);
            let error = BertTokenizer::from_folder(folder.path()).expect_err(name);
            assert_eq!(error.code, "SC0902", "{error}");
            assert!(error.message.contains(words), "{error}");
            assert!(error.message.contains(name), "{error}");
        }
    }
    let folder = copy();
    put(&folder.path().join("model.safetensors"), POINTER);
    let error = check(folder.path(), "SC0902", &[]);
    assert!(error.fixes[0].title.contains("git lfs pull"), "{error}");
}

/// Divides the weights into two files with an index, as `save_pretrained(max_shard_size=…)` does.
fn divide(folder: &Path) -> serde_json::Value {
    let whole = fs::read(folder.join("model.safetensors")).unwrap();
    fs::remove_file(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&whole).unwrap();
    let mut names = serde_json::Map::new();
    for part in 0..2 {
        let name = format!("model-{:05}-of-00002.safetensors", part + 1);
        let tensors = file.iter().enumerate();
        let tensors = tensors.filter(|(at, _)| at % 2 == part).map(|(_, it)| it);
        let tensors: Vec<_> = tensors.collect();
        for (tensor, _) in &tensors {
            names.insert((*tensor).to_owned(), name.clone().into());
        }
        fs::write(folder.join(name), serialize(tensors, None).unwrap()).unwrap();
    }
    serde_json::json!({"metadata": {"total_size": 1}, "weight_map": names})
}

#[test]
fn weights_in_several_files() {
    let whole = copy();
    let folder = copy();
    let index = folder.path().join("model.safetensors.index.json");
    let content = divide(folder.path());
    fs::write(&index, content.to_string()).unwrap();
    let values = |folder: &Path| {
        let loaded = checkpoint::load_network(folder, &LoadOptions::new(), &Device::flex());
        stratoscope_bert::names::named_values(&loaded.unwrap().network)
    };
    assert_eq!(values(folder.path()), values(whole.path()));

    let write = |content: &serde_json::Value| fs::write(&index, content.to_string()).unwrap();
    let mut elsewhere = content.clone();
    elsewhere["weight_map"]["classifier.bias"] =
        match content["weight_map"]["classifier.bias"].as_str() {
            Some("model-00001-of-00002.safetensors") => "model-00002-of-00002.safetensors".into(),
            _ => "model-00001-of-00002.safetensors".into(),
        };
    write(&elsewhere);
    check(
        folder.path(),
        "SC0902",
        &["`classifier.bias` is not in `model-"],
    );
    let mut outside = content.clone();
    outside["weight_map"]["classifier.bias"] = "../model.safetensors".into();
    write(&outside);
    check(
        folder.path(),
        "SC0902",
        &["`../model.safetensors` is no name of a file"],
    );
    write(&serde_json::json!({"weight_map": {}}));
    check(folder.path(), "SC0902", &["it names 0 files"]);
    write(&serde_json::json!([1]));
    check(folder.path(), "SC0902", &["no index of tensors"]);
    write(&content);
    fs::copy(
        folder.path().join("model-00001-of-00002.safetensors"),
        folder.path().join("model-00002-of-00002.safetensors"),
    )
    .unwrap();
    check(folder.path(), "SC0902", &["is in another file, too"]);
    fs::remove_file(folder.path().join("model-00001-of-00002.safetensors")).unwrap();
    check(
        folder.path(),
        "SC0902",
        &["model-00001-of-00002.safetensors", "does not exist"],
    );
}

#[test]
fn half_precision_is_converted() {
    let whole = copy();
    let expected =
        checkpoint::load_network(whole.path(), &LoadOptions::new(), &Device::flex()).unwrap();
    let expected = stratoscope_bert::names::named_values(&expected.network);
    // bfloat16 is the upper half of float32.
    rewrite(whole.path(), &mut |name, _, shape, data| {
        let halves = data
            .as_chunks::<4>()
            .0
            .iter()
            .flat_map(|word| [word[2], word[3]])
            .collect();
        vec![(name.to_owned(), Dtype::BF16, shape, halves)]
    });
    let found =
        checkpoint::load_network(whole.path(), &LoadOptions::new(), &Device::flex()).unwrap();
    let found = stratoscope_bert::names::named_values(&found.network);
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        for (found, expected) in found.iter::<f32>().zip(expected.iter::<f32>()) {
            let cut = f32::from_bits(expected.to_bits() & 0xffff_0000);
            assert_eq!(found, cut, "{name}");
        }
    }
    // float16 1.5 is 0x3e00.
    let folder = copy();
    rewrite(folder.path(), &mut |name, dtype, shape, data| match name {
        "classifier.bias" => {
            vec![(
                name.to_owned(),
                Dtype::F16,
                shape,
                vec![0x00, 0x3e, 0x00, 0x3e, 0x00, 0xbe],
            )]
        }
        _ => vec![(name.to_owned(), dtype, shape, data)],
    });
    let found =
        checkpoint::load_network(folder.path(), &LoadOptions::new(), &Device::flex()).unwrap();
    let bias = found
        .network
        .classifier
        .bias
        .expect("it has one")
        .val()
        .into_data();
    assert_eq!(bias.try_to_vec::<f32>().unwrap(), [1.5, 1.5, -1.5]);
}

#[test]
fn numbers_that_are_no_weights_are_refused() {
    let folder = copy();
    rewrite(folder.path(), &mut |name, dtype, shape, data| match name {
        "bert.pooler.dense.bias" => vec![(name.to_owned(), Dtype::I32, shape, data)],
        _ => vec![(name.to_owned(), dtype, shape, data)],
    });
    check(folder.path(), "SC0902", &["bert.pooler.dense.bias", "I32"]);
    let folder = copy();
    rewrite(folder.path(), &mut |name, dtype, shape, mut data| {
        if name == "bert.pooler.dense.bias" {
            data[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        vec![(name.to_owned(), dtype, shape, data)]
    });
    check(
        folder.path(),
        "SC0902",
        &["bert.pooler.dense.bias", "1 values", "NaN"],
    );
}

#[test]
fn missing_tensors_are_listed() {
    let folder = copy();
    rewrite(
        folder.path(),
        &mut |name, dtype, shape, data| match name.contains("layer.1.output") {
            true => vec![],
            false => vec![(name.to_owned(), dtype, shape, data)],
        },
    );
    let first = "bert.encoder.layer.1.output.dense.weight";
    let error = check(folder.path(), "SC0904", &[first, "[32, 64]", "missing"]);
    let evidence = |name: &str| error.evidence.iter().find(|e| e.name == name).unwrap();
    assert_eq!(evidence("tensors with a mismatch").value, "4");
    assert_eq!(
        evidence("also missing").value,
        "`bert.encoder.layer.1.output.dense.bias` [32]"
    );
    // More layers than the file has: the same, for a configuration of another model.
    let folder = copy();
    set(folder.path(), "num_hidden_layers", 3.into());
    let error = check(
        folder.path(),
        "SC0904",
        &["bert.encoder.layer.2.attention.self.query"],
    );
    assert!(error.evidence.iter().any(|e| e.value == "16"), "{error:?}");
}

#[test]
fn wrong_shapes_are_named_with_both_shapes() {
    let folder = copy();
    set(folder.path(), "intermediate_size", 60.into());
    let error = check(
        folder.path(),
        "SC0904",
        &["[64, 32]", "[60, 32]", "intermediate.dense.weight"],
    );
    // Weight and bias of the first dense layer and the weight of the second one, in two layers.
    assert!(error.evidence.iter().any(|e| e.value == "6"), "{error:?}");
    let folder = copy();
    set(folder.path(), "vocab_size", 129.into());
    check(
        folder.path(),
        "SC0904",
        &["word_embeddings.weight", "[128, 32]", "[129, 32]"],
    );
    let folder = copy();
    set(folder.path(), "vocab_size", 15_000_000.into());
    check(folder.path(), "SC0904", &["word_embeddings.weight"]);
}

#[test]
fn another_number_of_labels_is_said_and_can_be_had() {
    let folder = copy();
    let options = LoadOptions::new().num_labels(5);
    let error = check_with(
        folder.path(),
        &options,
        "SC0904",
        &["classifier.weight", "[3, 32]"],
    );
    assert!(error.fixes[0].title.contains("3 labels"), "{error:?}");
    let options = options.new_head();
    let loaded = checkpoint::load_network(folder.path(), &options, &Device::flex()).unwrap();
    let new: Vec<&str> = loaded
        .report
        .of(Origin::New)
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(new, ["classifier.weight", "classifier.bias"]);
    // What the file has and the network does not take is said too.
    assert_eq!(loaded.report.of(Origin::Unused).count(), 2);
    check_with(
        folder.path(),
        &LoadOptions::new().num_labels(0),
        "SC0915",
        &["num_labels"],
    );
    check_with(
        folder.path(),
        &LoadOptions::new().num_labels(usize::MAX),
        "SC0915",
        &["num_labels"],
    );
}

#[test]
fn foreign_checkpoints_are_recognized() {
    let folder = copy();
    set(folder.path(), "model_type", "longformer".into());
    check(folder.path(), "SC0903", &["model_type", "longformer"]);
    // The configuration of a BERT beside the weights of something else.
    let folder = copy();
    rewrite(folder.path(), &mut |name, dtype, shape, data| {
        let name = name.replace("bert.encoder.layer", "distilbert.transformer.layer");
        vec![(name, dtype, shape, data)]
    });
    let error = check(
        folder.path(),
        "SC0904",
        &["bert.encoder.layer.0", "missing"],
    );
    let found = error.evidence.last().unwrap();
    assert!(
        found
            .value
            .starts_with("41 tensors, such as `bert.embeddings"),
        "{error:?}"
    );
    // A head for another task has the same name and is not taken over.
    let token_head = copy();
    set(
        token_head.path(),
        "architectures",
        serde_json::json!(["BertForTokenClassification"]),
    );
    let loaded =
        checkpoint::load_network(token_head.path(), &LoadOptions::new(), &Device::flex()).unwrap();
    assert_eq!(loaded.report.of(Origin::New).count(), 2);
}

#[test]
fn names_without_prefix_and_tensorflows_names_are_understood() {
    let folder = copy();
    rewrite(folder.path(), &mut |name, dtype, shape, data| {
        if name.starts_with("classifier") {
            return vec![];
        }
        let name = name.trim_start_matches("bert.");
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        let name = name.replace("LayerNorm.bias", "LayerNorm.beta");
        vec![(name, dtype, shape, data)]
    });
    let loaded =
        checkpoint::load_network(folder.path(), &LoadOptions::new(), &Device::flex()).unwrap();
    assert_eq!(loaded.report.of(Origin::New).count(), 2);
    assert_eq!(loaded.report.of(Origin::Loaded).count(), 39);
    assert_eq!(loaded.report.of(Origin::Unused).count(), 0);
}

#[test]
fn a_tokenizer_of_another_model_is_noticed() {
    let Some(minilm) = installed_minilm() else {
        return;
    };
    let folder = copy();
    let load = |folder: &Path| checkpoint::load(folder, &LoadOptions::new(), &Device::flex());
    let error = load(folder.path()).unwrap_err();
    assert_eq!(error.code, "SC0902", "{error}");
    fs::copy(minilm.join("vocab.txt"), folder.path().join("vocab.txt")).unwrap();
    let error = load(folder.path()).unwrap_err();
    assert_eq!(error.code, "SC0905", "{error}");
    assert!(
        error.message.contains(&thousands(30_522)) && error.message.contains("128"),
        "{error}"
    );

    let refused = |file: &str, text: &str, code: &str| {
        let folder = copy();
        fs::write(folder.path().join(file), text).unwrap();
        let error = load(folder.path()).unwrap_err();
        assert_eq!(error.code, code, "{file}: {error}");
    };
    refused("tokenizer.json", "{", "SC0910");
    refused("tokenizer.json", "{\"version\": \"1.0\"}", "SC0910");
    refused("vocab.txt", "", "SC0910");
    refused("vocab.txt", "a\nb\n[UNK]\n", "SC0910");
    refused("tokenizer_config.json", "[]", "SC0902");
    let bpe = r###"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE","dropout":null,
        "unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,
        "byte_fallback":false,"vocab":{"<unk>":0,"a":1},"merges":[]}}"###;
    refused("tokenizer.json", bpe, "SC0910");
}

/// Sizes that fit no memory are found by the tensors that are there, before anything new is made.
#[test]
fn sizes_that_no_memory_holds() {
    for (field, size) in [
        ("hidden_size", 1_u64 << 24),
        ("intermediate_size", 1 << 24),
        ("vocab_size", 1 << 24),
        ("max_position_embeddings", 1 << 24),
    ] {
        let folder = copy();
        set(folder.path(), field, size.into());
        let error = load(folder.path(), &LoadOptions::new()).expect_err("another size");
        assert!(
            ["SC0904", "SC0909"].contains(&error.code.as_str()),
            "{field}: {error}"
        );
        // Without a pooler and a head, which are made anew.
        let folder = copy();
        rewrite(
            folder.path(),
            &mut |name, dtype, shape, data| match name.contains("pooler")
                || name.starts_with("classifier")
            {
                true => Vec::new(),
                false => vec![(name.to_owned(), dtype, shape, data)],
            },
        );
        set(folder.path(), field, size.into());
        load(folder.path(), &LoadOptions::new()).expect_err("another size");
    }
}
