//! The arguments of `fit!` and `evaluate!` do what Keras's do: callbacks, epochs and steps, weights of
//! classes, validations, checkpoints.

use std::cell::RefCell;

use stratoscope_models::{
    BertForSequenceClassification, Callback, Callbacks, EarlyStopping, EpochRecord, EvaluateArgs,
    ExecutionRecord, FitArgs, Flow, History, LearningRateLogger, SGD, on_batch_end, on_epoch_end,
    on_train_begin, on_train_end, warmup_linear,
};
use stratoscope_strategy::{MirroredStrategy, scope};
use tempfile::TempDir;

use crate::support::{
    assert_near, assert_near_weights, id_data, id_model, load, plain_args, sentences, tiny_bert,
    weights,
};

fn quiet<'a>() -> FitArgs<'a> {
    FitArgs::new().batch_size(4).verbose(false)
}

fn compiled(dropout: f64) -> BertForSequenceClassification {
    let model = load(&tiny_bert(dropout));
    model.compile(plain_args()).expect("valid arguments");
    model
}

/// Writes down every moment.
struct Diary<'a>(&'a RefCell<Vec<String>>);

impl Callback for Diary<'_> {
    fn on_train_begin(&mut self, run: &stratoscope_models::events::FitStarted) {
        let line = format!("begin: {} batches an epoch", run.batches_per_epoch);
        self.0.borrow_mut().push(line);
    }

    fn on_epoch_begin(&mut self, epoch: u64) {
        self.0.borrow_mut().push(format!("epoch {epoch}"));
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        let end = execution.first_batch + execution.batches;
        let line = format!("batches {}..{end}", execution.first_batch);
        self.0.borrow_mut().push(line);
        Flow::Continue
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        self.0
            .borrow_mut()
            .push(format!("epoch {} ended", epoch.epoch));
        Flow::Continue
    }

    fn on_train_end(&mut self, history: &History) {
        let line = format!("end: {}", history.counters);
        self.0.borrow_mut().push(line);
    }
}

#[test]
fn callbacks_are_called_once_an_execution_with_its_batches() {
    let check = |steps_per_execution: u64, expected: &[&str]| {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = load(&tiny_bert(0.0));
        model
            .compile(plain_args().steps_per_execution(steps_per_execution))
            .expect("valid arguments");
        let diary = RefCell::new(Vec::new());
        let callbacks = Callbacks::new()
            .and(Diary(&diary))
            .and(LearningRateLogger::new());
        let args = quiet().callbacks(callbacks);
        model.fit(&sentences(20), args).expect("it trains");
        assert_eq!(*diary.borrow(), expected);
    };
    let every_third = [
        "begin: 5 batches an epoch",
        "epoch 0",
        "batches 0..3",
        "batches 3..5",
        "epoch 0 ended",
        "end: 2 executions, 5 optimizer steps, 5 all-reduces",
    ];
    check(3, &every_third);
    let all_at_once = [
        "begin: 5 batches an epoch",
        "epoch 0",
        "batches 0..5",
        "epoch 0 ended",
        "end: 1 execution, 5 optimizer steps, 5 all-reduces",
    ];
    check(100, &all_at_once);
}

#[test]
fn closures_are_called_at_their_moment_and_may_borrow() {
    let (mut begun, mut losses, mut epochs, mut ended) = (0, Vec::new(), Vec::new(), None);
    let callbacks = Callbacks::new()
        .and(on_train_begin(|run| begun = run.examples))
        .and(on_batch_end(|batch| losses.push(batch.loss)))
        .and(on_epoch_end(|epoch| epochs.push(epoch.loss)))
        .and(on_train_end(|history| ended = Some(history.counters)));
    let args = quiet().epochs(2).callbacks(callbacks);
    let history = compiled(0.0).fit(&sentences(12), args).expect("it trains");
    let of_executions: Vec<f64> = history.executions.iter().map(|it| it.loss).collect();
    let of_epochs: Vec<f64> = history.epochs.iter().map(|it| it.loss).collect();
    assert_eq!((begun, losses, epochs), (12, of_executions, of_epochs));
    assert_eq!(ended, Some(history.counters));
}

#[test]
fn a_callback_ends_the_training_with_its_epoch() {
    let (data, dev) = (sentences(20), sentences(6));
    let args = || quiet().epochs(4).validation_data(&dev);
    let stop = on_batch_end(|batch| match batch.first_batch {
        1 => Flow::Stop,
        _ => Flow::Continue,
    });
    let history = compiled(0.0)
        .fit(&data, args().callbacks(stop))
        .expect("it trains");
    assert_eq!((history.counters.batches, history.epochs.len()), (2, 1));
    assert!(history.stopped_early && history.epochs[0].validation.is_some());
    let seen = RefCell::new(0);
    let callbacks = Callbacks::new()
        .and(on_epoch_end(|epoch| match epoch.epoch {
            1 => Flow::Stop,
            _ => Flow::Continue,
        }))
        // All are called, those after the one that stops too.
        .and(on_epoch_end(|_| *seen.borrow_mut() += 1));
    let args = args().callbacks(callbacks);
    let history = compiled(0.0).fit(&data, args).expect("it trains");
    assert_eq!((history.epochs.len(), seen.into_inner()), (2, 2));
}

#[test]
fn a_callback_asks_the_model_and_does_not_change_it() {
    let (model, data) = (compiled(0.0), sentences(8));
    let (same, other) = (model.clone(), compiled(0.0));
    let mut codes = Vec::new();
    let callback = on_epoch_end(|_| {
        same.predict("w10").expect("it is read");
        let args = EvaluateArgs::new().verbose(false);
        same.evaluate(&data, args).expect("it is read");
        codes.extend(same.fit(&data, quiet()).err().map(|finding| finding.code));
        other.predict("w10").expect("another model is free");
    });
    model
        .fit(&data, quiet().callbacks(callback))
        .expect("it trains");
    assert_eq!(codes, ["SC0121"]);
    model.predict("w10").expect("after the run it is free");
}

/// Orders, dropout masks and moments go on where they were: two runs are one.
#[test]
fn a_run_takes_up_at_its_initial_epoch() {
    let data = sentences(20);
    let run = |parts: &[(u64, u64)]| {
        let model = compiled(0.1);
        let mut epochs = Vec::new();
        for &(from, to) in parts {
            let args = quiet().initial_epoch(from).epochs(to).seed(5);
            let history = model.fit(&data, args).expect("it trains");
            assert_eq!(history.counters.batches, 5 * (to - from));
            epochs.extend(history.epochs.iter().map(|record| record.epoch));
        }
        assert_eq!(epochs, [0, 1, 2]);
        weights(&model)
    };
    assert_eq!(run(&[(0, 3)]), run(&[(0, 1), (1, 3)]), "bit for bit");
}

#[test]
fn a_schedule_over_the_run_takes_up_at_the_initial_epoch() {
    let data = sentences(20);
    let rates = |from: u64| -> Vec<f64> {
        let model = load(&tiny_bert(0.0));
        let schedule = warmup_linear(1e-3, 0.2);
        model
            .compile(plain_args().optimizer(SGD::new(schedule)))
            .expect("valid arguments");
        let args = quiet().initial_epoch(from).epochs(3);
        let history = model.fit(&data, args).expect("it trains");
        history
            .executions
            .iter()
            .map(|it| it.learning_rate)
            .collect()
    };
    assert_eq!(rates(2), rates(0)[10..]);
}

#[test]
fn an_epoch_of_some_steps_takes_the_first_batches_of_its_order() {
    let data = sentences(20);
    let args = || quiet().shuffle(false);
    let short = compiled(0.0);
    let history = short
        .fit(&data, args().steps_per_epoch(3))
        .expect("it trains");
    assert_eq!(history.counters.batches, 3);
    let first = compiled(0.0);
    first.fit(&data.take(12), args()).expect("it trains");
    assert_eq!(weights(&short), weights(&first));
    let history = short.fit(&data, args().epochs(2).steps_per_epoch(9));
    assert_eq!(
        history.expect("it trains").counters.batches,
        10,
        "the data has an end"
    );
}

#[test]
fn validation_is_made_when_and_on_what_it_should() {
    let (data, dev) = (sentences(8), sentences(18));
    let check = |args: FitArgs<'_>, expected: &[Option<usize>]| {
        let args = args.epochs(4).validation_data(&dev);
        let history = compiled(0.0).fit(&data, args).expect("it trains");
        let examples = |record: &EpochRecord| record.validation.as_ref().map(|it| it.examples);
        let found: Vec<Option<usize>> = history.epochs.iter().map(examples).collect();
        assert_eq!(found, expected);
        // Whichever epoch is validated, the table has its columns.
        let plain = history.to_plain();
        assert!(plain.contains("val loss"), "{plain}");
        let widths: Vec<usize> = plain
            .lines()
            .take(5)
            .map(|line| line.chars().count())
            .collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{plain}");
    };
    check(quiet(), &[Some(18); 4]);
    check(quiet().validation_steps(2), &[Some(8); 4]);
    check(
        quiet().validation_freq(2),
        &[None, Some(18), None, Some(18)],
    );
    let some = [Some(4), None, None, Some(4)];
    check(quiet().validation_freq([1, 4]).validation_steps(1), &some);
    let finding = compiled(0.0).fit(&data, quiet().validation_freq(2));
    assert_eq!(finding.expect_err("nothing is validated on").code, "SC0103");
}

#[test]
fn evaluate_takes_the_first_steps() {
    let (model, data) = (compiled(0.0), sentences(18));
    let args = || EvaluateArgs::new().batch_size(4).verbose(false);
    let some = model
        .evaluate(&data, args().steps(2))
        .expect("it is compiled");
    let first = model
        .evaluate(&data.take(8), args())
        .expect("it is compiled");
    assert_eq!((some.loss, some.metrics), (first.loss, first.metrics));
    assert_eq!(
        model
            .evaluate(&data, args().steps(99))
            .expect("all")
            .examples,
        18
    );
    assert_eq!(
        model
            .evaluate(&data, args().steps(0))
            .expect_err("none")
            .code,
        "SC0103"
    );
}

/// (1 / N) Σ weight · loss, on one device and on two.
#[test]
fn classes_weigh_what_they_should() {
    let data = sentences(10);
    let weighted = [("red", 3.0), ("green", 0.5), ("blue", 0.0)];
    let run = || {
        let model = load(&tiny_bert(0.0));
        // Plain descent, whose steps are proportional to gradients.
        let args = plain_args().optimizer(SGD::new(0.5));
        model.compile(args).expect("valid arguments");
        let args = EvaluateArgs::new().verbose(false);
        let expected: f64 = weighted
            .iter()
            .map(|(name, weight)| {
                let class = data.label_names.iter().position(|known| known == name);
                let part = data.filter(|example| example.class() == class);
                let loss = model.evaluate(&part, args).expect("compiled").loss;
                weight * loss * part.len() as f64 / data.len() as f64
            })
            .sum();
        let args = FitArgs::new().batch_size(10).verbose(false);
        let history = model
            .fit(&data, args.class_weight(weighted))
            .expect("it trains");
        let found = history.executions[0].loss;
        assert_near(found, expected);
        weights(&model)
    };
    let one = run();
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    assert_near_weights(&run(), &one);
}

#[test]
fn weights_of_classes_are_checked_against_the_model() {
    let (model, data) = (compiled(0.0), sentences(9));
    let missing = quiet().class_weight([("red", 1.0), ("blue", 1.0)]);
    let finding = model.fit(&data, missing).expect_err("no weight for green");
    assert_eq!(finding.code, "SC0103");
    assert!(format!("{finding:?}").contains("`green`"), "{finding:?}");
    model
        .fit(&data, quiet().class_weight("balanced"))
        .expect("it trains");
}

#[test]
fn early_stopping_watches_what_it_is_asked_to() {
    let (data, dev) = (sentences(12), sentences(6));
    let watch = |monitor: &str| EarlyStopping::new().monitor(monitor).patience(1);
    let args = quiet().epochs(30).validation_data(&dev);
    // No accuracy is better by more than 1: the first epoch stays the best.
    let stopping = watch("val_accuracy").min_delta(1.0);
    let history = compiled(0.0)
        .fit(&data, args.callbacks(stopping))
        .expect("it trains");
    assert_eq!((history.epochs.len(), history.best_epoch), (2, Some(0)));
    assert!(history.stopped_early && history.restored_best);
    assert!(
        history
            .to_plain()
            .contains("best val_accuracy after epoch 1"),
        "{history}"
    );
    let last = watch("loss").min_delta(100.0).restore_best_weights(false);
    let args = quiet().epochs(30).early_stopping(last);
    let history = compiled(0.0).fit(&data, args).expect("it trains");
    assert_eq!((history.epochs.len(), history.restored_best), (2, false));
    let unknown = quiet()
        .early_stopping(watch("val_f1"))
        .validation_data(&dev);
    let finding = compiled(0.0)
        .fit(&data, unknown)
        .expect_err("it is not measured");
    assert_eq!(finding.code, "SC0103");
    let finding = compiled(0.0)
        .fit(&data, quiet().early_stopping(2))
        .expect_err("no validation");
    assert_eq!(finding.code, "SC0103");
}

#[test]
fn a_checkpoint_has_the_best_and_the_last_weights() {
    let (data, dev) = (sentences(12), sentences(9));
    let folder = TempDir::new().expect("a temporary folder");
    let runs = folder.path().join("runs");
    let model = load(&tiny_bert(0.0));
    // So large a rate makes the later epochs worse than the first.
    model
        .compile(plain_args().optimizer(SGD::new(1.0)))
        .expect("valid arguments");
    let args = quiet().epochs(6).validation_data(&dev).checkpoint(&runs);
    let history = model.fit(&data, args).expect("it trains");
    let best = history.best_epoch.expect("it was validated") as usize;
    let loss_of = |name: &str| {
        let path = runs.join(name);
        let path = path.to_str().expect("a path in UTF-8");
        let loaded = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
        assert_eq!(loaded.label_names(), ["blue", "green", "red"]);
        loaded.compile(plain_args()).expect("valid arguments");
        // In the batches that the run validates with: the same sums, the same numbers.
        let args = EvaluateArgs::new().batch_size(4).verbose(false);
        loaded.evaluate(&dev, args).expect("it is compiled").loss
    };
    let loss_after = |epoch: usize| {
        let validation = history.epochs[epoch].validation.as_ref();
        validation.expect("it was validated").loss
    };
    assert_eq!(loss_of("best"), loss_after(best));
    assert_eq!(loss_of("last"), loss_after(5));
    assert!(history.to_plain().contains("runs/best"), "{history}");

    let ids = id_model();
    ids.compile(plain_args()).expect("valid arguments");
    let data = id_data(vec![("5:0 17:0".to_owned(), 1)]);
    let finding = ids
        .fit(&data, quiet().checkpoint(&runs))
        .expect_err("no files of its own");
    assert_eq!(finding.code, "SC0103");
}

#[test]
fn what_text_decides_is_checked_at_run_time_too() {
    let check = |args: FitArgs<'_>, argument: &str| {
        let finding = compiled(0.0).fit(&sentences(6), args).expect_err(argument);
        assert_eq!(finding.code, "SC0103");
        assert!(finding.message.contains(argument), "{finding}");
    };
    check(quiet().initial_epoch(-1), "initial_epoch");
    check(quiet().epochs(2).initial_epoch(2), "initial_epoch");
    check(quiet().steps_per_epoch(0), "steps_per_epoch");
    check(
        quiet().validation_split(0.5).validation_steps(0),
        "validation_steps",
    );
    check(quiet().class_weight([1.0]), "class_weight");
}
