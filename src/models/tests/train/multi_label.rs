//! Several labels a text: training, strategies, evaluation, prediction, saving, and what is refused.

use stratoscope_data::{Columns, Data, Dataset, IntoData, Stream};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, BinaryCrossentropy, CompileArgs, EvaluateArgs, FitArgs,
    LoadOptions, SGD, accuracy, auc, exact_match, macro_f1, micro_f1,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{assert_near_weights, load, plain_args, sentences, tiny_bert, weights};

const LABELS: [&str; 3] = ["blue", "green", "red"];

/// Words of three kinds in any mixture; a text has the label of every kind that it has a word of, and may have none.
fn mixed(count: usize) -> Dataset {
    let text = |row: usize| {
        let kinds = row * 5 % 8;
        let (mut words, mut labels) = (vec![format!("w{}", 110 + row % 7)], Vec::new());
        for (kind, label) in LABELS.into_iter().enumerate() {
            if kinds >> kind & 1 == 1 {
                let word = |at: usize| format!("w{}", 10 + kind * 30 + (row * 11 + at * 5) % 25);
                words.extend((0..3).map(word));
                labels.push(label);
            }
        }
        (words.join(" "), labels)
    };
    Dataset::from_label_sets((0..count).map(text)).expect("labels with names")
}

fn model(folder: &TempDir) -> BertForSequenceClassification {
    let path = folder.path().to_str().expect("a path in UTF-8");
    // The checkpoint's own head has 3 outputs.
    BertForSequenceClassification::from_pretrained_multi_label(path, LABELS)
        .expect("the fixture loads")
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(0.001))
        .loss(BinaryCrossentropy { from_logits: true })
        .metrics([micro_f1(), macro_f1(), accuracy(), exact_match()])
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(8).seed(3).verbose(false)
}

#[test]
fn it_learns_its_labels_and_says_them() {
    let (train, dev) = (mixed(96), mixed(130).skip(96));
    let model = model(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let history = model.fit(&train, quiet().epochs(45)).expect("it trains");
    let last = history.epochs.last().expect("an epoch");
    assert!(last.loss < 0.2, "{history:?}");
    let found = model
        .evaluate(&dev, EvaluateArgs::new().verbose(false))
        .expect("it is evaluated");
    let value = |name: &str| {
        let metric = found.metrics.iter().find(|it| it.name == name);
        metric.and_then(|it| it.value).expect("it is measured")
    };
    assert!(
        value("micro_f1") > 0.95 && value("exact_match") > 0.85,
        "{found:?}"
    );
    let answers = model.predict(&dev).expect("it answers");
    let found_sets = answers.label_sets();
    let right = found_sets
        .iter()
        .zip(&dev.examples)
        .filter(|(found, example)| {
            let classes = example.classes().expect("a set");
            let names = classes.iter().map(|&class| LABELS[class]);
            names.eq(found.iter().copied())
        });
    let share = right.count() as f64 / dev.len() as f64;
    assert!((share - value("exact_match")).abs() < 1e-9);
    assert!(answers.confusion_matrix(&dev).is_err() && answers.assess(&dev).is_err());

    // What is saved is loaded, and stays what it is.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is written");
    assert!(config.contains("multi_label_classification"), "{config}");
    let loaded = load(&folder);
    assert_eq!(loaded.predict(&dev).expect("it answers"), answers);
}

#[test]
fn strategies_train_the_weights_of_one_device() {
    let run = |strategy: &Strategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = model(&tiny_bert(0.0));
        model
            .compile(args().optimizer(SGD::new(0.5)))
            .expect("valid arguments");
        let history = model
            .fit(&mixed(13), quiet().batch_size(4))
            .expect("it trains");
        let placement = model.placement().expect("the devices answer");
        assert!(placement.copies_are_equal(), "{}", placement.verdict());
        (weights(&model), history.epochs[0].metrics.clone())
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, measured) = run(&one.strategy());
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (mirrored, of_two) = run(&two.strategy());
    assert_near_weights(&mirrored, &expected);
    assert_eq!(of_two, measured, "labels are counted alike");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    assert!(run(&central.strategy()).0 == mirrored, "the same bits");
}

#[test]
fn a_run_is_looked_into_like_any_other() {
    let model = model(&tiny_bert(0.1));
    model.compile(args()).expect("valid arguments");
    let run = model.start(&mixed(24), quiet()).expect("it starts");
    run.step(2).expect("two steps");
    let batch = run.batch().expect("a batch");
    let labels = batch.examples.iter().filter_map(|it| it.label.as_deref());
    assert!(
        labels.clone().any(|label| label.contains(", ")),
        "{batch:?}"
    );
    assert!(run.gradients().is_ok() && run.report().is_ok() && run.why().is_ok());
    assert!(run.worst(3).is_ok());
    run.finish().expect("it trains");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let model = model(&tiny_bert(0.0));
    let problem = model.compile(plain_args()).expect_err("another loss");
    assert_eq!(problem.code, "SC0103");
    assert!(
        format!("{problem:?}").contains("BinaryCrossentropy"),
        "{problem:?}"
    );
    let problem = model
        .compile(args().metrics([auc()]))
        .expect_err("another metric");
    assert!(format!("{problem:?}").contains("micro_f1"), "{problem:?}");
    model.compile(args()).expect("valid arguments");
    let problem = model
        .fit(&sentences(6), quiet())
        .expect_err("one class each");
    assert_eq!(problem.code, "SC0431");
    let other = Dataset::from_label_sets([("w10", vec!["yellow"])]).expect("a label");
    model.fit(&mixed(8), quiet()).expect("it trains");
    let problem = model.fit(&other, quiet()).expect_err("an unknown label");
    assert_eq!(problem.code, "SC0913");
    let weighted = quiet().class_weight([(0, 2.0), (1, 1.0), (2, 1.0)]);
    let problem = model.fit(&mixed(8), weighted).expect_err("no classes");
    assert_eq!(problem.code, "SC0103");

    let classifier = load(&tiny_bert(0.0));
    classifier.compile(plain_args()).expect("valid arguments");
    let problem = classifier.fit(&mixed(8), quiet()).expect_err("sets");
    assert_eq!(problem.code, "SC0431");
    assert!(
        format!("{problem:?}").contains("from_pretrained_multi_label"),
        "{problem:?}"
    );
    let problem = classifier.compile(plain_args().metrics([micro_f1()]));
    assert_eq!(problem.expect_err("one class each").code, "SC0103");
}

/// A text has the label or not.
#[test]
fn one_label_is_a_set_too() {
    let data = mixed(48);
    let with_red = data.map(|example| {
        let red = example
            .classes()
            .is_some_and(|classes| classes.contains(&2));
        example.with_classes(red.then_some(0))
    });
    let data = Dataset::from_examples(with_red.examples, vec!["red".to_owned()], "texts");
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let several = BertForSequenceClassification::from_pretrained_multi_label(path, ["red"]);
    several.expect_err("the checkpoint's head has 3 outputs");
    let options = LoadOptions::new().num_labels(1).multi_label().new_head();
    let model = BertForSequenceClassification::from_pretrained_with(path, &options);
    let model = model.expect("a new head");
    model
        .compile(args().optimizer(AdamW::new(5e-3)))
        .expect("valid arguments");
    model.fit(&data, quiet().epochs(30)).expect("it trains");
    let answers = model.predict(&data).expect("it answers");
    let sets = answers.label_sets();
    let pairs = sets.iter().zip(&data.examples);
    let right = pairs.filter(|(set, example)| {
        let count = example.classes().map(<[usize]>::len);
        Some(set.len()) == count && set.iter().all(|name| *name == "red")
    });
    assert!(right.count() > 40, "{answers}");
    // What is saved stays what it is.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let again = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    assert_eq!(again.predict(&data).expect("it answers"), answers);
    let again = BertForSequenceClassification::from_pretrained_multi_label(path, ["red"]);
    let again = again.expect("it loads");
    assert_eq!(again.predict(&data).expect("it answers"), answers);
}

/// Texts with their labels between `;` in a file.
fn table(folder: &TempDir, name: &str, data: &Dataset) -> std::path::PathBuf {
    let path = folder.path().join(name);
    let row = |it: &stratoscope_data::Example| {
        let classes = it.classes().unwrap_or_default();
        let names: Vec<&str> = classes
            .iter()
            .map(|&it| data.label_names[it].as_str())
            .collect();
        format!("{}\t{}\n", it.text, names.join(";"))
    };
    let rows: String = data.examples.iter().map(row).collect();
    std::fs::write(&path, format!("text\tlabels\n{rows}")).expect("room");
    path
}

#[test]
fn a_stream_trains_to_the_bits_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let columns = Columns::new().labels("labels", ";");
    let (train, dev) = (
        table(&folder, "train.tsv", &mixed(41)),
        table(&folder, "dev.tsv", &mixed(9)),
    );
    let held = |path| Dataset::tsv_with(path, &columns).expect("rows");
    let stream = |path| Stream::tsv_with(path, &columns).expect("rows");
    let trained = |train: Data<'_>, dev: Data<'_>| {
        let model = model(&tiny_bert(0.1));
        model.compile(args()).expect("valid arguments");
        let history = model.fit(train, quiet().epochs(2).validation_data(dev));
        let history = history.expect("it trains");
        let evaluated = model.evaluate(train, EvaluateArgs::new().verbose(false));
        let evaluated = evaluated.expect("it is evaluated");
        let of_validation: Vec<_> = (history.epochs.iter())
            .filter_map(|it| it.validation.as_ref())
            .map(|it| (it.loss.to_bits(), it.metrics.clone()))
            .collect();
        (weights(&model), of_validation, evaluated.loss.to_bits())
    };
    let (streamed, streamed_dev) = (stream(&train), stream(&dev));
    assert!(streamed.has_label_sets());
    assert_eq!(streamed.class_counts(), held(&train).class_counts());
    let expected = trained((&held(&train)).into_data(), (&held(&dev)).into_data());
    let found = trained((&streamed).into_data(), (&streamed_dev).into_data());
    assert!(found.0 == expected.0, "other weights");
    assert_eq!((found.1.len(), found.2), (2, expected.2));
    assert_eq!(format!("{:?}", found.1), format!("{:?}", expected.1));
}

#[test]
fn a_stream_that_does_not_fit_is_refused_before_the_first_step() {
    let folder = TempDir::new().expect("a folder");
    let columns = Columns::new().labels("labels", ";");
    let write = |name: &str, rows: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("text\tlabels\n{rows}")).expect("room");
        Stream::tsv_with(path, &columns).expect("rows")
    };
    let sets = write("sets.tsv", "w10 w11\tred;blue\nw40\t\nw41\tgreen\n");
    let refused = |model: &BertForSequenceClassification, data: &Stream, words: &str| {
        let error = model.fit(data, quiet()).expect_err(words);
        assert!(format!("{error:?}").contains(words), "{words}: {error:?}");
        error.code
    };
    let several = || {
        let several = model(&tiny_bert(0.0));
        several.compile(args()).expect("valid arguments");
        several
    };
    several().fit(&sets, quiet()).expect("it trains");
    let unknown = write("unknown.tsv", "w10\tred\nw11\tblue; pink\n");
    assert_eq!(refused(&several(), &unknown, "pink"), "SC0913");
    let four = write("four.tsv", "w10\tblue\nw11\tgreen;red;zebra\nw12\tred\n");
    assert_eq!(refused(&several(), &four, "w11"), "SC0301");
    let one = load(&tiny_bert(0.0));
    one.compile(plain_args()).expect("valid arguments");
    assert_eq!(refused(&one, &sets, "multi_label"), "SC0431");
    let path = table(&folder, "classes.tsv", &mixed(9));
    let classes = Columns::new().label("labels").fill_missing("none");
    let classes = Stream::tsv_with(path, &classes).expect("rows");
    assert_eq!(refused(&several(), &classes, "a set of labels"), "SC0431");
}
