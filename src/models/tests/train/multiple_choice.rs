//! `BertForMultipleChoice` from prompts and choices to what is chosen: training, strategies, accumulation, prediction, saving,
//! and what is refused.

use stratoscope_data::{Dataset, Example};
use stratoscope_models::{
    AdamW, BertForMultipleChoice, BertForSequenceClassification, CompileArgs, EvaluateArgs,
    FitArgs, Lora, SGD, accuracy, entity_f1, macro_f1,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, load, plain_args, sentences, tiny_bert, weights,
};

/// Prompts with three choices of different lengths, of which the right one has words from w40 to w59.
pub fn prompts(count: usize) -> Dataset {
    let words = |first: usize, row: usize, count: usize| {
        let words = (0..count).map(|at| format!("w{}", first + (row * 11 + at * 5) % 20));
        words.collect::<Vec<_>>().join(" ")
    };
    let row = |row: usize| {
        let right = row * 5 % 3;
        let choice = |at: usize| {
            let first = if at == right { 40 } else { 80 };
            words(first, row + at, 1 + (row + at) % 4)
        };
        (
            words(10, row, 2 + row % 5),
            (0..3).map(choice).collect(),
            right,
        )
    };
    Dataset::from_choices::<_, String>((0..count).map(row)).expect("three choices each")
}

pub fn chooser(folder: &TempDir, choices: usize) -> BertForMultipleChoice {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForMultipleChoice::from_pretrained(path, choices).expect("the fixture loads")
}

fn args() -> CompileArgs {
    plain_args().metrics([accuracy(), macro_f1()])
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(8).seed(3).verbose(false)
}

#[test]
fn it_learns_what_goes_with_a_prompt_and_chooses() {
    let (train, dev) = (prompts(64), prompts(90).skip(64));
    let model = chooser(&tiny_bert(0.0), 3);
    assert!(format!("{model:?}").contains("3 choices"), "{model:?}");
    model
        .compile(args().optimizer(AdamW::new(0.003)))
        .expect("valid arguments");
    let history = model.fit(&train, quiet().epochs(15)).expect("it trains");
    let last = history.epochs.last().expect("an epoch");
    assert!(last.loss < 0.2, "{history:?}");
    let found = model
        .evaluate(&dev, EvaluateArgs::new().verbose(false))
        .expect("it is evaluated");
    let measured = |name: &str| {
        let metric = found.metrics.iter().find(|it| it.name == name);
        metric.and_then(|it| it.value).expect("it is measured")
    };
    assert!(
        measured("accuracy") > 0.9 && measured("macro_f1") > 0.9,
        "{found:?}"
    );

    let answers = model.predict(&dev).expect("it answers");
    let right = answers.rows.iter().zip(&dev.examples);
    let right = right
        .filter(|(row, example)| row.class == example.class())
        .count();
    assert!((right as f64 / dev.len() as f64 - measured("accuracy")).abs() < 1e-9);
    let row = &answers.rows[0];
    let choices = dev[0].choices().expect("choices");
    assert_eq!(
        (&row.choices[..], &row.label),
        (choices, &choices[row.class.expect("one")])
    );
    assert!((row.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let matrix = answers.confusion_matrix(&dev).expect("the same prompts");
    let counted: u64 = (0..3).flat_map(|at| &matrix.counts[at]).sum();
    assert_eq!(counted, dev.len() as u64);
    assert!(answers.assess(&dev).is_ok());
    // Any number of choices, in one call: what a row has not is no choice.
    let one = model
        .choose("w12 w13", ["w81 w82", "w43 w44"])
        .expect("it answers");
    assert_eq!(
        (one.rows[0].class, one.rows[0].label.as_str()),
        (Some(1), "w43 w44")
    );
    let rows = [
        Example::new("w12 w13").with_choices(["w81 w82", "w43 w44"]),
        Example::new("w14").with_choices(["w81", "w45", "w83", "w84 w85"]),
    ];
    let mixed = Dataset::from_examples(rows, Vec::new(), "mixed");
    let mixed = model.predict(&mixed).expect("it answers");
    assert_eq!(mixed.rows[1].probabilities.len(), 4);
    for (together, alone) in mixed.rows[0]
        .probabilities
        .iter()
        .zip(&one.rows[0].probabilities)
    {
        assert!((together - alone).abs() < 1e-6, "{mixed} {one}");
    }

    // What is saved is loaded, and is one row of weights whatever the number of choices.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is written");
    assert!(config.contains("BertForMultipleChoice"), "{config}");
    let loaded = chooser(&folder, 3);
    assert_eq!(loaded.predict(&dev).expect("it answers"), answers);
    let report = chooser(&folder, 2).load_report();
    let classifier = report
        .tensors
        .iter()
        .find(|it| it.name == "classifier.weight");
    let classifier = classifier.expect("the head");
    assert_eq!(
        (classifier.shape.as_slice(), classifier.origin),
        (&[1, 32][..], stratoscope_bert::Origin::Loaded)
    );
}

#[test]
fn strategies_and_accumulation_train_the_weights_of_one_device() {
    let run = |strategy: &Strategy, batch_size: usize, accumulation: usize| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = chooser(&tiny_bert(0.0), 3);
        let args = args().optimizer(SGD::new(0.5));
        let args = args.gradient_accumulation_steps(accumulation);
        model.compile(args).expect("valid arguments");
        let fit = quiet().batch_size(batch_size);
        let history = model.fit(&prompts(12), fit).expect("it trains");
        let placement = model.placement().expect("the devices answer");
        assert!(placement.copies_are_equal(), "{}", placement.verdict());
        (weights(&model), history.epochs[0].metrics.clone())
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, measured) = run(&one.strategy(), 4, 1);
    assert_eq!(
        run(&one.strategy(), 4, 1).0,
        expected,
        "the same bits again"
    );
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (mirrored, of_two) = run(&two.strategy(), 4, 1);
    assert_near_weights(&mirrored, &expected);
    assert_eq!(of_two, measured, "choices are counted alike");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    assert!(
        run(&central.strategy(), 4, 1).0 == mirrored,
        "the same bits"
    );
    assert_near_weights(&run(&one.strategy(), 2, 2).0, &expected);
}

#[test]
fn a_run_is_looked_into_like_any_other() {
    let model = chooser(&tiny_bert(0.1), 3);
    model.compile(args()).expect("valid arguments");
    let run = model.start(&prompts(24), quiet()).expect("it starts");
    run.step(2).expect("two steps");
    let batch = run.batch().expect("a batch");
    assert!(
        batch.examples[0].text.matches(" / ").count() == 2,
        "{batch:?}"
    );
    let attention = run.attention(0, 0, 0).expect("a layer");
    assert!(
        attention
            .notes
            .iter()
            .any(|it| it.contains("first of 3 choices"))
    );
    assert!(run.gradients().is_ok() && run.report().is_ok() && run.why().is_ok());
    assert!(run.worst(3).is_ok());
    run.finish().expect("it trains");
    // Adapters are those of any head.
    let adapted = chooser(&tiny_bert(0.0), 3);
    adapted.add_lora(Lora::new(2)).expect("dense layers");
    adapted.compile(args()).expect("valid arguments");
    adapted.fit(&prompts(8), quiet()).expect("it trains");
    adapted.merge_lora().expect("adapters");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    for choices in [0, 1] {
        let problem = BertForMultipleChoice::from_pretrained(path, choices);
        assert_eq!(problem.expect_err("too few").code, "SC0915");
    }
    let model = chooser(&folder, 3);
    let problem = model
        .compile(args().metrics([entity_f1()]))
        .expect_err("a metric of tags");
    assert_eq!(problem.code, "SC0103");
    model.compile(args()).expect("valid arguments");
    let check = |data: &Dataset, code: &str, words: &str| {
        let problem = model.fit(data, quiet()).expect_err("it is refused");
        let shown = format!("{problem:?}");
        assert!(problem.code == code && shown.contains(words), "{shown}");
    };
    check(&sentences(6), "SC0431", "prompts with choices");
    let two = Dataset::from_choices([("w10", vec!["w11", "w12"], 0)]).expect("two choices");
    check(&two, "SC0103", "2 choices in row 0");
    let changed = |change: fn(Example) -> Example| {
        prompts(6).map(move |example| match example.row {
            4 => change(example),
            _ => example,
        })
    };
    check(
        &changed(|it| it.with_choices([""; 0])),
        "SC0103",
        "no choices in row 4",
    );
    check(
        &changed(|it| it.with_choices(["w11"])),
        "SC0103",
        "1 choice in row 4",
    );
    check(
        &changed(|it| it.with_choices(["w11"; 4])),
        "SC0103",
        "4 choices in row 4",
    );
    check(
        &changed(|it| it.with_label(stratoscope_data::Label::Class(3))),
        "SC0913",
        "`3`",
    );
    check(
        &changed(|it| Example { label: None, ..it }),
        "SC0313",
        "label",
    );
    let asked = |data: Dataset| model.predict(data).expect_err("it is refused").code.clone();
    assert_eq!(asked(Dataset::from_texts(["w10"])), "SC0431");
    let one = model.choose("w10", ["w11"]).expect_err("nothing to choose");
    assert_eq!(one.code, "SC0103");
    // Choices for a model of whole texts.
    let classifier: BertForSequenceClassification = load(&tiny_bert(0.0));
    let classified = plain_args().loss(cross_entropy());
    classifier.compile(classified).expect("valid arguments");
    let problem = classifier
        .fit(&prompts(4), quiet())
        .expect_err("it is refused");
    let shown = format!("{problem:?}");
    assert!(
        problem.code == "SC0431" && shown.contains("BertForMultipleChoice"),
        "{shown}"
    );
}
