//! `group_by_length = true`: batches of similar length, in an order as fixed as any other: streamed or in memory, left and
//! taken up, turned back, over replicas and worker processes.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use stratoscope_data::{Dataset, Stream, make_regression};
use stratoscope_models::{
    BertForSequenceClassification, CompileArgs, Dense, FitArgs, History, MeanSquaredError, SGD,
    Sequential, interrupt, on_batch_end, on_train_begin,
};
use stratoscope_strategy::{AsStrategy, Strategy};
use tempfile::TempDir;

use crate::support::{self, grouped, heard, mirrored, plain_args, recipe, sentences, weights};
use crate::workers::{logical, workers};

type Bert = BertForSequenceClassification;

fn model(strategy: Option<Strategy>, accumulation: usize) -> Bert {
    let args = grouped(plain_args().optimizer(recipe()), 1, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

fn args() -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    args.group_by_length(true).verbose(false)
}

/// Losses of steps, to the bit.
fn losses(history: &History) -> Vec<u64> {
    let steps = history.steps.iter();
    steps.map(|step| step.loss.to_bits()).collect()
}

/// The same sentences in a file.
fn streamed(folder: &TempDir, rows: usize) -> Stream {
    let path = folder.path().join(format!("{rows}.tsv"));
    let data = sentences(rows);
    let row = |it: &stratoscope_data::Example| {
        format!(
            "{}\t{}\n",
            it.text,
            it.label_name.as_deref().unwrap_or_default()
        )
    };
    let rows: String = data.examples.iter().map(row).collect();
    fs::write(&path, format!("text\tlabel\n{rows}")).expect("room");
    Stream::tsv(path).expect("rows")
}

#[test]
fn a_stream_that_fits_into_its_buffer_has_the_bits_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let stream = streamed(&folder, 30);
    let held = stream.first(30).expect("rows");
    let cases: [(Option<Strategy>, usize); 2] = [(None, 1), (mirrored(), 2)];
    for (strategy, accumulation) in cases {
        let said = Rc::new(RefCell::new(None));
        let heard = Rc::clone(&said);
        let callback = on_train_begin(move |run| *heard.borrow_mut() = run.tokens.clone());
        let expected = model(strategy.clone(), accumulation);
        let in_memory = expected.fit(&held, args().callbacks(callback));
        let in_memory = in_memory.expect("it trains");
        let found = model(strategy.clone(), accumulation);
        let from_file = found.fit(&stream, args()).expect("it trains");
        assert!(weights(&found) == weights(&expected), "other weights");
        assert_eq!(losses(&from_file), losses(&in_memory));
        let said = said.borrow().clone().expect("it is said");
        assert!(said.starts_with("examples grouped by length: "), "{said}");
        let plain = model(strategy, accumulation);
        let plain = plain.fit(&held, args().group_by_length(false));
        assert_ne!(losses(&plain.expect("it trains")), losses(&in_memory));
    }
}

#[test]
fn a_run_that_was_left_goes_on_to_the_same_bits() {
    let folder = TempDir::new().expect("a folder");
    // Three windows of the shuffle buffer, of which batches begin in one and end in the next.
    let stream = streamed(&folder, 1100).shuffle(512).expect("a buffer");
    let args = || args().batch_size(48).steps_per_epoch(22).max_length(8);
    let whole = model(None, 2);
    let history = whole.fit(&stream, args()).expect("it trains");
    let expected = weights(&whole);

    let left = model(None, 2);
    for (round, batches) in [5, 17].into_iter().enumerate() {
        let seen = RefCell::new(0);
        let callback = on_batch_end(move |execution| {
            *seen.borrow_mut() += execution.batches;
            if *seen.borrow() == batches {
                interrupt::request();
            }
        });
        let args = args().resume(round > 0).callbacks(callback);
        assert!(left.fit(&stream, args).expect("it trains").interrupted);
    }
    let other = args().group_by_length(false).resume(true);
    let error = left.fit(&stream, other).expect_err("another order");
    assert_eq!(error.code, "SC0103");
    assert!(
        format!("{error:?}").contains("group_by_length = true"),
        "{error:?}"
    );
    let resumed = left.fit(&stream, args().resume(true)).expect("it goes on");
    assert!(weights(&left) == expected, "interrupted: other weights");
    assert_eq!(losses(&resumed), losses(&history));

    let kept = folder.path().join("run");
    let kept = |step: &str| kept.join(step).to_str().expect("UTF-8").to_owned();
    let saving = args().checkpoint(kept("").as_str()).every(9);
    model(None, 2).fit(&stream, saving).expect("it trains");
    let from = kept("step-9");
    let error = model(None, 2)
        .fit(
            &stream,
            args().group_by_length(false).resume_from(from.as_str()),
        )
        .expect_err("another order");
    assert_eq!(error.code, "SC0527");
    assert!(
        format!("{error:?}").contains("group_by_length"),
        "{error:?}"
    );
    let other = model(None, 2);
    other
        .fit(&stream, args().resume_from(from.as_str()))
        .expect("it goes on");
    assert!(
        weights(&other) == expected,
        "from a checkpoint: other weights"
    );
}

#[test]
fn a_run_is_turned_back_and_changed_as_any_other() {
    let data = sentences(70);
    let whole = model(None, 1);
    whole.fit(&data, args()).expect("it trains");
    let driven = model(None, 1);
    let run = driven.start(&data, args()).expect("it starts");
    run.step(9).expect("it goes on");
    run.set_batch_size(16).expect("a size");
    run.drop_examples([7, 8]).expect("examples");
    run.step(2).expect("it goes on");
    run.rewind(4).expect("it is kept");
    run.finish().expect("it goes on");
    assert!(weights(&driven) == weights(&whole), "other weights");

    // Each example has its turn once an epoch, also where the batches change on the way, and the first ones are of the
    // longest.
    let driven = model(None, 1);
    let run = driven.start(&data, args().epochs(1)).expect("it starts");
    let words = |row: usize| data[row].text.split(' ').count();
    let longest = (0..70).map(words).max();
    let mut seen = Vec::new();
    let mut step = 0;
    while seen.len() < 70 {
        let batch = run.batch().expect("a batch");
        let rows: Vec<usize> = batch.examples.iter().map(|it| it.row).collect();
        if step == 0 {
            assert_eq!(rows.iter().map(|&row| words(row)).max(), longest);
        }
        seen.extend(rows);
        step += 1;
        if seen.len() < 70 {
            run.step(1).expect("a step");
        }
        if step == 5 {
            run.set_batch_size(7).expect("a size");
        }
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..70));
}

#[test]
fn worker_processes_have_the_bits_of_logical_devices() {
    let trained = |strategy: Strategy| {
        let model = model(Some(strategy), 1);
        let history = model
            .fit(&sentences(45), args().epochs(1))
            .expect("it trains");
        (losses(&history), weights(&model))
    };
    assert!(trained(workers(2).strategy()) == trained(logical(2).strategy()));
}

#[test]
fn numbers_have_no_length() {
    let line = Sequential([Dense(1)]).expect("a layer");
    let compiled = CompileArgs::new()
        .optimizer(SGD::new(0.01))
        .loss(MeanSquaredError);
    line.compile(compiled).expect("valid arguments");
    let rows = make_regression(16, 3, 1).expect("rows");
    let error = line.fit(&rows, args()).expect_err("no texts");
    assert_eq!(error.code, "SC0103");
    assert!(
        error
            .message
            .contains("`group_by_length = true`: expected texts")
    );
}

#[test]
fn much_padding_is_said_of_a_stream_too() {
    let folder = TempDir::new().expect("a folder");
    let long = vec!["w10"; 40].join(" ");
    let row = |row: usize| format!("{}\tred\n", if row % 16 == 3 { &long } else { "w11" });
    let rows: String = (0..320).map(row).collect();
    let path = folder.path().join("wasteful.tsv");
    fs::write(&path, format!("text\tlabel\n{rows}")).expect("room");
    let stream = Stream::tsv(&path).expect("rows");
    let held = Dataset::tsv(&path).expect("rows");
    let args = || {
        FitArgs::new()
            .batch_size(16)
            .steps_per_epoch(1)
            .verbose(false)
    };
    let said = |fit: &dyn Fn(&Bert) -> stratoscope_diagnostics::Result<History>| {
        let (trained, findings) = heard(&["SC0410"], || fit(&model(None, 1)));
        trained.expect("it trains");
        let fixes = findings.iter().flat_map(|it| &it.fixes);
        fixes.map(|fix| fix.title.clone()).collect::<Vec<_>>()
    };
    for fixes in [
        said(&|model| model.fit(&held, args())),
        said(&|model| model.fit(&stream, args())),
    ] {
        assert!(
            fixes[0].contains("`group_by_length = true` puts rows"),
            "{fixes:?}"
        );
        assert!(fixes[1].contains("a `max_length` of 42"), "{fixes:?}");
    }
    assert!(said(&|model| model.fit(&held, args().group_by_length(true))).is_empty());
    assert!(said(&|model| model.fit(&stream, args().group_by_length(true))).is_empty());
}
