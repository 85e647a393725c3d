//! `BertForQuestionAnswering` from questions and texts to answers: training, long texts, strategies, prediction, saving,
//! and what is wrong with data.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use stratoscope_data::{Data, Dataset, Example, IntoData, Stream};
use stratoscope_models::{
    AdamW, BertForQuestionAnswering, Callback, CompileArgs, EvaluateArgs, ExecutionRecord, FitArgs,
    Flow, History, MeanSquaredError, SGD, accuracy, answer_f1, exact_match,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, heard, load, plain_args, sentences, tiny_bert, weights,
};

/// Texts of ten to fifty words with one of w80 to w99 among them, which is the answer to `w5`; a third has none.
pub(crate) fn asked(count: usize) -> Dataset {
    let row = |row: usize| {
        let length = 10 + (row * 13) % 41;
        let place = (row * 7) % length;
        let has_answer = row % 3 != 2;
        let word = |at: usize| match at == place && has_answer {
            true => format!("w{}", 80 + (row * 11) % 20),
            false => format!("w{}", 10 + (row * 5 + at * 3) % 30),
        };
        let context: Vec<String> = (0..length).map(word).collect();
        let answer = match has_answer {
            true => context[place].clone(),
            false => String::new(),
        };
        ("w5 w6".to_owned(), context.join(" "), answer)
    };
    Dataset::from_questions((0..count).map(row)).expect("the answers are there")
}

pub(crate) fn answerer(folder: &TempDir) -> BertForQuestionAnswering {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForQuestionAnswering::from_pretrained(path).expect("the fixture loads")
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(cross_entropy())
        .metrics([exact_match(), answer_f1()])
}

/// Of data in memory and of a stream; as soon as one answer is a target, nothing is reported.
#[test]
fn answers_that_fit_into_no_window_are_reported() {
    let words = |range: std::ops::Range<usize>| {
        let words: Vec<String> = range.map(|number| format!("w{number}")).collect();
        words.join(" ")
    };
    let (context, long, short) = (words(10..40), words(11..39), words(12..14));
    let rows = [("w5 w6", &context, &long), ("w7", &context, &long)];
    let outside = Dataset::from_questions(rows).expect("the answers are there");
    let with_one = [("w5 w6", &context, &long), ("w7", &context, &short)];
    let inside = Dataset::from_questions(with_one).expect("the answers are there");
    let none = Dataset::from_questions([("w5", context.as_str(), "")]).expect("a question");
    let folder = tempfile::tempdir().expect("a folder");
    let row = |question: &str, answer: &str| {
        let start = context.find(answer).expect("it is there");
        let answers = serde_json::json!({ "text": [answer], "answer_start": [start] });
        let row =
            serde_json::json!({ "question": question, "context": context, "answers": answers });
        format!("{row}\n")
    };
    let path = folder.path().join("questions.jsonl");
    fs::write(&path, row("w5 w6", &long) + &row("w7", &long)).expect("room");
    let streamed = Stream::jsonl(&path).expect("questions");
    let model = answerer(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let reported = |data: Data<'_>| {
        let fit = FitArgs::new().epochs(1).max_length(12).verbose(false);
        let (trained, notices) = heard(&["SC0433"], || model.fit(data, fit));
        trained.expect("it trains");
        notices
    };
    for data in [outside.into_data(), streamed.into_data()] {
        let notices = reported(data);
        let [notice] = &notices[..] else {
            panic!("{notices:?}");
        };
        assert!(notice.message.starts_with("2 questions"), "{notice}");
    }
    assert!(reported(inside.into_data()).is_empty());
    assert!(reported(none.into_data()).is_empty());
}

#[test]
fn it_learns_to_mark_answers_by_its_metrics() {
    let (train, dev) = (asked(120), asked(160).skip(120));
    let model = answerer(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let fit = FitArgs::new()
        .batch_size(8)
        .epochs(12)
        .seed(3)
        .verbose(false);
    let history = model.fit(&train, fit).expect("it trains");
    assert!(
        history.epochs.last().expect("an epoch").loss < 0.5,
        "{history:?}"
    );
    let evaluated = |size: usize| {
        let args = EvaluateArgs::new().batch_size(size).verbose(false);
        model.evaluate(&dev, args).expect("it is evaluated")
    };
    let found = evaluated(8);
    let value = |name: &str| {
        let found = found.metrics.iter().find(|it| it.name == name);
        found.and_then(|it| it.value).expect("it is measured")
    };
    assert!(value("exact_match") > 0.85, "{found:?}");
    assert!(value("answer_f1") >= value("exact_match"), "{found:?}");
    assert_eq!(evaluated(3).metrics, found.metrics);

    // In windows of 10 tokens, most of which lack the answer, the same questions have answers.
    let short = EvaluateArgs::new()
        .batch_size(8)
        .max_length(10)
        .verbose(false);
    let windows = model.evaluate(&dev, short).expect("it is evaluated");
    assert!(windows.examples > 2 * dev.len(), "{windows:?}");

    let answer = model
        .answer("w5 w6", "w12 w13 w88 w14")
        .expect("it answers");
    let found = answer.rows[0]
        .answer
        .as_ref()
        .and_then(|it| it.found.as_ref());
    let found = found.expect("there is one");
    assert_eq!(
        (found.text.as_str(), found.start, found.end),
        ("w88", 8, 11),
        "{answer}"
    );
    assert!(answer.to_html().contains("w88</span>") && answer.to_plain().contains("→ w88"));
    let none = model
        .answer("w5 w6", "w12 w13 w14 w15 w17 w20 w22 w23 w24 w25")
        .expect("it answers");
    assert!(none.to_plain().contains("no answer in this text"), "{none}");
    // The answer of a long text is found in whichever window it is.
    let long: Vec<String> = (0..150)
        .map(|at| format!("w{}", 10 + (at * 3) % 30))
        .collect();
    let long = format!("{} w91 {}", long.join(" "), long.join(" "));
    let answer = model.answer("w5 w6", &long).expect("it answers");
    assert_eq!(answer.rows[0].label, "w91");

    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is written");
    assert!(config.contains("BertForQuestionAnswering"), "{config}");
    let pairs = || Dataset::from_pairs([("w5 w6", "w12 w99 w14"), ("w5 w6", "w20 w21 w85")]);
    let loaded = answerer(&folder).predict(pairs()).expect("it answers");
    assert_eq!(loaded, model.predict(pairs()).expect("it answers"));
}

#[test]
fn strategies_have_the_weights_and_metrics_of_one_device() {
    let run = |strategy: &Strategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = answerer(&tiny_bert(0.0));
        model
            .compile(args().optimizer(SGD::new(0.5)))
            .expect("valid arguments");
        let fit = FitArgs::new().batch_size(4).seed(5).verbose(false);
        let history = model.fit(&asked(13), fit).expect("it trains");
        (weights(&model), history.epochs[0].metrics.clone())
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, measured) = run(&one.strategy());
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (mirrored, of_two) = run(&two.strategy());
    assert_near_weights(&mirrored, &expected);
    assert_eq!(of_two, measured, "answers are counted alike");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    assert!(
        run(&central.strategy()).0 == mirrored,
        "the same bits as mirrored"
    );
}

/// Calls the head's own methods at the end of a step, and keeps what they answered.
struct AtBatchEnd {
    model: BertForQuestionAnswering,
    codes: Arc<Mutex<Vec<Option<String>>>>,
}

impl Callback for AtBatchEnd {
    fn on_batch_end(&mut self, _execution: &ExecutionRecord) -> Flow {
        let answers = [
            self.model.answer("w5 w6", "w12 w88 w14").map(drop),
            self.model.set_stride(4),
        ];
        let codes = answers.map(|it| it.err().map(|problem| problem.code));
        *self.codes.lock().expect("no panic") = codes.to_vec();
        Flow::Continue
    }
}

#[test]
fn in_a_callback_it_answers_and_keeps_its_stride() {
    let model = answerer(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let codes = Arc::new(Mutex::new(Vec::new()));
    let at = AtBatchEnd {
        model: model.clone(),
        codes: Arc::clone(&codes),
    };
    let fit = FitArgs::new().batch_size(4).verbose(false).callbacks(at);
    model.fit(&asked(4), fit).expect("it trains");
    let codes = std::mem::take(&mut *codes.lock().expect("no panic"));
    assert_eq!(codes, [None, Some("SC0121".to_owned())]);
    model.set_stride(4).expect("the run is over");
    let problem = model.set_stride(-1).expect_err("below 0");
    assert_eq!(problem.code, "SC0103");
}

#[test]
fn bad_questions_losses_and_metrics_are_refused() {
    let model = answerer(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let fit = || FitArgs::new().batch_size(4).verbose(false);
    let problem = model.fit(&sentences(6), fit()).expect_err("it is refused");
    let shown = format!("{problem:?}");
    assert!(
        problem.code == "SC0431" && shown.contains("BertForSequenceClassification"),
        "{shown}"
    );
    let classifier = load(&tiny_bert(0.0));
    classifier.compile(plain_args()).expect("valid arguments");
    let problem = classifier.fit(&asked(4), fit()).expect_err("it is refused");
    let shown = format!("{problem:?}");
    assert!(
        problem.code == "SC0431" && shown.contains("BertForQuestionAnswering"),
        "{shown}"
    );
    let problem = model.predict("w5 w6").expect_err("there is no text");
    assert!(problem.code == "SC0431" && format!("{problem:?}").contains("from_pairs"));
    // Losses and metrics of other heads.
    let refused = |args: CompileArgs| model.compile(args).expect_err("it is refused");
    assert_eq!(refused(args().metrics([accuracy()])).code, "SC0103");
    assert_eq!(refused(args().loss(MeanSquaredError)).code, "SC0309");
    let weighted = fit().class_weight([1.0, 2.0]);
    assert_eq!(
        model
            .fit(&asked(4), weighted)
            .expect_err("it is refused")
            .code,
        "SC0103"
    );
}

/// A file of the questions as Hugging Face's `datasets` writes them.
fn write(folder: &TempDir, name: &str, data: &Dataset) -> PathBuf {
    let path = folder.path().join(name);
    let row = |example: &Example| {
        let context = example.pair.as_deref().expect("a text");
        let answers = example.answers().expect("it is a question").iter();
        let (texts, starts): (Vec<&str>, Vec<usize>) = answers
            .map(|answer| (&context[answer.range.clone()], answer.range.start))
            .unzip();
        let row = serde_json::json!({
            "question": example.text,
            "context": context,
            "answers": { "text": texts, "answer_start": starts },
        });
        format!("{row}\n")
    };
    let rows: String = data.examples.iter().map(row).collect();
    fs::write(&path, rows).expect("room");
    path
}

#[test]
fn streamed_questions_train_to_the_bits_of_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let train = write(&folder, "train.jsonl", &asked(40));
    let dev = write(&folder, "dev.jsonl", &asked(60).skip(40));
    let fit = || {
        let args = FitArgs::new().batch_size(4).epochs(2).seed(3);
        args.max_length(14).verbose(false)
    };
    let results = |model: &BertForQuestionAnswering, history: &History, dev: Data<'_>| {
        let args = EvaluateArgs::new().max_length(14).verbose(false);
        let found = model.evaluate(dev, args).expect("it is evaluated");
        let epochs = history.epochs.iter().map(|epoch| {
            let validation = epoch.validation.as_ref().expect("it is measured");
            (
                epoch.loss,
                epoch.metrics.clone(),
                validation.metrics.clone(),
            )
        });
        (epochs.collect::<Vec<_>>(), found.metrics, weights(model))
    };
    let new = || {
        let model = answerer(&tiny_bert(0.1));
        model.compile(args()).expect("valid arguments");
        model
    };
    let trained = |train: Data<'_>, dev: Data<'_>| {
        let model = new();
        let history = model.fit(train, fit().validation_data(dev));
        results(&model, &history.expect("it trains"), dev)
    };
    let held = [&train, &dev].map(|path| Dataset::jsonl(path).expect("questions"));
    let stream = [&train, &dev].map(|path| Stream::jsonl(path).expect("questions"));
    let expected = trained(held[0].into_data(), held[1].into_data());
    let measured: Vec<_> = expected.1.iter().map(|it| it.name).collect();
    assert_eq!(measured, ["exact_match", "answer_f1"]);
    let found = trained(stream[0].into_data(), stream[1].into_data());
    assert!(found == expected, "{:?} {:?}", found.0, expected.0);

    // From a checkpoint within an epoch, whose metrics count what was before.
    let kept = folder.path().join("run");
    let saving = fit().checkpoint(kept.to_str().expect("UTF-8"));
    let saving = saving.validation_data(stream[1].into_data());
    let saving = saving.every(9).keep_last(99);
    new().fit(&stream[0], saving).expect("it trains");
    let from = kept.join("step-9");
    let other = new();
    let going = fit().resume_from(from.to_str().expect("UTF-8"));
    let going = going.validation_data(stream[1].into_data());
    let history = other.fit(&stream[0], going).expect("it goes on");
    let resumed = results(&other, &history, stream[1].into_data());
    assert!(resumed == expected, "{:?} {:?}", resumed.0, expected.0);

    // Questions for a model of texts, texts for one of questions.
    let texts = load(&tiny_bert(0.0));
    texts.compile(plain_args()).expect("valid arguments");
    let table = folder.path().join("texts.csv");
    fs::write(&table, "text,label\nw1 w2,a\nw3,b\n").expect("room");
    let table = Stream::csv(&table).expect("texts");
    let shown = [
        texts.fit(&stream[0], fit()).expect_err("questions"),
        new().fit(&table, fit()).expect_err("texts"),
    ];
    for (error, said) in shown
        .iter()
        .zip(["BertForQuestionAnswering", "Stream::squad("])
    {
        let shown = format!("{error:?}");
        assert!(error.code == "SC0431" && shown.contains(said), "{shown}");
    }
}
