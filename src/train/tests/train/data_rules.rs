//! What `fit!` and `evaluate!` refuse before the first step, and at a step that must not be taken.

use std::fs;

use stratoscope_bert::LoadOptions;
use stratoscope_data::{Dataset, Example, Label};
use stratoscope_train::{
    BertForSequenceClassification, CompileArgs, EvaluateArgs, FitArgs, MeanSquaredError, SGD,
    pearson,
};

use crate::support::{load, plain_args, sentences, tiny_bert, turn, weights};

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).verbose(false)
}

fn compiled() -> BertForSequenceClassification {
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    model
}

#[test]
fn a_model_must_be_compiled_with_a_loss() {
    let _turn = turn();
    let model = load(&tiny_bert(0.0));
    let data = sentences(6);
    assert_eq!(
        model.fit(&data, quiet()).expect_err("not compiled").code,
        "SC0112"
    );
    assert_eq!(
        model
            .evaluate(&data, EvaluateArgs::new())
            .expect_err("not compiled")
            .code,
        "SC0112"
    );
    model
        .compile(CompileArgs::new().optimizer("adamw"))
        .expect("a model that predicts");
    assert_eq!(
        model.fit(&data, quiet()).expect_err("no loss").code,
        "SC0113"
    );
    model.predict(&data).expect("predicting needs no loss");
}

#[test]
fn labels_are_checked_before_the_first_step() {
    let _turn = turn();
    let check = |data: Dataset, code: &str, words: &str| {
        let model = compiled();
        let before = weights(&model);
        let told = model.fit(&data, quiet()).expect_err("bad labels");
        assert_eq!(told.code, code, "{told}");
        assert!(told.message.contains(words), "{told}");
        assert_eq!(weights(&model), before);
        assert_eq!(
            model
                .evaluate(&data, EvaluateArgs::new())
                .expect_err("bad labels")
                .code,
            code
        );
    };
    let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let example = |class| Example::new("w10 w11").with_label(Label::Class(class));
    let five = [0, 1, 3, 2, 3].map(example);
    let too_large = Dataset::from_examples(five, names, "five rows");
    check(too_large, "SC0301", "label 3 at row 2 with num_labels = 3");
    check(Dataset::from_texts(["w10"]), "SC0313", "label");
    check(sentences(0), "SC0914", "no examples");
}

#[test]
fn a_class_the_model_does_not_know_by_that_name() {
    let _turn = turn();
    let model = compiled();
    model
        .fit(&sentences(6), quiet())
        .expect("it takes the names of its training data");
    let other = Dataset::from_labelled([("w10", "blue"), ("w11", "yellow"), ("w12", "red")]);
    assert_eq!(
        model.fit(&other, quiet()).expect_err("no yellow").code,
        "SC0913"
    );
    // The same names in another order of numbers are renumbered.
    let fewer = Dataset::from_labelled([("w10", "red"), ("w11", "green")]);
    assert_eq!(fewer.label_names, ["green", "red"]);
    model
        .evaluate(&fewer, EvaluateArgs::new().verbose(false))
        .expect("both are known");
}

#[test]
fn lengths_are_those_of_the_model() {
    let _turn = turn();
    let model = compiled();
    let told = model
        .fit(&sentences(6), quiet().max_length(65))
        .expect_err("64 positions");
    assert_eq!(told.code, "SC0401");
    model
        .fit(&sentences(6), quiet().max_length(64))
        .expect("as many as there are");
    model
        .fit(&sentences(6), quiet().max_length(1))
        .expect("cut, and said so");
}

#[test]
fn a_loss_that_is_not_finite_stops_before_the_update() {
    let _turn = turn();
    let folder = tiny_bert(0.0);
    let model = load(&folder);
    model
        .compile(plain_args().optimizer(SGD::new(1e30)))
        .expect("a rate is a rate");
    let told = model
        .fit(&sentences(40), quiet().epochs(20))
        .expect_err("it diverges");
    assert_eq!(told.code, "SC0505", "{told}");
    assert!(
        told.evidence
            .iter()
            .any(|seen| seen.name == "learning rate"),
        "{told}"
    );
    assert!(
        told.evidence
            .iter()
            .any(|seen| seen.name == "rows of the batch"),
        "{told}"
    );
}

#[test]
fn a_number_of_labels_must_be_one() {
    let _turn = turn();
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    for bad in [0, -3] {
        let told = BertForSequenceClassification::from_pretrained(path, bad).expect_err("no head");
        assert_eq!(told.code, "SC0915");
    }
    let told = BertForSequenceClassification::from_pretrained(path, 4).expect_err("it has 3");
    assert!(told.message.contains("classifier"), "{told}");
    let options = LoadOptions::new().num_labels(4).new_head();
    BertForSequenceClassification::from_pretrained_with(path, &options).expect("a new head");
}

/// One output, numbers as labels.
#[test]
fn a_regression() {
    let _turn = turn();
    let folder = tiny_bert(0.0);
    let source = crate::support::fixtures().join("regression");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(source.join(file), folder.path().join(file)).expect("the fixture's file");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    let told = model.compile(plain_args()).expect_err("classes");
    assert_eq!((told.code.as_str(), told.related.len()), ("SC0305", 1));
    let args = CompileArgs::new()
        .optimizer("adamw")
        .loss("mse")
        .metrics([pearson()]);
    model.compile(args.loss(MeanSquaredError)).expect("numbers");
    let example = |row: usize| {
        let text = format!("w{}", 10 + row);
        Example::new(text).with_label(Label::Value(row as f32 / 10.0))
    };
    let data = Dataset::from_examples((0..12).map(example), Vec::new(), "twelve rows");
    let history = model
        .fit(&data, quiet().epochs(8).batch_size(12))
        .expect("it trains");
    let losses: Vec<f64> = history.epochs.iter().map(|record| record.loss).collect();
    assert!(losses[7] < losses[0], "{losses:?}");
    let answers = model.predict(["w10"]).expect("an answer");
    assert!(answers.rows[0].class.is_none() && answers.rows[0].score.is_finite());
}
