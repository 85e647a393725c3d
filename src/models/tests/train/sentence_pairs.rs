//! Sentence embeddings that learn from pairs of texts: the cosine, training, strategies, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use stratoscope_data::{Columns, Data, Dataset, Example, IntoData, Label, Stream};
use stratoscope_models::{
    AdamW, BertForSentenceEmbedding, BinaryCrossentropy, CompileArgs, EvaluateArgs, FitArgs,
    MeanSquaredError, SGD, pearson, spearman,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu, scope};
use tempfile::TempDir;

use crate::support::{cross_entropy, tiny_bert};

/// Words of one of three kinds.
fn text(kind: usize, salt: usize) -> String {
    let words = (0..3 + salt % 4).map(|at| 10 + kind * 30 + (salt * 11 + at * 5) % 25);
    words
        .map(|word| format!("w{word}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Pairs of texts; those of the same kind belong together.
fn pairs(count: usize) -> Dataset {
    let pair = |row: usize| {
        let (first, second) = (row % 3, row / 3 % 3);
        let label = if first == second { 0.9 } else { 0.1 };
        Example::new(text(first, row))
            .with_pair(text(second, row * 7 + 3))
            .with_label(Label::Value(label))
    };
    Dataset::from_examples((0..count).map(pair), Vec::new(), "pairs")
}

fn model(folder: &TempDir) -> BertForSentenceEmbedding {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForSentenceEmbedding::from_pretrained(path).expect("the fixture loads")
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(2e-3))
        .loss(MeanSquaredError)
        .metrics([pearson(), spearman()])
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(8).seed(3).verbose(false)
}

/// The cosines of the pairs by the vectors of their texts.
fn cosines(model: &BertForSentenceEmbedding, data: &Dataset) -> Vec<f64> {
    let first = data.examples.iter().map(|example| example.text.clone());
    let second = data
        .examples
        .iter()
        .filter_map(|example| example.pair.clone());
    let first = model.embed(first.collect::<Vec<_>>()).expect("vectors");
    let second = model.embed(second.collect::<Vec<_>>()).expect("vectors");
    let all = first.similarity(&second).expect("of one model");
    (0..data.len()).map(|row| all[row][row]).collect()
}

#[test]
fn the_loss_is_that_of_the_vectors_by_themselves() {
    let (data, model) = (pairs(21), model(&tiny_bert(0.0)));
    model.compile(args()).expect("valid arguments");
    let found = model
        .evaluate(&data, EvaluateArgs::new().batch_size(4).verbose(false))
        .expect("it is evaluated");
    let square = |(example, cosine): (&Example, f64)| match example.label {
        Some(Label::Value(label)) => (cosine - f64::from(label)).powi(2),
        _ => panic!("every pair has a number"),
    };
    let squares: f64 = data
        .examples
        .iter()
        .zip(cosines(&model, &data))
        .map(square)
        .sum();
    assert!((found.loss - squares / 21.0).abs() < 1e-5, "{found:?}");
}

#[test]
fn pairs_teach_what_belongs_together() {
    let (train, dev) = (pairs(90), pairs(126).skip(90));
    let model = model(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let args = quiet().epochs(20).validation_data(&dev);
    let history = model.fit(&train, args).expect("it trains");
    let last = history.epochs.last().expect("an epoch");
    assert!(last.loss < 0.2 * history.epochs[0].loss, "{history}");
    let of_dev = cosines(&model, &dev);
    for (example, cosine) in dev.examples.iter().zip(of_dev) {
        let belongs = example.label == Some(Label::Value(0.9));
        assert_eq!(cosine > 0.5, belongs, "{example:?}: {cosine}");
    }
    assert!(format!("{history}").contains("spearman"), "{history}");
}

#[test]
fn two_devices_learn_what_one_does() {
    let strategies: [Strategy; 2] = [
        OneDeviceStrategy::new(cpu(0)).expect("one").strategy(),
        MirroredStrategy::logical(2).expect("two").strategy(),
    ];
    let [one, two] = strategies.map(|strategy| {
        let _scope = scope::enter(&strategy).expect("a scope");
        let model = model(&tiny_bert(0.0));
        model
            .compile(args().optimizer(SGD::new(0.05)))
            .expect("valid arguments");
        model.fit(&pairs(27), quiet().epochs(2)).expect("it trains");
        cosines(&model, &pairs(30).skip(27))
    });
    for (one, two) in one.iter().zip(&two) {
        assert!((one - two).abs() < 1e-4, "{one} and {two}");
    }
}

/// A file of pairs.
fn write(folder: &TempDir, data: &Dataset) -> PathBuf {
    let path = folder.path().join("pairs.tsv");
    let row = |example: &Example| {
        let pair = example.pair.as_deref().unwrap_or_default();
        let label = match example.label {
            Some(Label::Value(value)) => value.to_string(),
            _ => String::new(),
        };
        format!("{}\t{pair}\t{label}\n", example.text)
    };
    let rows: String = data.examples.iter().map(row).collect();
    fs::write(&path, format!("first\tsecond\tsimilarity\n{rows}")).expect("room");
    path
}

#[test]
fn pairs_of_a_stream_teach_what_those_in_memory_do() {
    let columns = Columns::new()
        .text("first")
        .pair("second")
        .value("similarity");
    let folder = TempDir::new().expect("a folder");
    let path = write(&folder, &pairs(27));
    let held = Dataset::tsv_with(&path, &columns).expect("pairs");
    let stream = Stream::tsv_with(&path, &columns).expect("pairs");
    let trained = |data: Data<'_>| {
        let model = model(&tiny_bert(0.0));
        model.compile(args()).expect("valid arguments");
        model
            .fit(data, quiet().epochs(2))
            .expect("it trains")
            .steps
            .iter()
            .map(|step| step.loss.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(trained(stream.into_data()), trained(held.into_data()));

    let model = model(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let refused = |path: &Path, columns: &Columns| {
        let stream = Stream::tsv_with(path, columns).expect("rows");
        model.fit(&stream, quiet()).expect_err("refused")
    };
    let far = pairs(6).map(|example| Example {
        label: Some(Label::Value(5.0)),
        ..example
    });
    let problem = refused(&write(&folder, &far), &columns);
    assert_eq!(problem.code, "SC0103");
    assert!(format!("{problem:?}").contains("6 rows are"), "{problem:?}");
    let alone = Columns::new().text("first").value("similarity");
    let problem = refused(&path, &alone);
    assert_eq!(problem.code, "SC0431");
    assert!(
        format!("{problem:?}").contains("Stream::tsv_with"),
        "{problem:?}"
    );
}

#[test]
fn what_is_refused_has_its_words() {
    let model = model(&tiny_bert(0.0));
    let refused = |args: CompileArgs| model.compile(args).expect_err("refused").to_string();
    for loss in [
        refused(args().loss(cross_entropy())),
        refused(args().loss(BinaryCrossentropy { from_logits: true })),
    ] {
        assert!(
            loss.contains("SC0103") && loss.contains("MeanSquaredError"),
            "{loss}"
        );
    }
    model.compile(args()).expect("valid arguments");
    let code = |data: Dataset| model.fit(&data, quiet()).expect_err("refused");
    let alone = Dataset::from_texts(["w10 w11", "w12"]);
    assert_eq!(code(alone).code, "SC0431");
    let unlabelled = Dataset::from_pairs([("w10", "w11"), ("w12", "w13")]);
    assert_eq!(code(unlabelled).code, "SC0313");
    let far = pairs(6).map(|example| Example {
        label: Some(Label::Value(5.0)),
        ..example
    });
    let problem = code(far);
    assert_eq!(problem.code, "SC0103");
    assert!(
        problem.to_string().contains("5") && format!("{problem:?}").contains("divide"),
        "{problem:?}"
    );
    let classes = Dataset::from_pair_rows([("w10", "w11"), ("w40", "w12")], ["1", "0"]);
    model
        .fit(&classes.expect("two rows"), quiet())
        .expect("two classes are cosines too");
}
