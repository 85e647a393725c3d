//! A `Sequential` as files: saved and loaded bit for bit, by `checkpoint` of a run too, and refused where the files are not
//! those of one.

use std::path::Path;

use stratoscope_data::{Dataset, make_classification};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::{
    Adam, CompileArgs, Dense, Dropout, Embedding, FitArgs, GlobalAveragePooling1D, Sequential,
    SparseCategoricalCrossentropy,
};

fn model() -> Sequential {
    let layers = [
        Dense(8).activation("relu").input_shape(4).seed(7),
        Dropout(0.25),
        Dense(3),
    ];
    let model = Sequential(layers).expect("layers");
    let args = CompileArgs::new()
        .optimizer(Adam::new(0.01))
        .loss(SparseCategoricalCrossentropy { from_logits: true });
    model.compile(args).expect("it fits");
    model
}

fn data() -> Dataset {
    make_classification(60, 4, 3, 1).expect("rows")
}

fn fit(model: &Sequential, args: FitArgs<'_>) {
    let args = args.epochs(2).batch_size(8).seed(3).verbose(false);
    model.fit(&data(), args).expect("it trains");
}

/// The probabilities of all examples, which the weights and the names of the labels make.
fn answers(model: &Sequential) -> Vec<(String, Vec<f64>)> {
    let answers = model.predict(data()).expect("answers");
    let rows = answers.into_iter();
    rows.map(|row| (row.label, row.probabilities)).collect()
}

fn refused(folder: &Path) -> Box<Diagnostic> {
    Sequential::from_pretrained(folder).expect_err("it is refused")
}

#[test]
fn what_is_saved_is_loaded_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let trained = model();
    fit(&trained, FitArgs::new());
    let files = trained.save_pretrained(folder.path()).expect("room");
    assert_eq!(files.len(), 2);
    let loaded = Sequential::from_pretrained(folder.path()).expect("it was saved");
    assert_eq!(answers(&loaded), answers(&trained));
    assert_eq!(loaded.summary().to_plain(), trained.summary().to_plain());
    let again = Sequential::load(folder.path()).expect("it was saved");
    again.save(folder.path().join("again")).expect("room");
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("it was written");
    for name in ["config.json", "model.safetensors"] {
        assert!(bytes(name) == bytes(&format!("again/{name}")), "{name}");
    }
}

#[test]
fn layers_of_all_kinds_are_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let layers = [
        Embedding(20, 4).input_shape(5),
        GlobalAveragePooling1D(),
        Dense(3).activation("softmax"),
    ];
    let model = Sequential(layers).expect("layers");
    model.save(folder.path()).expect("room");
    let loaded = Sequential::load(folder.path()).expect("it was saved");
    let rows = [[0, 1, 2, 3, 19], [4, 4, 4, 4, 4]];
    let [one, other] = [&model, &loaded].map(|it| it.predict(rows).expect("answers"));
    assert_eq!(one.rows, other.rows);
}

/// Weights alone, without `every`, as of BERT: `last` and `best`. And complete checkpoints, from which a run goes on to the
/// same bits.
#[test]
fn a_run_leaves_checkpoints_and_goes_on_from_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = model();
    fit(
        &whole,
        FitArgs::new().checkpoint(folder.path().join("weights")),
    );
    let last = Sequential::load(folder.path().join("weights/last")).expect("the last epoch");
    assert_eq!(answers(&last), answers(&whole));

    let runs = folder.path().join("runs");
    let first = model();
    let args = FitArgs::new().checkpoint(&runs).every(5).epochs(2);
    let run = first
        .start(&data(), args.batch_size(8).seed(3).verbose(false))
        .expect("a run");
    run.step(11).expect("steps");
    drop(run);
    let second = model();
    let args = FitArgs::new().checkpoint(&runs).every(5);
    fit(&second, args.resume_from(&runs));
    assert_eq!(answers(&second), answers(&whole));
    // A complete checkpoint has the model's files as well.
    let newest = std::fs::read_dir(&runs).expect("checkpoints");
    let newest = newest
        .flatten()
        .find(|it| it.path().join("config.json").exists());
    Sequential::load(newest.expect("one of them").path()).expect("its weights");
}

#[test]
fn a_run_that_does_not_exist_is_called_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("none");
    let problem = model().fit(&data(), FitArgs::new().resume_from(&none));
    let problem = problem.expect_err("there is none");
    assert_eq!(problem.code, "SC0526");
    assert!(
        problem.message.ends_with("does not exist"),
        "{}",
        problem.message
    );
    assert!(!format!("{problem:?}").contains("damaged"), "{problem:?}");
}

#[test]
fn files_of_something_else_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    assert_eq!(refused(&path("nowhere")).code, "SC0902");
    let unbuilt = Sequential([Dense(2)]).expect("a layer");
    let problem = unbuilt
        .save(path("unbuilt"))
        .expect_err("it has no weights");
    assert!(
        problem.code == "SC0103" && problem.message.contains("built"),
        "{problem:?}"
    );
    assert_eq!(model().save("").expect_err("no path").code, "SC0103");

    model().save(folder.path()).expect("room");
    let configuration = std::fs::read_to_string(path("config.json")).expect("it was written");
    let with = |from: &str, to: &str| {
        assert!(configuration.contains(from), "{from} in {configuration}");
        std::fs::write(path("config.json"), configuration.replacen(from, to, 1)).expect("room");
        refused(folder.path())
    };
    let other = with("stratoscope_sequential", "bert");
    assert_eq!(other.code, "SC0903");
    for (from, to, code) in [
        ("\"units\": 8", "\"units\": 9", "SC0904"),
        ("\"units\": 8", "\"units\": 0", "SC0915"),
        ("\"units\": 8", "\"units\": 99999999999999", "SC0915"),
        ("\"rate\": 0.25", "\"rate\": 2.0", "SC0915"),
        ("\"LABEL_0\",", "", "SC0902"),
        ("\"input_width\": 4", "\"input_width\": 0", "SC0902"),
        ("\"Relu\"", "\"Sharp\"", "SC0902"),
        ("{", "", "SC0902"),
    ] {
        assert_eq!(with(from, to).code, code, "{to}");
    }
}
