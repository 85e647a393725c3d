//! Past steps are replayed with probes that nobody had set, and the run stands afterwards where it stood.

use std::collections::HashMap;

use stratoscope_strategy::{AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Strategy};
use stratoscope_train::{BertForSequenceClassification, Direction, FitArgs, pin};

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
