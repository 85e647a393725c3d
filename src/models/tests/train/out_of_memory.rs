//! A device that is out of memory: the run divides its batches and goes on, with the gradients of the same examples.
//!
//! What needs how much is asked of the memory plan, so that the tests hold for any formula of it.

use std::sync::{Arc, Mutex};

use stratoscope_data::{Dataset, make_regression};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::{
    BertForSequenceClassification, CompileArgs, Dense, EvaluateArgs, FitArgs, FitStarted, History,
    SGD, Sequential, auto, memory_plan, on_train_begin,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, Strategy, cpu, scope, wgpu,
};

use crate::support::{
    assert_near, assert_near_weights, grouped, heard, is_full, load, plain_args, recipe, sentences,
    tiny_bert, weights,
};

type Bert = BertForSequenceClassification;

/// Examples of a global batch.
const BATCH: usize = 192;

/// Two batches an epoch, the rows in the order of their lengths where they are not shuffled.
fn data() -> Dataset {
    sentences(2 * BATCH)
}

/// The longest row of [`data`]: words, and two special tokens.
const LONGEST: usize = 13;

fn mirrored(limit: Option<u64>) -> Strategy {
    let device = match limit {
        Some(megabytes) => cpu(0).memory_limit(2 * megabytes),
        None => cpu(0),
    };
    let strategy = MirroredStrategy::logical_on(device, 2);
    strategy.expect("two shares").strategy()
}

fn one(limit: Option<u64>) -> Strategy {
    let device = match limit {
        Some(megabytes) => cpu(0).memory_limit(megabytes),
        None => cpu(0),
    };
    OneDeviceStrategy::new(device)
        .expect("the processor")
        .strategy()
}

fn model(strategy: &Strategy, dropout: f64, args: CompileArgs) -> Bert {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(&tiny_bert(dropout));
    model.compile(args).expect("valid arguments");
    model
}

fn args(batch_size: usize) -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).seed(3).verbose(false);
    args.batch_size(batch_size)
        .validation_data_copied(&sentences(7))
}

/// Megabytes in which `examples` of the longest row fit on each replica and twice as many do not.
fn limit_for(model: &Bert, examples: usize) -> u64 {
    let needed = |examples: usize| -> u64 {
        let plan = memory_plan(model, examples, LONGEST);
        // Beside the gradients of another part.
        plan.total() / plan.replicas as u64 + plan.of("gradients")
    };
    let limit = needed(examples).div_ceil(1 << 20);
    let plan = memory_plan(model, 2 * examples, LONGEST);
    let is_above = plan.total() / plan.replicas as u64 > limit << 20;
    assert!(is_above, "batches are too small: {plan}");
    limit
}

/// The largest buffer of its device, where it has a limit.
fn largest_buffer(strategy: &OneDeviceStrategy) -> Option<u64> {
    stratoscope_strategy::device::largest_buffer(&strategy.strategy().replicas()[0].burn)
}

fn divisions(notices: &[Diagnostic]) -> Vec<&str> {
    notices.iter().map(|it| it.message.as_str()).collect()
}

fn losses(history: &History) -> Vec<(u64, u64)> {
    let steps = history.steps.iter();
    steps.map(|it| (it.step, it.loss.to_bits())).collect()
}

/// With a limit that has room for a part of the batch, a run is that of this batch size and accumulation from the start,
/// bit for bit, dropout masks included.
fn check_divided(strategy: fn(Option<u64>) -> Strategy, part: usize, accumulation: usize) {
    let unlimited = strategy(None);
    let whole = model(&unlimited, 0.1, plain_args());
    let limit = limit_for(&whole, part);
    drop((whole, unlimited));
    let factor = BATCH / part;
    let reference = {
        let strategy = strategy(None);
        let compiled = grouped(
            plain_args().optimizer(recipe()),
            1,
            factor * accumulation,
            1,
        );
        let model = model(&strategy, 0.1, compiled);
        let history = model.fit(&data(), args(part)).expect("it trains");
        (weights(&model), losses(&history), history)
    };
    let strategy = strategy(Some(limit));
    let compiled = grouped(plain_args().optimizer(recipe()), 1, accumulation, 1);
    let model = model(&strategy, 0.1, compiled);
    let (history, notices) = heard(&["SC0608"], || model.fit(&data(), args(BATCH)));
    let history = history.expect("it trains in parts");
    let said = divisions(&notices);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("cpu:0")
            && said[0].contains(" is out of memory for 192 examples × ")
            && said[0].ends_with(&format!("in {factor} parts of {part}")),
        "{said:?}"
    );
    assert_eq!(history.edits.len(), 1);
    assert_eq!(history.edits[0].step, 0);
    assert_eq!(losses(&history), reference.1);
    assert!(weights(&model) == reference.0, "other weights");
    let validation = |history: &History| -> Vec<u64> {
        let epochs = history.epochs.iter();
        epochs
            .filter_map(|it| Some(it.validation.as_ref()?.loss.to_bits()))
            .collect()
    };
    assert_eq!(validation(&history), validation(&reference.2));
    // Batches, executions and steps are counted as they were asked for.
    assert_eq!(history.counters.batches, 4);
}

#[test]
fn a_divided_batch_is_accumulation_from_the_start() {
    check_divided(one, BATCH / 2, 1);
}

#[test]
fn what_needs_four_parts_is_divided_once() {
    check_divided(one, BATCH / 4, 1);
}

#[test]
fn replicas_and_accumulation_are_divided() {
    check_divided(mirrored, BATCH / 2, 2);
}

/// Without dropout the undisturbed run has the same steps but for rounding.
#[test]
fn a_divided_step_is_the_undisturbed_one_but_for_rounding() {
    let sgd = || plain_args().optimizer(SGD::new(0.1).momentum(0.9));
    let unlimited = one(None);
    let whole = model(&unlimited, 0.0, sgd());
    let limit = limit_for(&whole, BATCH / 4);
    let undisturbed = whole.fit(&data(), args(BATCH)).expect("it trains");
    let expected = weights(&whole);
    drop((whole, unlimited));
    let strategy = one(Some(limit));
    let model = model(&strategy, 0.0, sgd());
    let (history, notices) = heard(&["SC0608"], || model.fit(&data(), args(BATCH)));
    assert_eq!(notices.len(), 1);
    let history = history.expect("it trains in parts");
    for (found, expected) in history.steps.iter().zip(&undisturbed.steps) {
        assert_near(found.loss, expected.loss);
    }
    assert_near_weights(&weights(&model), &expected);
}

/// Short rows first: the limit is met in the middle of a run. It can be turned back over the place, and what is looked at
/// is of the parts.
#[test]
fn a_run_is_divided_on_the_way_and_turned_back_over_it() {
    let text = |words: usize, index: usize| {
        let words = (0..words).map(|word| format!("w{}", 10 + (index * 11 + word * 5) % 80));
        (
            words.collect::<Vec<_>>().join(" "),
            ["red", "green", "blue"][index % 3],
        )
    };
    let rows = (0..6 * BATCH).map(|index| text(if index < 3 * BATCH { 2 } else { 11 }, index));
    let data = Dataset::from_labelled(rows);
    let unlimited = one(None);
    let whole = model(&unlimited, 0.1, plain_args());
    let limit = limit_for(&whole, BATCH / 2);
    drop((whole, unlimited));
    let strategy = one(Some(limit));
    let model = model(&strategy, 0.1, plain_args());
    let args = FitArgs::new().epochs(1).shuffle(false).verbose(false);
    let run = model.start(&data, args.batch_size(BATCH)).expect("ready");
    run.keep_snapshots(2, 100).expect("it is not over");
    let (first, notices) = heard(&["SC0608"], || run.step(5));
    first.expect("it steps");
    let said = divisions(&notices);
    assert!(
        said.len() == 1 && said[0].contains("from step 4 on"),
        "{said:?}"
    );
    let at_5 = weights(&model);
    let first = run.history().expect("no callback");
    assert_eq!(first.edits[0].step, 3);
    // The gradients of the coming step are those of its parts.
    let looked = run.gradients().expect("no callback");
    for back in [4, 2] {
        let (rewound, again) = heard(&["SC0529", "SC0608"], || run.rewind(back));
        let rewound = rewound.expect("it was made");
        assert_eq!((rewound.step, rewound.differs), (back, None));
        assert!(again.is_empty(), "{again:?}");
        let (reached, _) = heard(&["SC0608"], || run.until(5));
        reached.expect("it steps");
        assert!(weights(&model) == at_5, "other weights from step {back}");
        let history = run.history().expect("no callback");
        assert_eq!(losses(&history), losses(&first));
        assert_eq!(history.edits, first.edits);
    }
    run.step(1).expect("it steps");
    let made = run.report().expect("no callback").recent;
    assert_near(
        made.last().expect("a step").gradient_norm,
        looked.total().norm,
    );
    run.finish().expect("no more steps");
}

/// What cannot be divided is an error, after which the model is as it was and the run can be given up or gone on with.
#[test]
fn variables_that_do_not_fit_are_an_error() {
    let strategy = one(Some(1));
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = Sequential([Dense(600).seed(1), Dense(1).seed(2)]).expect("two layers");
    let args = CompileArgs::new().optimizer(SGD::new(0.1)).loss("mse");
    model.compile(args).expect("valid");
    let data = make_regression(8, 600, 3).expect("sizes above 0");
    let (outcome, _) = heard(&["SC0601"], || {
        model.fit(&data, FitArgs::new().batch_size(4).verbose(false))
    });
    let problem = outcome.expect_err("600 × 600 numbers are more than 1 MB");
    assert_eq!(problem.code, "SC0607");
    assert!(
        problem
            .message
            .starts_with("cpu:0 is out of memory for 1 example: "),
        "{problem}"
    );
    assert!(
        problem.message.ends_with("limited to 1.00 MiB"),
        "{problem}"
    );
    model
        .evaluate(&data, EvaluateArgs::new())
        .expect("the model lives");
}

/// A real failure: the input of the batch is larger than the largest buffer of the adapter. Half of it is not. With
/// `STRATOSCOPE_FULL_TESTS` only; an update without memory is undone on wgpu each time (`failed_update`).
#[test]
fn a_failed_allocation_of_wgpu_is_divided() {
    if !is_full() {
        return;
    }
    let strategy = match OneDeviceStrategy::new(wgpu(0)) {
        Ok(strategy) => strategy,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    if largest_buffer(&strategy) != Some(128 << 20) {
        eprintln!("skipped: the adapter has larger buffers than lavapipe's");
        return;
    }
    let scope = scope::enter(&strategy).expect("no scope is active");
    // 150 MB at once.
    let (rows, width) = (60_000, 625);
    let data = make_regression(rows, width, 3).expect("sizes above 0");
    let trained = |batch_size: usize, accumulation: usize| {
        let model = Sequential([Dense(1).seed(2)]).expect("a layer");
        let args = CompileArgs::new().optimizer(SGD::new(0.01)).loss("mse");
        let args = args.gradient_accumulation_steps(accumulation);
        model.compile(args).expect("valid");
        let args = FitArgs::new().batch_size(batch_size).epochs(2);
        let (history, notices) = heard(&["SC0608"], || model.fit(&data, args.verbose(false)));
        let history = history.expect("it trains");
        (weights(&model), history, notices.len())
    };
    let (found, history, notices) = trained(rows, 1);
    assert_eq!(notices, 1);
    assert_eq!(history.edits.len(), 1, "{:?}", history.edits);
    assert_eq!(history.steps.len(), 2);
    let (expected, reference, notices) = trained(rows / 2, 2);
    assert_eq!(notices, 0);
    for (found, expected) in history.steps.iter().zip(&reference.steps) {
        assert_near(found.loss, expected.loss);
    }
    assert_near_weights(&found, &expected);
    // A variable that no buffer holds is refused when it is placed, and the device works on.
    let model = Sequential([Dense(6000).input_shape(6000), Dense(1)]);
    let problem = model.map(|_| ()).expect_err("144 MB are more than 128 MiB");
    assert_eq!(problem.code, "SC0609", "{problem}");
    drop(scope);
    let model = Sequential([Dense(1).input_shape(2)]).expect("on the processor");
    assert_eq!(weights(&model).len(), 2);
}

/// `auto` chooses what the plan has room for, and says why.
#[test]
fn batches_are_chosen_by_memory() {
    let unlimited = one(None);
    let whole = model(&unlimited, 0.1, plain_args());
    let limit = limit_for(&whole, BATCH / 4);
    drop((whole, unlimited));
    let chosen = |limit: Option<u64>, choice: &dyn Fn(FitArgs<'static>) -> FitArgs<'static>| {
        let strategy = one(limit);
        let model = model(&strategy, 0.1, plain_args().optimizer(recipe()));
        let started = Arc::new(Mutex::new(None));
        let heard = Arc::clone(&started);
        let args = FitArgs::new().epochs(1).seed(3).verbose(false);
        let args = args.callbacks(on_train_begin(move |run: &FitStarted| {
            *heard.lock().expect("one thread") = Some(run.clone());
        }));
        let (history, notices) = crate::support::heard(&["SC0608"], || {
            model.fit(&data(), choice(args)).expect("it trains")
        });
        assert!(notices.is_empty(), "{notices:?}");
        let started = started.lock().expect("one thread").take();
        (weights(&model), started.expect("it began"), history)
    };
    // The global batch is kept, and the parts fit from the start.
    let (found, started, history) = chosen(Some(limit), &|args| args.batch_size(auto(BATCH)));
    assert_eq!((started.batch_size, history.edits[0].step), (BATCH, 0));
    let why = started.chosen.expect("a choice");
    assert!(
        why.starts_with("batch_size = 192 in 4 parts of 48, chosen: "),
        "{why}"
    );
    assert!(why.contains("; 96 would need "), "{why}");
    let (expected, started, _) = chosen(Some(limit), &|args| args.batch_size(BATCH / 4));
    assert_eq!(started.chosen, None);
    assert!(found != expected, "one step for four");
    // Where all of it fits there is nothing to divide.
    let (_, started, history) = chosen(Some(1000), &|args| args.batch_size(auto(BATCH)));
    let why = started.chosen.expect("a choice");
    assert!(why.starts_with("batch_size = 192 at once: "), "{why}");
    assert!(history.edits.is_empty());
    // Without a number, an epoch of 384 examples keeps 32 steps.
    let (_, started, _) = chosen(Some(1000), &|args| args.batch_size(auto));
    let why = started.chosen.expect("a choice");
    assert_eq!((started.batch_size, started.batches_per_epoch), (8, 48));
    assert!(why.contains("fewer than 32 steps"), "{why}");
}

#[test]
fn what_auto_cannot_choose_is_said() {
    let strategy = one(Some(1000));
    let model = model(&strategy, 0.1, plain_args());
    let fit = |args: FitArgs<'static>| {
        let outcome = model.fit(&data(), args.verbose(false));
        outcome.map(|_| ()).map_err(|problem| problem.code)
    };
    let conflict = Err("SC0118".to_owned());
    let args = || FitArgs::new().batch_size(auto);
    assert_eq!(fit(args().steps_per_epoch(2)), conflict);
    assert_eq!(
        fit(FitArgs::new().batch_size(auto(0))),
        Err("SC0103".to_owned())
    );
    assert_eq!(
        fit(FitArgs::new().batch_size(auto(64)).steps_per_epoch(2)),
        Ok(())
    );
}
