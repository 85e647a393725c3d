//! What `fit!` and `evaluate!` refuse before the first step, and at a step that must not be taken.

use std::fs;

use stratoscope_bert::LoadOptions;
use stratoscope_data::{Dataset, Example, Label, debian_pairs, debian_sections};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::{
    BertForSequenceClassification, BertTokenizer, CompileArgs, EvaluateArgs, FitArgs,
    MeanSquaredError, SGD, on_batch_end, pearson, warnings,
};

use crate::support::{self, load, plain_args, sentences, tiny_bert, weights};

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
    let check = |data: Dataset, code: &str, words: &str| {
        let model = compiled();
        let before = weights(&model);
        let finding = model.fit(&data, quiet()).expect_err("bad labels");
        assert_eq!(finding.code, code, "{finding}");
        assert!(finding.message.contains(words), "{finding}");
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
    check(
        too_large,
        "SC0301",
        "label 3 at row 2: the head has 3 outputs",
    );
    check(Dataset::from_texts(["w10"]), "SC0313", "label");
    check(sentences(0), "SC0914", "no examples");
}

#[test]
fn a_class_the_model_does_not_know_by_that_name() {
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
    let model = compiled();
    let finding = model
        .fit(&sentences(6), quiet().max_length(65))
        .expect_err("64 positions");
    assert_eq!(finding.code, "SC0401");
    model
        .fit(&sentences(6), quiet().max_length(64))
        .expect("as many as there are");
    model
        .fit(&sentences(6), quiet().max_length(1))
        .expect("cut, and said so");
}

#[test]
fn another_checkpoints_tokenizer_has_ids_without_a_vector() {
    let (model, other) = (compiled(), tiny_bert(0.0));
    let words = fs::read_to_string(other.path().join("vocab.txt")).expect("the fixture's file");
    // One word more than there are vectors.
    fs::write(other.path().join("vocab.txt"), words + "beyond\n").expect("room");
    let tokenizer = BertTokenizer::from_folder(other.path()).expect("a vocabulary");
    let own = model.tokenizer();
    model
        .set_tokenizer(tokenizer)
        .expect("no run has the model");
    model
        .fit(&sentences(6), quiet())
        .expect("every word has a vector");
    let data = Dataset::from_labelled([("w10", "red"), ("w11 beyond", "green"), ("w12", "blue")]);
    let refused = |code: &str, diagnostic: Box<Diagnostic>| {
        assert_eq!(diagnostic.code, code, "{diagnostic}");
        assert_eq!(
            diagnostic.message,
            "token id 128, but the model has 128 word embeddings"
        );
        let token = diagnostic.evidence.iter().find(|it| it.name == "token");
        assert_eq!(token.map(|it| it.value.as_str()), Some("`beyond`"));
    };
    refused("SC0402", model.fit(&data, quiet()).expect_err("no vector"));
    refused("SC0402", model.predict(["beyond"]).expect_err("no vector"));
    model.set_tokenizer(own).expect("no run has the model");
    model.predict(["beyond"]).expect("an unknown word");
}

#[test]
fn a_loss_that_is_not_finite_stops_before_the_update() {
    let folder = tiny_bert(0.0);
    let model = load(&folder);
    model
        .compile(plain_args().optimizer(SGD::new(1e30)))
        .expect("a rate is a rate");
    let finding = model
        .fit(&sentences(40), quiet().epochs(20))
        .expect_err("it diverges");
    assert_eq!(finding.code, "SC0505", "{finding}");
    assert!(
        finding
            .evidence
            .iter()
            .any(|seen| seen.name == "learning rate"),
        "{finding}"
    );
    assert!(
        finding
            .evidence
            .iter()
            .any(|seen| seen.name == "rows of the batch"),
        "{finding}"
    );
}

#[test]
fn a_number_of_labels_must_be_one() {
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    for bad in [0, -3] {
        let finding =
            BertForSequenceClassification::from_pretrained(path, bad).expect_err("no head");
        assert_eq!(finding.code, "SC0915");
    }
    let finding = BertForSequenceClassification::from_pretrained(path, 4).expect_err("it has 3");
    assert!(finding.message.contains("classifier"), "{finding}");
    let options = LoadOptions::new().num_labels(4).new_head();
    BertForSequenceClassification::from_pretrained_with(path, &options).expect("a new head");
}

/// One output, numbers as labels.
#[test]
fn a_regression() {
    let folder = tiny_bert(0.0);
    let source = crate::support::fixtures().join("regression");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(source.join(file), folder.path().join(file)).expect("the fixture's file");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    let finding = model.compile(plain_args()).expect_err("classes");
    assert_eq!(
        (finding.code.as_str(), finding.related.len()),
        ("SC0305", 1)
    );
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
    let found = heard(|| {
        let classes = clean(6).filter(|example| example.class() != Some(1));
        model.fit(&classes, quiet()).expect("it trains");
    });
    assert_eq!(found[0].code, "SC0308", "{found:#?}");
    let answers = model.predict(["w10"]).expect("an answer");
    assert!(answers.rows[0].class.is_none() && answers.rows[0].score.is_finite());
}

/// What data rules tell before the first step; what others tell is not heard.
const OF_DATA: &[&str] = &[
    "SC0108", "SC0308", "SC0314", "SC0403", "SC0405", "SC0407", "SC0409", "SC0410", "SC0701",
    "SC0702", "SC0703", "SC0707",
];

/// The notices while `work` runs.
fn heard(work: impl FnOnce()) -> Vec<Diagnostic> {
    let ((), heard) = support::heard(OF_DATA, work);
    heard
}

/// Fits a model of three classes and compares what is reported: codes, each with words of its card.
#[track_caller]
fn check_reported(data: &Dataset, args: FitArgs<'_>, expected: &[(&str, &str)]) {
    let model = compiled();
    let finding = heard(|| {
        model.fit(data, args.verbose(false)).expect("it trains");
    });
    let codes: Vec<&str> = finding.iter().map(|one| one.code.as_str()).collect();
    let wanted: Vec<&str> = expected.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, wanted, "{finding:#?}");
    for (finding, (code, words)) in finding.iter().zip(expected) {
        assert!(
            format!("{finding:?}").contains(words),
            "{code}: {finding:#?}"
        );
        assert!(
            !finding.fixes.is_empty() && !finding.evidence.is_empty(),
            "{code}"
        );
    }
}

/// Texts of known words, no two alike, of three classes in turn.
fn clean(count: usize) -> Dataset {
    let text = |row: usize| format!("w{} w{} w{}", 10 + row % 100, 10 + row / 10, 11 + row % 7);
    Dataset::from_labelled((0..count).map(|row| (text(row), ["red", "green", "blue"][row % 3])))
}

fn batches() -> FitArgs<'static> {
    FitArgs::new().batch_size(8)
}

#[test]
fn good_data_is_left_in_peace() {
    let (train, dev) = clean(60).stratified_split(0.25, 1).expect("two parts");
    check_reported(&train, batches().validation_data(&dev), &[]);
    check_reported(
        &clean(60).shuffled(1),
        batches().validation_split(0.25),
        &[],
    );
    check_reported(&clean(60), batches().steps_per_epoch(8), &[]);
    let paired = clean(24).map(|example| example.with_pair("w20 w21"));
    check_reported(&paired, batches(), &[]);
}

#[test]
fn texts_that_teach_little_are_reported() {
    let change = |to: &'static str| {
        clean(24).map(move |mut example| {
            if example.row % 8 == 3 {
                example.text = to.to_owned();
            }
            example
        })
    };
    let empty = [("SC0409", "3 of 24 texts are empty")];
    check_reported(&change(" "), batches(), &empty);
    let seen = [("SC0403", "[CLS] [UNK] [UNK] [UNK] [SEP]")];
    check_reported(&change("a mail server"), batches(), &seen);
    let written = [("SC0405", "[CLS] w10 [SEP] w11 [SEP]")];
    check_reported(&change("w10 [SEP] w11"), batches(), &written);
    let long: &str = "w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21 w22 w23 w24 w25 w26 w27 w28 w29 w30 w31 w32 \
                      w33 w34 w35 w36 w37 w38 w39 w40 w41 w42 w43 w44 w45 w46 w47 w48 w49 w50";
    let wasteful = clean(48).map(|mut example| {
        if example.row % 24 == 3 {
            example.text = long.to_owned();
        }
        example
    });
    let args = || FitArgs::new().batch_size(24).shuffle(false);
    check_reported(&wasteful, args(), &[("SC0410", "positions than tokens")]);
    let cut = [("SC0407", "2 of 48")];
    check_reported(&wasteful, args().max_length(12), &cut);
}

#[test]
fn splits_that_do_not_belong_together_are_reported() {
    let train = clean(40);
    let shared = train.skip(30).filter(|example| example.row < 34);
    let dev = clean(60).skip(40);
    let leaky = Dataset::from_examples(
        dev.examples.iter().chain(&shared.examples).cloned(),
        dev.label_names.clone(),
        "dev",
    );
    let found = [("SC0701", "4 validation examples are in the training data")];
    check_reported(&train, batches().validation_data(&leaky), &found);
    check_reported(
        &train,
        batches().validation_data(&leaky.without(&train)),
        &[],
    );

    let mut sorted = clean(60);
    sorted.examples.sort_by_key(Example::class);
    let found = [("SC0702", "the validation data has only one class: `red`")];
    check_reported(&sorted, batches().validation_split(0.2), &found);
    check_reported(&sorted.shuffled(1), batches().validation_split(0.2), &[]);

    let rare = clean(90).filter(|example| example.class() == Some(0) || example.row < 6);
    let found = [("SC0703", "is the baseline")];
    check_reported(&rare, batches(), &found);
}

#[test]
fn steps_and_callbacks_that_miss_something_are_reported() {
    let args = || batches().shuffle(false);
    let found = [("SC0707", "16 of 40 examples are never seen")];
    check_reported(&clean(40), args().steps_per_epoch(3), &found);
    let found = [(
        "SC0707",
        "`steps_per_epoch = 6`, but the data has 5 batches",
    )];
    check_reported(&clean(40), args().steps_per_epoch(6), &found);

    let strategy = stratoscope_strategy::MirroredStrategy::logical(2).expect("two devices");
    let _scope = stratoscope_strategy::scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().steps_per_execution(4))
        .expect("valid arguments");
    let found = heard(|| {
        let args = quiet().callbacks(on_batch_end(|_| ()));
        model.fit(&clean(24), args).expect("it trains");
    });
    assert_eq!(found[0].code, "SC0108", "{found:#?}");
    assert_eq!(found[0].message, "callback runs every 4 batches");
    let found = heard(|| {
        model.fit(&clean(24), quiet()).expect("it trains");
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn classes_in_another_order_are_renumbered_and_reported() {
    let model = compiled();
    model
        .fit(&clean(12), quiet())
        .expect("it takes their names");
    let rows = clean(12);
    let order = ["red", "green", "blue"].map(str::to_owned);
    let other = rows.with_label_names(&order).expect("the same classes");
    let mut first = None;
    let found = heard(|| {
        let args = EvaluateArgs::new().verbose(false);
        first = Some(model.evaluate(&other, args).expect("all are known"));
    });
    assert_eq!(found[0].code, "SC0314", "{found:#?}");
    let args = EvaluateArgs::new().verbose(false);
    let same = model.evaluate(&clean(12), args).expect("all are known");
    assert_eq!(first.map(|it| it.loss), Some(same.loss));
}

#[test]
fn floats_are_no_classes() {
    let example = |row: usize| Example::new("w10").with_label(Label::Value((row % 3) as f32));
    let data = Dataset::from_examples((0..6).map(example), Vec::new(), "six rows");
    let finding = compiled().fit(&data, quiet()).expect_err("floats");
    assert_eq!(finding.code, "SC0307");
    assert!(
        format!("{finding:?}").contains("2.0 at row 2"),
        "{finding:?}"
    );
}

#[test]
fn a_denied_data_warning_stops_before_the_first_step() {
    let model = compiled();
    let before = weights(&model);
    let data = clean(12);
    warnings::deny("SC0701");
    let outcome = model.fit(&data, quiet().validation_data(&data));
    warnings::reset("SC0701");
    assert_eq!(outcome.expect_err("denied").code, "SC0701");
    assert_eq!(weights(&model), before);
}

/// The sets that ship with the product: their splits share nothing, no class is missing or nearly all.
/// Their words are not this vocabulary's.
#[test]
fn the_shipped_sets_are_good_data() {
    for (train, dev) in [
        debian_sections().expect("it ships"),
        debian_pairs().expect("it ships"),
    ] {
        assert!(train.overlap(&dev).is_empty() && dev.overlap(&train).is_empty());
        let blank = |example: &Example| example.text.trim().is_empty();
        assert!(!train.examples.iter().chain(&dev.examples).any(blank));
        let folder = tiny_bert(0.0);
        let path = folder.path().to_str().expect("a path in UTF-8");
        let options = LoadOptions::new().num_labels(train.num_labels()).new_head();
        let model = BertForSequenceClassification::from_pretrained_with(path, &options);
        let model = model.expect("a new head");
        model.compile(plain_args()).expect("valid arguments");
        let args = FitArgs::new().batch_size(32).max_length(8).verbose(false);
        let args = args.validation_data(&dev).validation_steps(1);
        let finding = heard(|| {
            model
                .fit(&train.shuffled(0).take(64), args)
                .expect("it trains");
        });
        let others = |one: &&Diagnostic| !["SC0403", "SC0407"].contains(&one.code.as_str());
        assert_eq!(finding.iter().filter(others).count(), 0, "{finding:#?}");
    }
}
