//! Past steps are replayed with probes that nobody had set, and the run stands afterwards where it stood.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use stratoscope_models::breakpoints::every;
use stratoscope_models::{
    BertForSequenceClassification, Direction, EvaluateArgs, FitArgs, on_epoch_end, pin,
};
use stratoscope_strategy::{AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Strategy};

use crate::callback_methods::watched;
use crate::support::{self, mirrored, plain_args, sentences, weights};

type Bert = BertForSequenceClassification;

fn model(strategy: Option<Strategy>, accumulation: usize) -> Bert {
    let args = support::grouped(plain_args(), 1, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

/// Eight batches an epoch, sixteen in all.
fn args() -> FitArgs<'static> {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    args.validation_data_copied(&sentences(7)).verbose(false)
}

fn checksums(model: &Bert) -> String {
    let report = model.placement().expect("the devices answer");
    let rows = report.variables.iter().filter(|row| !row.beside);
    let rows = rows.map(|row| {
        let copies: Vec<_> = row.copies.iter().map(|it| it.checksum).collect();
        format!("{} {copies:?}\n", row.name)
    });
    rows.collect()
}

#[test]
fn the_values_are_those_that_the_steps_had_and_nothing_changes() {
    let reference = model(None, 1);
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    let model = model(None, 1);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    // What is seen at each step the first time, before it is made.
    let mut first: HashMap<u64, (f64, f64)> = HashMap::new();
    for step in 1..=10 {
        let outputs = run.activations("encoder.layer.1.output").expect("known");
        let gradient = run.gradients().expect("no device fails");
        let norms = (
            outputs["bert.encoder.layer.1.output"].norm,
            gradient["classifier.weight"].norm,
        );
        first.insert(step, norms);
        run.step(1).expect("it steps");
    }
    let (before, history) = (checksums(&model), run.history().expect("no callback"));
    let mut passes = 0;
    let hindsight = run.hindsight(3..9, |tap| {
        passes += 1;
        assert_eq!(tap.elements.len(), tap.shape.iter().product::<usize>());
        Some(tap.norm)
    });
    let hindsight = hindsight.expect("it is held");
    assert!(passes == hindsight.values.len() && passes > 100, "{passes}");
    assert_eq!(hindsight.steps, (3, 8));
    let outputs = hindsight.of("bert.encoder.layer.1.output", Direction::Forward);
    assert_eq!(outputs.len(), 6, "{hindsight}");
    for (step, norm) in outputs {
        assert_eq!(norm.to_bits(), first[&step].0.to_bits(), "step {step}");
    }
    let gradients = hindsight.of("classifier.weight", Direction::Backward);
    for (step, norm) in gradients {
        assert_eq!(norm.to_bits(), first[&step].1.to_bits(), "step {step}");
    }
    assert!(hindsight.to_html().contains("data:image/svg+xml"));
    assert!(hindsight.notes[0].contains("after step 0"), "{hindsight}");
    // The run stands where it stood, and goes on to the same end.
    assert!(checksums(&model) == before);
    let now = run.history().expect("no callback");
    assert_eq!(now.steps.len(), history.steps.len());
    assert_eq!(now.edits.len(), history.edits.len());
    let history = run.finish().expect("it steps");
    assert!(weights(&model) == weights(&reference));
    assert_eq!(history.counters, whole.counters);
}

#[test]
fn changes_of_the_run_are_made_again_at_their_steps() {
    let model = model(None, 1);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(100, 1000).expect("the run is not over");
    run.step(2).expect("it steps");
    run.set_learning_rate(pin(1e-2)).expect("a rate");
    run.step(1).expect("it steps");
    run.freeze("bert.embeddings").expect("a name");
    run.skip_batch().expect("there is one");
    run.step(3).expect("it steps");
    let expected = run.activations("encoder.layer.0.output").expect("known");
    let expected = expected["bert.encoder.layer.0.output"].norm;
    let before = checksums(&model);
    // The step that comes next may be looked at too.
    let hindsight = run.hindsight(2..=7, |tap| tap.norm).expect("it is held");
    let found = hindsight.of("bert.encoder.layer.0.output", Direction::Forward);
    assert_eq!(
        found.last().map(|it| (it.0, it.1.to_bits())),
        Some((7, expected.to_bits()))
    );
    assert!(!hindsight.to_plain().contains("not exact"), "{hindsight}");
    assert!(checksums(&model) == before);
    let edits = run.history().expect("no callback").edits;
    assert_eq!(edits.len(), 3, "{edits:?}");
    let rest = run.finish().expect("it goes on");
    assert!(
        rest.steps
            .iter()
            .all(|it| it.learning_rate == 1e-2 || it.step <= 2)
    );
}

#[test]
fn under_every_strategy_and_with_accumulation() {
    let central: fn() -> Option<Strategy> =
        || Some(CentralStorageStrategy::logical(2).expect("two").strategy());
    let servers: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 2).expect("two and two");
        Some(servers.synchronous().strategy())
    };
    let alone: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 2).expect("two and two");
        Some(servers.strategy())
    };
    let cases = [
        (mirrored as fn() -> Option<Strategy>, 2),
        (central, 1),
        (servers, 1),
        (alone, 1),
    ];
    for (strategy, accumulation) in cases {
        let model = model(strategy(), accumulation);
        let run = model.start(&sentences(30), args()).expect("it is ready");
        run.step(6).expect("it steps");
        let before = checksums(&model);
        let hindsight = run.hindsight(1..5, |tap| tap.rms).expect("it is held");
        let replicas = hindsight.values.iter().map(|it| it.replica).max();
        let batches = hindsight.values.iter().map(|it| it.micro_batch).max();
        assert_eq!((replicas, batches), (Some(1), Some(accumulation - 1)));
        assert!(checksums(&model) == before);
        run.finish().expect("it steps");
    }
}

#[test]
fn steps_that_are_not_held_are_refused_and_a_checkpoint_helps() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let own = model(None, 1);
    let with = args().checkpoint(folder.path()).every(4).keep_last(100);
    let run = own.start(&sentences(30), with).expect("it is ready");
    run.step(9).expect("it steps");
    // Nothing is held in memory any more.
    run.keep_snapshots(100, 0).expect("the run is not over");
    let before = checksums(&own);
    let hindsight = run.hindsight(6..=7, |tap| tap.norm);
    let hindsight = hindsight.expect("a checkpoint is held");
    assert!(hindsight.notes[0].contains("after step 4"), "{hindsight}");
    assert!(!hindsight.to_plain().contains("not exact"), "{hindsight}");
    assert!(checksums(&own) == before);
    let refused = run.hindsight(2..3, |tap| tap.norm).expect_err("too early");
    assert_eq!(refused.code, "SC0531");
    let text = format!("{refused}");
    assert!(text.contains("steps 5 to 10 can"), "{text}");
    let later = run.hindsight(12..14, |tap| tap.norm).expect_err("not made");
    assert_eq!(later.code, "SC0531");
    assert!(run.hindsight(5..5, |tap| tap.norm).is_err(), "no steps");
    let nothing = model(None, 1);
    let run = nothing.start(&sentences(30), args()).expect("it is ready");
    run.step(2).expect("it steps");
    run.keep_snapshots(100, 0).expect("the run is not over");
    let refused = run
        .hindsight(1..2, |tap| tap.norm)
        .expect_err("nothing held");
    assert!(
        format!("{refused}").contains("only step 3 can"),
        "{refused}"
    );
    let coming = run.hindsight(3.., |tap| tap.norm);
    assert_eq!(coming.map(|it| it.steps), Ok((3, 3)));
}

/// The end of an epoch is replayed, and the folder keeps what later epochs have written.
#[test]
fn the_files_of_each_epoch_are_left_alone() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let model = model(None, 1);
    let with = args().checkpoint(folder.path());
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.keep_snapshots(5, 1000).expect("the run is not over");
    run.until(16).expect("it steps");
    let files = || {
        ["last", "best"].map(|name| {
            let path = folder.path().join(name).join("model.safetensors");
            fs::read(path).expect("it was written")
        })
    };
    let (before, history) = (files(), run.history().expect("no callback"));
    let hindsight = run.hindsight(7..=9, |tap| tap.norm);
    let hindsight = hindsight.expect("it is held");
    assert!(!hindsight.to_plain().contains("not exact"), "{hindsight}");
    assert!(files() == before, "other files");
    let now = run.history().expect("no callback");
    assert_eq!(now.checkpoint, history.checkpoint);
    // The replay of a run that is turned back writes none either, and the history is that of the first time.
    run.rewind(9).expect("it was made");
    assert!(files() == before, "other files");
    let now = run.history().expect("no callback");
    assert_eq!(now.checkpoint, history.checkpoint);
}

#[test]
fn after_a_panic_of_the_closure_the_run_stands_where_it_stood() {
    let reference = model(None, 1);
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    let ended = Rc::new(Cell::new(0));
    let counted = Rc::clone(&ended);
    let with = args().callbacks(on_epoch_end(move |_| counted.set(counted.get() + 1)));
    let model = model(None, 1);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    run.break_when(every(12)).expect("a condition");
    run.step(10).expect("it steps");
    let (before, report) = (checksums(&model), run.report().expect("no callback"));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        run.hindsight(3..10, |tap| {
            assert!(tap.step < 6, "a mistake of the closure's");
            tap.norm
        })
    }));
    assert!(caught.is_err());
    assert!(checksums(&model) == before);
    let now = run.report().expect("no callback");
    assert_eq!(now.position, report.position);
    assert_eq!(now.snapshots, report.snapshots);
    assert_eq!(now.history.steps, report.history.steps);
    let again = run.hindsight(3..5, |tap| tap.norm).expect("it is held");
    assert_eq!(again.steps, (3, 4));
    let stop = run.epoch().expect("it stops");
    assert!(stop.hit().is_some(), "{stop}");
    assert_eq!(stop.position.step, 12, "{stop}");
    let history = run.finish().expect("it goes on");
    assert_eq!(ended.get(), 2, "callbacks");
    assert_eq!(history.counters, whole.counters);
    assert!(weights(&model) == weights(&reference));
}

#[test]
fn the_closure_may_read_the_model_and_not_change_it() {
    watched(|| {
        let model = model(None, 1);
        let run = model.start(&sentences(30), args()).expect("it is ready");
        let data = sentences(7);
        let loss = || {
            let evaluated = model.evaluate(&data, EvaluateArgs::new().verbose(false));
            evaluated.expect("it is read").loss
        };
        let mut expected = Vec::new();
        for _ in 0..4 {
            expected.push(loss());
            run.step(1).expect("it steps");
        }
        let before = checksums(&model);
        let (mut losses, mut codes) = (Vec::new(), Vec::new());
        let hindsight = run.hindsight(2..=3, |tap| {
            if tap.name == "classifier.weight" {
                losses.push(loss());
                codes.push(model.freeze("bert").expect_err("it is in use").code);
                codes.push(run.step(1).expect_err("it is in use").code);
            }
            model.num_parameters()
        });
        let hindsight = hindsight.expect("it is held");
        assert!(hindsight.values.iter().all(|it| it.value > 0.0));
        assert_eq!(losses, expected[1..3], "the weights of those steps");
        assert_eq!(codes, ["SC0121"; 4]);
        assert!(checksums(&model) == before);
        run.finish().expect("it goes on");
    });
}
