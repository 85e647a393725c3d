//! `BertForTokenClassification` from words and tags to entities: training, strategies, evaluation, prediction, saving, and
//! what is wrong with data.

use stratoscope_data::{Annotation, Dataset};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, BertForTokenClassification, CompileArgs, EvaluateArgs,
    FitArgs, SGD, accuracy, entity_f1, entity_precision, entity_recall, f1,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, heard, load, plain_args, sentences, tiny_bert, weights,
};

/// Sentences in which w40 to w59 begin a person and go on as one, and w80 to w99 are places.
pub(crate) fn tagged(count: usize) -> Dataset {
    let sentence = |row: usize| {
        let (mut words, mut tags) = (Vec::new(), Vec::new());
        for at in 0..4 + row * 7 % 6 {
            let kind = (row * 5 + at * 3) % 7;
            let (first, tag) = match kind {
                0 => (40, "B-PER"),
                1 | 2 => (80, "B-LOC"),
                _ => (10, "O"),
            };
            words.push(format!("w{}", first + (row * 11 + at * 5) % 20));
            tags.push(tag.to_owned());
            if tag == "B-PER" {
                words.push(format!("w{}", 60 + (row + at) % 15));
                tags.push("I-PER".to_owned());
            }
        }
        (words, tags)
    };
    Dataset::from_words((0..count).map(sentence)).expect("a tag for each word")
}

pub(crate) fn tagger(folder: &TempDir, tags: usize) -> BertForTokenClassification {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForTokenClassification::from_pretrained(path, tags).expect("the fixture loads")
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(cross_entropy())
        .metrics([entity_f1(), entity_precision(), entity_recall(), accuracy()])
}

#[test]
fn it_learns_its_entities_and_says_them() {
    let (train, dev) = (tagged(96), tagged(130).skip(96));
    let model = tagger(&tiny_bert(0.0), 4);
    model.compile(args()).expect("valid arguments");
    let fit = FitArgs::new()
        .batch_size(8)
        .epochs(12)
        .seed(3)
        .validation_data(&dev)
        .verbose(false);
    let history = model.fit(&train, fit).expect("it trains");
    let last = history.epochs.last().expect("an epoch");
    assert!(last.loss < 0.2, "{history:?}");
    let found = model
        .evaluate(&dev, EvaluateArgs::new().verbose(false))
        .expect("it is evaluated");
    let value = |name: &str| {
        let found = found.metrics.iter().find(|it| it.name == name);
        found.and_then(|it| it.value).expect("it is measured")
    };
    let (f1, precision, recall) = (
        value("entity_f1"),
        value("entity_precision"),
        value("entity_recall"),
    );
    assert!(f1 > 0.9 && value("accuracy") > 0.9, "{found:?}");
    assert!((f1 - 2.0 * precision * recall / (precision + recall)).abs() < 1e-9);
    // The batch size changes neither what is counted nor which entities are found.
    let again = model
        .evaluate(&dev, EvaluateArgs::new().batch_size(5).verbose(false))
        .expect("it is evaluated");
    assert_eq!(again.metrics, found.metrics);
    assert!(
        (again.loss - found.loss).abs() < 1e-5,
        "{again:?} {found:?}"
    );

    // Words of the data, and those of a plain text.
    let answers = model.predict(&dev).expect("it answers");
    let tags = answers.tags();
    let right = tags.iter().zip(&dev.examples).filter(|(tags, example)| {
        let words = example.words().expect("it has words");
        words
            .iter()
            .map(|word| dev.label_names[word.tag.expect("a tag")].as_str())
            .eq(tags.iter().copied())
    });
    assert!(right.count() > 25);
    let matrix = answers.confusion_matrix(&dev).expect("the same words");
    assert!(format!("{matrix}").contains("B-PER"));
    let answer = model.predict("w12 w45 w62 w91 w13").expect("it answers");
    let row = &answer.rows[0];
    let marks: Vec<(&str, &str)> = row
        .marks
        .iter()
        .map(|it| (it.label.as_str(), it.text.as_str()))
        .collect();
    assert_eq!(marks, [("PER", "w45 w62"), ("LOC", "w91")], "{answer}");
    assert_eq!(&row.text[row.marks[1].start..row.marks[1].end], "w91");
    assert_eq!(row.words.len(), 5);
    assert!(
        answer.to_html().contains("PER") && answer.to_plain().contains("[w91 LOC"),
        "{answer}"
    );

    // What is saved is loaded, with the names of the tags.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is written");
    assert!(
        config.contains("BertForTokenClassification") && config.contains("B-PER"),
        "{config}"
    );
    let loaded = tagger(&folder, 4);
    assert_eq!(loaded.predict(&dev).expect("it answers"), answers);
}

#[test]
fn strategies_train_the_weights_of_one_device() {
    let run = |strategy: &Strategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = tagger(&tiny_bert(0.0), 4);
        model
            .compile(args().optimizer(SGD::new(0.5)))
            .expect("valid arguments");
        let fit = FitArgs::new().batch_size(4).seed(5).verbose(false);
        let history = model.fit(&tagged(13), fit).expect("it trains");
        let placement = model.placement().expect("the devices answer");
        assert!(placement.copies_are_equal(), "{}", placement.verdict());
        let measured = history.epochs[0].metrics.clone();
        (weights(&model), measured)
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, measured) = run(&one.strategy());
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (mirrored, of_two) = run(&two.strategy());
    assert_near_weights(&mirrored, &expected);
    assert_eq!(of_two, measured, "entities are counted alike");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    for strategy in [central.strategy(), servers.synchronous().strategy()] {
        assert!(
            run(&strategy).0 == mirrored,
            "{strategy}: the same bits as mirrored"
        );
    }
}

#[test]
fn a_run_is_looked_into_like_any_other() {
    let model = tagger(&tiny_bert(0.1), 4);
    model.compile(args()).expect("valid arguments");
    let run = model
        .start(&tagged(24), FitArgs::new().batch_size(8).verbose(false))
        .expect("it starts");
    run.step(2).expect("two steps");
    let batch = run.batch().expect("a batch");
    assert!(batch.to_html().contains("w"), "{batch:?}");
    assert!(run.gradients().is_ok() && run.report().is_ok() && run.why().is_ok());
    assert!(run.worst(3).is_ok());
    run.finish().expect("it trains");
}

#[test]
fn bad_data_is_refused_in_words() {
    let model = tagger(&tiny_bert(0.0), 4);
    model.compile(args()).expect("valid arguments");
    let fit = || FitArgs::new().batch_size(4).verbose(false);
    let refused = |data: &Dataset| {
        let problem = model.fit(data, fit()).expect_err("it is refused");
        (problem.code.clone(), format!("{problem:?}"))
    };
    let (code, shown) = refused(&sentences(6));
    assert!(
        code == "SC0431" && shown.contains("BertForSequenceClassification"),
        "{shown}"
    );
    // More tags than outputs.
    let many = Dataset::from_words([(vec!["w10"; 5], vec!["O", "B-A", "B-B", "B-C", "B-D"])])
        .expect("tags");
    let (code, shown) = refused(&many);
    assert!(code == "SC0301" && shown.contains('4'), "{shown}");
    model.fit(&tagged(8), fit()).expect("it trains");
    // A tag that the training data does not have.
    let other = Dataset::from_words([(vec!["w10"], vec!["B-ORG"])]).expect("a tag");
    let (code, shown) = refused(&other);
    assert!(code == "SC0913" && shown.contains("B-ORG"), "{shown}");
    let args = fit().validation_data(&other);
    let problem = model.fit(&tagged(8), args).expect_err("it is refused");
    assert_eq!(problem.code, "SC0913");

    let inside = Dataset::from_words([(vec!["w45", "w10"], vec!["I-PER", "O"])]).expect("tags");
    let (trained, notices) = heard(&["SC0430"], || model.fit(&inside, fit()));
    trained.expect("it trains");
    assert!(
        format!("{notices:?}").contains("`w45` in row 0"),
        "{notices:?}"
    );

    // Tags for a model of whole texts.
    let classifier: BertForSequenceClassification = load(&tiny_bert(0.0));
    classifier.compile(plain_args()).expect("valid arguments");
    let problem = classifier
        .fit(&tagged(4), fit())
        .expect_err("it is refused");
    assert!(
        problem.code == "SC0431" && format!("{problem:?}").contains("BertForTokenClassification")
    );
    // A metric of two classes.
    let problem = model.compile(
        CompileArgs::new()
            .optimizer(SGD::new(0.1))
            .loss(cross_entropy())
            .metrics([f1()]),
    );
    assert!(format!("{:?}", problem.expect_err("it is refused")).contains("entity_f1"));
    let problem = classifier
        .compile(plain_args().metrics([entity_f1()]))
        .expect_err("it is refused");
    assert_eq!(problem.code, "SC0103");
}

#[test]
fn a_run_is_not_resumed_with_other_tags() {
    let (folder, checkpoints) = (tiny_bert(0.0), TempDir::new().expect("a temporary folder"));
    let run = |data: &Dataset, resumes: bool| {
        let model = tagger(&folder, 4);
        model.compile(args()).expect("valid arguments");
        let fit = FitArgs::new().batch_size(8).seed(3).verbose(false);
        match resumes {
            true => model.fit(data, fit.resume_from(checkpoints.path())),
            false => model.fit(data, fit.checkpoint(checkpoints.path()).every(1)),
        }
    };
    let data = tagged(24);
    run(&data, false).expect("it trains");
    let mut other = data.clone();
    let example = &mut other.examples[0];
    let mut words = example.words().expect("it has words").to_vec();
    words[0].tag = words[0].tag.map(|tag| (tag + 1) % 4);
    example.annotation = Some(Annotation::Words(words).into());
    let refused = run(&other, true).expect_err("another tag");
    assert_eq!(refused.code, "SC0527");
    assert!(refused.message.contains("`training targets`"), "{refused}");
    run(&data, true).expect("the same tags");
}
