//! One output that decides between two classes: what `predict` answers, and what is saved.

use std::fs;

use stratoscope_data::{Dataset, make_classification, make_regression};
use stratoscope_models::{
    Adam, AdamW, BertForSequenceClassification, BinaryCrossentropy, Dense, FitArgs,
    MeanSquaredError, Sequential, accuracy,
};
use tempfile::TempDir;

use crate::support::{plain_args, tiny_bert};

fn two_classes(count: usize) -> Dataset {
    let text = |index: usize| match index % 2 {
        0 => format!("w{} w12", 20 + index % 5),
        _ => format!("w{} w50", 60 + index % 5),
    };
    Dataset::from_labelled((0..count).map(|index| (text(index), ["ham", "spam"][index % 2])))
}

fn logits() -> BinaryCrossentropy {
    BinaryCrossentropy { from_logits: true }
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().verbose(false)
}

/// The tiny BERT with one output.
fn one_output() -> BertForSequenceClassification {
    let folder = tiny_bert(0.0);
    // The fixture's head has three outputs; without its own one the model gets a new one.
    let path = folder.path().join("config.json");
    let config = fs::read_to_string(&path).expect("the fixture's file");
    fs::write(
        &path,
        config.replace("BertForSequenceClassification", "BertModel"),
    )
    .expect("room");
    let weights = folder.path().join("model.safetensors");
    let body = stratoscope_bert_body(&fs::read(&weights).expect("the fixture's file"));
    fs::write(&weights, body).expect("room");
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForSequenceClassification::from_pretrained(path, 1).expect("the fixture loads")
}

/// The same file without the head.
fn stratoscope_bert_body(file: &[u8]) -> Vec<u8> {
    let tensors = safetensors::SafeTensors::deserialize(file).expect("a safetensors file");
    let names = tensors.names().into_iter();
    let kept: Vec<_> = names
        .filter(|name| !name.starts_with("classifier"))
        .map(|name| (name.to_owned(), tensors.tensor(name).expect("a tensor")))
        .collect();
    safetensors::serialize(kept, None).expect("a file")
}

#[test]
fn a_binary_head_answers_with_a_label_and_its_probability() {
    let (model, data) = (one_output(), two_classes(32));
    assert!(
        format!("{model:?}").contains("a number as output"),
        "{model:?}"
    );
    let args = plain_args().optimizer(AdamW::new(5e-3)).loss(logits());
    model
        .compile(args.metrics([accuracy()]))
        .expect("valid arguments");
    let history = model.fit(&data, quiet().epochs(20).batch_size(8));
    let history = history.expect("it trains");
    assert_eq!(history.epochs[19].metrics[0].value, Some(1.0), "{history}");
    let answers = model.predict(["w21 w12", "w63 w50"]).expect("answers");
    assert_eq!(answers.labels(), ["ham", "spam"]);
    assert_eq!(answers.label_names, ["ham", "spam"]);
    for (row, class) in answers.rows.iter().zip([0, 1]) {
        assert_eq!(row.class, Some(class));
        assert!(row.score > 0.8 && row.score < 1.0, "{answers}");
        assert_eq!(row.score, row.probabilities[class]);
        assert!((row.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    assert!(answers.to_plain().contains('%'), "{answers}");
    let shown = format!("{model:?}");
    assert!(
        shown.contains("decides between `ham` and `spam`"),
        "{shown}"
    );

    // Saved and loaded, it is still known what the output means.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = fs::read_to_string(folder.path().join("config.json")).expect("it was written");
    assert!(
        config.contains("\"problem_type\": \"multi_label_classification\""),
        "{config}"
    );
    let path = folder.path().to_str().expect("a path in UTF-8");
    let again = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    assert_eq!(
        again.predict(["w21 w12", "w63 w50"]).expect("answers"),
        answers
    );
}

#[test]
fn what_the_loss_says_decides_what_the_number_is() {
    let dense = |activation: &str| {
        let layers = [Dense(8).activation("relu"), Dense(1).activation(activation)];
        Sequential(layers).expect("layers that fit")
    };
    let data = make_classification(120, 4, 2, 0).expect("two classes");
    for (activation, loss) in [
        ("linear", logits()),
        ("sigmoid", BinaryCrossentropy { from_logits: false }),
    ] {
        let model = dense(activation);
        let args = plain_args().optimizer(Adam::new(0.05)).loss(loss);
        model.compile(args).expect("valid arguments");
        model.fit(&data, quiet().epochs(20)).expect("it trains");
        let answers = model.predict(data.take(20)).expect("answers");
        assert_eq!(answers.label_names, ["0", "1"]);
        let right = (0..20).filter(|&row| answers.rows[row].label == (row % 2).to_string());
        assert!(right.count() > 17, "{activation}: {answers}");
        assert!(
            answers
                .rows
                .iter()
                .all(|row| (0.5..=1.0).contains(&row.score))
        );
    }
    let model = dense("linear");
    let args = stratoscope_models::CompileArgs::new();
    let args = args.optimizer(Adam::new(0.05)).loss(MeanSquaredError);
    model.compile(args).expect("valid arguments");
    let data = make_regression(40, 4, 0).expect("numbers");
    model.fit(&data, quiet()).expect("it trains");
    let answers = model.predict(data.take(2)).expect("answers");
    assert!(answers.label_names.is_empty());
    for row in &answers.rows {
        assert_eq!(
            (row.class, row.label.as_str()),
            (None, format!("{:.4}", row.score).as_str())
        );
    }
}

#[test]
fn class_weights_know_the_two_names() {
    let (model, data) = (one_output(), two_classes(16));
    model
        .compile(plain_args().loss(logits()))
        .expect("valid arguments");
    let weighted = quiet().class_weight([("ham", 1.0), ("spam", 2.0)]);
    model.fit(&data, weighted).expect("names of the data");
    let unknown = quiet().class_weight([("ham", 1.0), ("eggs", 2.0)]);
    model.fit(&data, unknown).expect_err("no such class");
}
