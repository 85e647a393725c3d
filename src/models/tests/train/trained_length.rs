//! `evaluate!` and `predict` read as many tokens as the training did.

use stratoscope_data::Dataset;
use stratoscope_models::{EvaluateArgs, Evaluation, FitArgs};

use crate::support::{load, plain_args, tiny_bert};

/// Texts of twelve words, of which the first three say nothing and the last one says the class.
fn texts() -> Dataset {
    let text = |row: usize| {
        let filler = (0..11).map(|word| format!("w{}", 10 + (row + word) % 20));
        let words: Vec<String> = filler
            .chain([format!("w{}", 40 + 30 * (row % 3))])
            .collect();
        words.join(" ")
    };
    let classes = ["red", "green", "blue"];
    Dataset::from_labelled((0..24).map(|row| (text(row), classes[row % 3])))
}

#[test]
fn a_model_is_measured_and_asked_with_the_length_of_its_training() {
    let data = texts();
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let evaluate = |max_length: Option<usize>| -> Evaluation {
        let args = EvaluateArgs::new().verbose(false);
        let args = match max_length {
            Some(tokens) => args.max_length(tokens),
            None => args,
        };
        model.evaluate(&data, args).expect("it is evaluated")
    };
    let loss = |found: &Evaluation| found.loss.to_bits();
    // Before a training all of the twelve words are read.
    assert_eq!(loss(&evaluate(None)), loss(&evaluate(Some(64))));
    let whole = model.predict(&data).expect("answers");
    assert!(whole.cut.is_none());

    let fit = FitArgs::new().batch_size(8).max_length(6).verbose(false);
    model.fit(&data, fit).expect("it trains");
    let (usual, short, long) = (evaluate(None), evaluate(Some(6)), evaluate(Some(64)));
    assert_eq!(loss(&usual), loss(&short));
    assert_ne!(loss(&usual), loss(&long));
    for (found, expected) in [(&usual, false), (&short, false), (&long, true)] {
        let line = "measured with max_length = 64; the model was trained with 6";
        assert_eq!(found.to_plain().contains(line), expected, "{found}");
        assert_eq!(found.to_html().contains(line), expected, "{found}");
    }
    let answers = model.predict(&data).expect("answers");
    assert_eq!(
        answers.cut.map(|cut| (cut.texts, cut.max_length)),
        Some((24, 6))
    );
    // [CLS], four words, [SEP].
    let beginnings = data.map(|mut example| {
        let words: Vec<&str> = example.text.split(' ').take(4).collect();
        example.text = words.join(" ");
        example
    });
    let of_beginnings = model.predict(&beginnings).expect("answers");
    let probabilities = |row: &stratoscope_models::Prediction| row.probabilities.clone();
    let [found, expected] = [&answers, &of_beginnings]
        .map(|answers| answers.rows.iter().map(probabilities).collect::<Vec<_>>());
    assert_eq!(found, expected);

    // A saved model has it, too.
    let folder = tempfile::tempdir().expect("a folder");
    model.save_pretrained(folder.path()).expect("it is written");
    let loaded = load(&folder);
    let again = loaded.predict(&data).expect("answers");
    assert_eq!(again.cut.map(|cut| cut.max_length), Some(6));
    let again: Vec<_> = again.rows.iter().map(probabilities).collect();
    assert_eq!(again, expected);

    // The length is that of the latest run.
    let fit = FitArgs::new().batch_size(8).max_length(20).verbose(false);
    model.fit(&data, fit).expect("it trains");
    assert!(model.predict(&data).expect("answers").cut.is_none());
}
