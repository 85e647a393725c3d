//! Exports to ONNX, as far as no program that reads them is needed: what is refused, what a failed export leaves, adapters,
//! sizes. `tests/test_onnx.py` runs the files with onnxruntime.

use std::fs;

use stratoscope_models::{
    Dense, FitArgs, Lora, Model, OnnxFile, Sequential, SparseCategoricalCrossentropy,
};

use crate::support::{id_model, load, plain_args, sentences, tiny_bert, weights};

#[track_caller]
fn refused(outcome: stratoscope_diagnostics::Result<OnnxFile>, code: &str, words: &str) {
    let finding = outcome.expect_err(words);
    assert_eq!(finding.code, code, "{finding}");
    assert!(finding.message.contains(words), "{finding}");
}

#[test]
fn what_has_no_form_in_onnx_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.onnx");
    let waits = Sequential([Dense(3), Dense(1)]).expect("layers");
    refused(waits.export_onnx(&path), "SC0760", "is not built");
    refused(waits.export_onnx_int8(&path), "SC0760", "is not built");
    refused(
        id_model().export_onnx(&path),
        "SC0761",
        "is a custom module",
    );
    let built = Sequential([Dense(1).input_shape(2)]).expect("layers");
    for path in ["", "/", ".."] {
        refused(built.export_onnx(path), "SC0103", "path");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new").join("model.onnx");
    let model = Sequential([Dense(3).input_shape(2), Dense(1)]).expect("layers");
    let file = model.export_onnx(&path).expect("a file in a new folder");
    let first = fs::read(&path).expect("the file");
    assert_eq!((file.bytes, &file.path), (first.len() as u64, &path));
    assert_eq!(
        (file.inputs, file.outputs),
        (vec!["features".into()], vec!["outputs".into()])
    );
    // The same bytes for the same model, whatever was there.
    fs::write(&path, "something else").expect("it is writable");
    model.export_onnx(&path).expect("it replaces the file");
    assert_eq!(fs::read(&path).expect("the file"), first);
    // No folder is replaced, and nothing unfinished is left.
    let taken = folder.path().join("folder");
    fs::create_dir(&taken).expect("a folder");
    refused(model.export_onnx(&taken), "SC0908", "it is a folder");
    refused(
        model.export_onnx(path.join("inside")),
        "SC0908",
        "cannot be written",
    );
    let names = fs::read_dir(path.parent().expect("a folder")).expect("a folder");
    assert_eq!(names.count(), 1);
}

fn bytes(model: &Model) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.onnx");
    model.export_onnx(&path).expect("it is written");
    fs::read(path).expect("the file")
}

#[test]
fn adapters_are_in_the_weights_of_the_file_and_stay_in_the_model() {
    let model = load(&tiny_bert(0.0));
    let before = bytes(&model);
    model.add_lora(Lora::new(2).alpha(8.0)).expect("adapters");
    // New adapters add zeros.
    assert_eq!(bytes(&model), before);
    let loss = SparseCategoricalCrossentropy { from_logits: true };
    model
        .compile(plain_args().loss(loss))
        .expect("valid arguments");
    let args = FitArgs::new().epochs(1).batch_size(4).verbose(false);
    model.fit(&sentences(12), args).expect("it trains");
    let (adapted, trained) = (bytes(&model), weights(&model));
    assert_ne!(adapted, before);
    assert!(
        trained.iter().any(|(name, _)| name.ends_with("lora_A")),
        "the adapters are still there"
    );
    model.merge_lora().expect("adapters");
    assert_eq!(bytes(&model), adapted);
}

#[test]
fn eight_bits_are_a_quarter_of_the_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = load(&tiny_bert(0.0));
    let file = model
        .export_onnx(folder.path().join("model.onnx"))
        .expect("a file");
    let small = model
        .export_onnx_int8(folder.path().join("small.onnx"))
        .expect("a file");
    let parameters = 4 * model.num_parameters() as u64;
    assert!(file.bytes > parameters, "{file}");
    // The layers of this model are so small that names and scales count.
    assert!(small.bytes < file.bytes * 2 / 3, "{small}, of {file}");
    let names = ["input_ids", "attention_mask", "token_type_ids"];
    assert_eq!(
        (&file.inputs[..], &file.outputs[..]),
        (&names.map(str::to_owned)[..], &["logits".to_owned()][..])
    );
    let line = file.to_string();
    assert!(
        line.ends_with("operator set 17, input_ids, attention_mask, token_type_ids → logits"),
        "{line}"
    );
}
