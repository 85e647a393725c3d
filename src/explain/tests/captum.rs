//! Explanations beside those of Captum on the same weights: `tests/parity/captum`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stratoscope_data::{Dataset, random};
use stratoscope_explain::{
    AuditData, ExplainOptions, ExplainPredictions, ExplainedWord, Explanation,
};
use stratoscope_models::{AdamW, BertForSequenceClassification, CompileArgs, FitArgs};
use tempfile::TempDir;

/// Largest differences, absolute, of logits and of numbers of words. Captum computed in float64, the models here in float32.
const LOGITS: f64 = 1e-5;
const WORDS: f64 = 2e-6;

/// The number of a word by one method.
type NumberOf = fn(&ExplainedWord) -> f64;

fn parity() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity")
}

/// A model of the fixtures; the tiny BERT gets the vocabulary `w5` to `w127`, whose ids are these numbers.
fn load(model: &str, labels: usize) -> (BertForSequenceClassification, TempDir) {
    let folder = TempDir::new().expect("a temporary folder");
    for file in fs::read_dir(parity().join(model)).expect("the fixture's folder") {
        let path = file.expect("a file").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("room");
    }
    if model.starts_with("tiny-bert") {
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
        let words = special
            .into_iter()
            .chain((5..128).map(|index| format!("w{index}")));
        let words: Vec<String> = words.collect();
        fs::write(folder.path().join("vocab.txt"), words.join("\n") + "\n").expect("room");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    (
        BertForSequenceClassification::from_pretrained(path, labels).expect("the fixture loads"),
        folder,
    )
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it.as_f64().expect("a number"))
        .collect()
}

fn largest_difference(own: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(own.len(), expected.len());
    own.iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

fn fixture() -> Value {
    let text = fs::read_to_string(parity().join("captum/cases.json")).expect("the fixture");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_numbers_are_those_of_captum() {
    let fixture = fixture();
    for model in fixture["models"].as_array().expect("models") {
        let name = model["model"].as_str().expect("a name");
        let classes = numbers(&model["texts"][0]["logits"]).len();
        let (own, _folder) = load(name, classes);
        for case in model["texts"].as_array().expect("texts") {
            let text = case["text"].as_str().expect("a text");
            let found: Explanation = own.explain(text).expect("it has words");
            let target = case["target"].as_u64().expect("a class") as usize;
            assert_eq!(found.label, own.label_names()[target], "{name}: {text}");
            let logits = numbers(&case["logits"]);
            let reference = case["reference"].as_f64().expect("a number");
            let delta = case["delta"].as_f64().expect("a number");
            assert!(
                (found.logit - logits[target]).abs() < LOGITS,
                "{name}: {text}"
            );
            assert!(
                (found.reference - reference).abs() < LOGITS,
                "{name}: {text}"
            );
            assert!(
                (found.delta - delta).abs() < WORDS,
                "{name}: {text}: {} {delta}",
                found.delta
            );
            let of: [(&str, NumberOf); 4] = [
                ("integrated_gradients", |it| it.integrated_gradients),
                ("gradient_input", |it| it.gradient_input),
                ("occlusion", |it| it.occlusion),
                ("rollout", |it| it.rollout),
            ];
            for (method, of) in of {
                let expected = numbers(&case[method]);
                let values: Vec<f64> = found.words.iter().map(of).collect();
                let difference = largest_difference(&values, &expected);
                let peak = expected.iter().fold(0.0_f64, |sum, it| sum.max(it.abs()));
                assert!(
                    difference < WORDS && difference < 0.05 * peak,
                    "{name}, {text}, {method}: {difference} of {peak}"
                );
            }
        }
    }
}

#[test]
fn the_integral_is_complete_and_more_steps_bring_it_nearer() {
    let (model, _folder) = load("families/distilbert", 3);
    let text = "A chess game for two players";
    let delta = |steps: usize| {
        let found = model
            .explain_with(text, &ExplainOptions::new().steps(steps))
            .expect("words");
        found.delta.abs() / (found.logit - found.reference).abs()
    };
    assert!(delta(300) < delta(2), "{} {}", delta(300), delta(2));
    assert!(delta(300) < 0.01, "{}", delta(300));
    assert!(model.explain(text).expect("words").is_complete());
}

#[test]
fn another_class_and_a_pair_are_explained() {
    let (model, _folder) = load("families/roberta", 2);
    let names = model.label_names();
    let predicted = model.explain(("which port?", "a proxy")).expect("words");
    assert_eq!(
        predicted.words.iter().filter(|word| word.in_pair).count(),
        2
    );
    let other = names
        .iter()
        .find(|name| **name != predicted.label)
        .expect("another class");
    let asked = model
        .explain_with(
            ("which port?", "a proxy"),
            &ExplainOptions::new().class(other),
        )
        .expect("words");
    assert!(!asked.is_predicted && asked.label == *other && asked.logit < predicted.logit);
    let plain = predicted.to_plain();
    assert!(
        plain.contains("port?") && plain.contains("complete"),
        "{plain}"
    );
    let html = predicted.to_html();
    assert!(html.contains("⏐") && !html.contains("<script") && html.contains("rgba("));
}

/// The tiny BERT, trained so that words of two kinds decide.
fn trained() -> (BertForSequenceClassification, TempDir) {
    let (model, folder) = load("tiny-bert/sequence-classification", 3);
    let text = |row: usize| {
        let first = if row.is_multiple_of(2) { 5 } else { 65 };
        (0..5)
            .map(|at| format!("w{}", first + (row * 13 + at * 7) % 50))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let labels = (0..240).map(|row| ["cat", "cow", "dog"][2 * (row % 2)]);
    let labels = labels.chain(["cow"]);
    let data = Dataset::from_rows((0..240).map(text).chain(["w120".to_owned()]), labels);
    let args = CompileArgs::new()
        .optimizer(AdamW::new(3e-3))
        .loss("sparse_categorical_crossentropy");
    model.compile(args).expect("valid arguments");
    let fit = FitArgs::new().epochs(3).batch_size(16).verbose(false);
    model.fit(&data.expect("rows"), fit).expect("it trains");
    (model, folder)
}

/// No smaller set of words, tried one by one with `predict`, changes the class.
#[test]
fn a_counterfactual_is_the_smallest_set() {
    let (model, _folder) = trained();
    let class = |text: &str| {
        let answers = model.predict([text]).expect("a text");
        answers.rows[0].label.clone()
    };
    let mut changed = 0;
    for seed in 0..5 {
        // Three words of one kind and two of the other.
        let words: Vec<String> = (0..5)
            .map(|at| format!("w{}", 5 + 60 * (at % 2) + (seed * 17 + at * 11) % 50))
            .collect();
        let text = words.join(" ");
        let found = model.counterfactual(text.as_str()).expect("words");
        assert_eq!(found.before.0, class(&text));
        let without = |removed: u32| {
            let kept = words
                .iter()
                .enumerate()
                .filter(|(at, _)| removed >> at & 1 == 0);
            kept.map(|(_, word)| word.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let flips = (1..31_u32).filter(|&removed| class(&without(removed)) != found.before.0);
        let smallest = flips.map(u32::count_ones).min();
        let own = found.text.is_some().then(|| found.removed().len() as u32);
        assert_eq!(own, smallest, "{text}");
        if let Some((rest, _)) = &found.text {
            changed += 1;
            assert_eq!(class(rest), found.after.0);
            assert!(
                found.is_smallest && found.to_plain().contains('['),
                "{found}"
            );
        }
    }
    assert!(changed > 0, "no removal changes a class");
}

#[test]
fn a_long_text_is_searched_word_by_word() {
    let (model, _folder) = load("tiny-bert/sequence-classification", 3);
    let text: Vec<String> = (0..40)
        .map(|at| format!("w{}", 5 + at * 29 % 120))
        .collect();
    let found = model.counterfactual(text.join(" ")).expect("words");
    assert!(found.tried <= 1500 + 40 * 40, "{}", found.tried);
    assert_eq!(found.words.len(), 40);
}

#[test]
fn what_cannot_be_explained() {
    let (model, _folder) = load("tiny-bert/sequence-classification", 3);
    let code =
        |found: stratoscope_diagnostics::Result<Explanation>| found.expect_err("bad input").code;
    assert_eq!(code(model.explain("  \n")), "SC0724");
    assert_eq!(
        code(model.explain_with("w5", &ExplainOptions::new().class("gmaes"))),
        "SC0721"
    );
    assert_eq!(
        code(model.explain_with("w5", &ExplainOptions::new().steps(0))),
        "SC0103"
    );
    assert_eq!(
        model.counterfactual("").expect_err("no word").code,
        "SC0724"
    );
    let one = BertForSequenceClassification::from_pretrained(
        parity()
            .join("tiny-bert/regression")
            .to_str()
            .expect("UTF-8"),
        1,
    );
    if let Ok(one) = one {
        assert_eq!(
            one.counterfactual("w5").expect_err("one output").code,
            "SC0103"
        );
    }
}

/// Texts of two classes with words of their own, one label wrong and one text twice.
#[test]
fn data_is_audited_with_the_vectors_of_a_model() {
    let (model, _folder) = load("tiny-bert/sequence-classification", 3);
    // Words by chance, so that no two texts are similar but those that are equal.
    let text = |row: usize| {
        let word =
            |at: usize| 5 + 60 * (row % 2) + random::mix((row * 5 + at + 1) as u64) as usize % 60;
        (0..5)
            .map(|at| format!("w{}", word(at)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut texts: Vec<String> = (0..60).map(text).collect();
    texts[41] = texts[7].clone();
    let labels: Vec<&str> = (0..60)
        .map(|row| ["cat", "dog"][(row + usize::from(row == 22)) % 2])
        .collect();
    let data = Dataset::from_rows(texts, labels).expect("rows");
    let audit = model.audit(&data).expect("classes");
    assert_eq!(audit.duplicates().surplus("data"), [41]);
    assert!(
        audit.wrong_labels().row_numbers().contains(&22),
        "{}",
        audit.wrong_labels().to_plain()
    );
    assert_eq!(
        model.audit(&data.take(6)).expect_err("too few").code,
        "SC0723"
    );
    let numbers = Dataset::from_features([[1.0_f32, 2.0], [2.0, 1.0]]).expect("rows");
    assert_eq!(model.audit(&numbers).expect_err("no texts").code, "SC0103");
    assert_eq!(
        model
            .audit(&Dataset::from_texts(["a", "b"]))
            .expect_err("no labels")
            .code,
        "SC0722"
    );
}
