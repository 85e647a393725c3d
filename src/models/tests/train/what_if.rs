//! What a step would do with a change: that it is what the changed step then does, that nothing happens before the commit, and
//! that turning back, replaying and checkpoints know of a committed change.

use stratoscope_data::{Dataset, Label, make_regression};
use stratoscope_diagnostics::Result;
use stratoscope_models::{
    BertForSequenceClassification, CompileArgs, Dense, FitArgs, History, Interventions,
    MeanSquaredError, Run, SGD, Sequential, StepEffects, WhatIf,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, Shard, Strategy};
use tempfile::TempDir;

use crate::support::{
    self, assert_near, assert_near_by, grouped, load, mirrored, plain_args, recipe, sentences,
    tiny_bert, weights,
};

type Bert = BertForSequenceClassification;

fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .verbose(false)
}

fn compiled(strategy: Option<Strategy>) -> Bert {
    support::compiled(strategy, "float32", plain_args().optimizer(recipe()))
}

fn started(strategy: Option<Strategy>) -> (Bert, Run) {
    let model = compiled(strategy);
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    (model, run)
}

fn losses(history: &History) -> Vec<u64> {
    history.steps.iter().map(|it| it.loss.to_bits()).collect()
}

fn code<T>(outcome: Result<T>) -> String {
    match outcome {
        Ok(_) => "none".to_owned(),
        Err(problem) => problem.code,
    }
}

/// All kinds of changes at once.
fn all(it: &mut Interventions) {
    it.head(0, 1).scale(0.0);
    it.layer(1).token(0).example(2).scale(0.5);
    it.embeddings().example(0).set(0.1);
    it.weights("classifier.weight").scale(1.5);
    it.gradients("encoder.layer.0.*").scale(0.5);
    it.label(1, "blue");
    it.example_weight(3, 2.0);
    it.dropout(0.0);
}

/// The step that was made is the one that was shown.
fn check_made(
    run: &Run,
    shown: &StepEffects,
    before: &[(String, Vec<f32>)],
    after: &[(String, Vec<f32>)],
) {
    let report = run.report().expect("no callback");
    let recorded = report.recent.last().expect("a step");
    assert_near(recorded.loss, shown.loss);
    assert_near(recorded.gradient_norm, shown.gradient_norm);
    for (layer, norm) in &shown.updates {
        let own = before.iter().zip(after).filter(|((name, _), _)| {
            name.strip_prefix(layer.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let squares = own.flat_map(|((_, old), (_, new))| old.iter().zip(new));
        let sum: f64 = squares
            .map(|(old, new)| (f64::from(*new) - f64::from(*old)).powi(2))
            .sum();
        assert_near_by(sum.sqrt(), *norm, 1e-4);
    }
}

#[test]
fn nothing_changes_before_the_commit() {
    for strategy in [None, mirrored()] {
        let (model, run) = started(strategy.clone());
        for step in 0..16 {
            if step % 4 == 1 {
                let shown = run.what_if(all).expect("all of it exists");
                assert_ne!(shown.before.loss, shown.after.loss);
                assert!(shown.to_plain().contains("what if, in step"));
            }
            run.step(1).expect("it steps");
        }
        let history = run.finish().expect("it steps");
        let reference = compiled(strategy);
        let whole = reference.fit(&sentences(30), args()).expect("it trains");
        assert_eq!(losses(&history), losses(&whole));
        assert!(weights(&model) == weights(&reference));
        assert!(history.edits.is_empty());
        assert_eq!(history.counters, whole.counters);
    }
}

#[test]
fn what_is_shown_is_what_the_changed_step_does() {
    type Kind = (&'static str, fn(&mut Interventions));
    let kinds: [Kind; 8] = [
        ("head", |it| it.head(1, 0).scale(0.0)),
        ("layer", |it| it.layer(0).token(1).set(0.25)),
        ("embeddings", |it| it.embeddings().scale(0.5)),
        ("output", |it| it.output("pooler").example(1).scale(2.0)),
        ("gradients", |it| it.gradients("classifier").scale(0.5)),
        ("label", |it| it.label(0, 0)),
        ("weight", |it| it.example_weight(0, 0.0)),
        ("dropout", |it| it.dropout(0.3)),
    ];
    for strategy in [None, mirrored()] {
        for (name, change) in kinds {
            let (model, run) = started(strategy.clone());
            run.step(2).expect("it steps");
            let shown = run.what_if(change).expect(name);
            let differs = shown.before.loss != shown.after.loss
                || shown.before.gradient_norm != shown.after.gradient_norm;
            assert!(differs, "{name}: {shown}");
            let edit = shown.commit().expect("the step comes");
            assert!(
                edit.to_string()
                    .starts_with("after step 2: in the next step alone: "),
                "{edit}"
            );
            // What comes is shown to every other look too.
            let coming = run.batch().expect("a look");
            assert_eq!(coming.loss.to_bits(), shown.after.loss.to_bits(), "{name}");
            let norm = run.gradients().expect("a look").total().norm;
            assert_near(norm, shown.after.gradient_norm);
            let before = weights(&model);
            run.step(1).expect("it steps");
            check_made(&run, &shown.after, &before, &weights(&model));
            // Only this step: the next one is what it is.
            let next = run
                .what_if(|it| it.example_weight(0, 1.0))
                .expect("no change at all");
            assert_eq!(next.before, next.after, "{name}");
            assert!(next.changed_examples().is_empty());
        }
    }
}

/// One device and two replicas compute the same, without dropout, whose masks depend on the replica.
#[test]
fn replicas_change_alike() {
    let shown = |strategy: Option<Strategy>| -> WhatIf {
        let (model, run) = started(strategy);
        let shown = run.what_if(all).expect("all of it exists");
        shown.commit().expect("it comes");
        let before = weights(&model);
        run.step(1).expect("it steps");
        check_made(&run, &shown.after, &before, &weights(&model));
        shown
    };
    let one = shown(None);
    let zero = |shard| {
        let strategy = MirroredStrategy::logical(2).expect("two");
        Some(strategy.shard(shard).expect("several").strategy())
    };
    let others = [
        mirrored(),
        zero(Shard::Optimizer),
        zero(Shard::Gradients),
        zero(Shard::Parameters),
    ];
    for other in others.map(shown) {
        assert_near(other.after.loss, one.after.loss);
        assert_near(other.after.gradient_norm, one.after.gradient_norm);
        for (found, expected) in other.after.examples.iter().zip(&one.after.examples) {
            assert_near(found.loss, expected.loss);
            assert_eq!((found.row, &found.label), (expected.row, &expected.label));
        }
    }
}

#[test]
fn single_changes_are_those_that_can_be_worked_out() {
    let model = compiled(None);
    let plain = args().shuffle(false);
    let data = sentences(30);
    let run = model.start(&data, plain).expect("it is ready");
    // Another label has the loss of data with this label.
    let label = run.what_if(|it| it.label(1, "blue")).expect("a class");
    let relabelled = compiled(None);
    let other = data.relabel([(1, "blue")]).expect("a class");
    let plain = args().shuffle(false);
    let other = relabelled.start(&other, plain).expect("it is ready");
    let expected = other.batch().expect("a look");
    assert_eq!(label.after.loss, expected.loss);
    assert_eq!(label.changed_examples(), [1]);
    assert_eq!(
        label.before.examples[1].outputs,
        label.after.examples[1].outputs
    );
    // An example without weight has no loss; the others keep theirs.
    let weight = run
        .what_if(|it| it.example_weight(2, 0.0))
        .expect("an example");
    let without: f64 = weight.before.examples.iter().map(|it| it.loss).sum::<f64>();
    let without = (without - weight.before.examples[2].loss) / 4.0;
    assert_near(weight.after.loss, without);
    // Without dropout a network has the outputs of one that was made without.
    let dropout = run.what_if(|it| it.dropout(0)).expect("a rate");
    let sober = load(&tiny_bert(0.0));
    sober
        .compile(plain_args().optimizer(recipe()))
        .expect("valid");
    let plain = args().shuffle(false);
    let sober = sober.start(&data, plain).expect("it is ready");
    assert_eq!(dropout.after.loss, sober.batch().expect("a look").loss);
    // Gradients are multiplied, and nothing else.
    let scaled = run
        .what_if(|it| it.gradients("*").scale(0.25))
        .expect("all");
    assert_near(
        scaled.after.gradient_norm,
        0.25 * scaled.before.gradient_norm,
    );
    assert_eq!(scaled.before.examples, scaled.after.examples);
    // A classifier of zeros knows nothing: each class has a third.
    let zeros = run
        .what_if(|it| it.weights("classifier.*").set(0))
        .expect("its variables");
    assert_near(zeros.after.loss, 3.0_f64.ln());
    // An activation of zeros before it, too, but for the bias.
    let pooled = run
        .what_if(|it| it.output("pooler").scale(0))
        .expect("an output");
    let first = &pooled.after.examples[0].outputs;
    assert!(pooled.after.examples.iter().all(|it| it.outputs == *first));
}

#[test]
fn numbers_of_a_regression_and_layers_of_a_sequential() {
    let model = Sequential([Dense(4).input_shape(3), Dense(1)]).expect("valid");
    let optimizer = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(MeanSquaredError);
    model.compile(optimizer).expect("valid");
    let data: Dataset = make_regression(16, 3, 1).expect("rows");
    let data = data.map(|example| {
        let value = match example.label {
            Some(Label::Value(value)) => value / 100.0,
            _ => 0.0,
        };
        example.with_label(Label::Value(value))
    });
    let run = model.start(&data, args()).expect("it is ready");
    let shown = run.what_if(|it| it.label(0, 1.5)).expect("a number");
    let (old, new) = (&shown.before.examples[0], &shown.after.examples[0]);
    assert_eq!(new.target, Some(1.5));
    assert_near(new.loss, (f64::from(old.outputs[0]) - 1.5).powi(2));
    let names = run.activations("*").expect("layers");
    let name = names.iter().next().expect("a layer").name.clone();
    let silent = run
        .what_if(|it| it.output(&name).scale(0.0))
        .expect("an output");
    assert!(
        silent.after.examples.iter().all(|it| it.outputs == [0.0]),
        "the bias is 0"
    );
    assert_eq!(code(run.what_if(|it| it.label(0, "red"))), "SC0103");
    assert_eq!(code(run.what_if(|it| it.head(0, 0).scale(0.0))), "SC0730");
}

/// Turned back behind a commit it is made again, before it undone.
#[test]
fn commits_are_replayed_or_undone() {
    for strategy in [None, mirrored()] {
        let (model, run) = started(strategy.clone());
        run.step(2).expect("it steps");
        let before = weights(&model);
        let edit = run.what_if(all).expect("all").commit().expect("it comes");
        assert!(
            edit.what.contains("weights `classifier.weight` × 1.5"),
            "{edit}"
        );
        let committed = weights(&model);
        for ((name, old), (_, new)) in before.iter().zip(&committed) {
            let factor = if name == "classifier.weight" {
                1.5
            } else {
                1.0
            };
            assert!(
                old.iter().zip(new).all(|(old, new)| old * factor == *new),
                "{name}"
            );
        }
        assert_eq!(run.history().expect("no callback").edits.len(), 2);
        run.step(5).expect("it steps");
        let (at_seven, history) = (weights(&model), run.history().expect("no callback"));
        run.step(2).expect("it steps");
        let hindsight = run.hindsight(3..5, |tap| tap.norm).expect("it was made");
        assert!(!hindsight.to_plain().contains("not exact"), "{hindsight:?}");
        let rewound = run.rewind(7).expect("it was made");
        assert_eq!(
            (rewound.differs, rewound.dropped.len()),
            (None, 0),
            "{rewound}"
        );
        assert!(weights(&model) == at_seven);
        let again = run.history().expect("no callback");
        assert_eq!(losses(&again), losses(&history));
        assert_eq!(again.edits, history.edits);
        let rewound = run.rewind(2).expect("it was made");
        assert_eq!(rewound.dropped.len(), 2);
        assert!(weights(&model) == before);
        let history = run.finish().expect("it steps");
        let reference = compiled(strategy);
        let whole = reference.fit(&sentences(30), args()).expect("it trains");
        assert_eq!(losses(&history), losses(&whole));
        assert!(weights(&model) == weights(&reference));
    }
}

#[test]
fn checkpoints_and_forks_have_the_commits() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled(None);
    let with = args().checkpoint(folder.path()).every(4).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(3).expect("it steps");
    run.what_if(all).expect("all").commit().expect("it comes");
    run.set_dropout(0.2).expect("a rate");
    run.set_weight_decay(0.1).expect("a decay");
    run.step(3).expect("it steps");
    run.what_if(|it| it.head(1, 1).scale(0.0))
        .expect("a head")
        .commit()
        .expect("it comes");
    let fork = run.fork().expect("a run without callbacks");
    run.step(2).expect("it steps");
    fork.step(2).expect("it steps");
    let both = [&run, &fork].map(|it| it.history().expect("no callback"));
    assert_eq!(losses(&both[0]), losses(&both[1]));
    let history = run.finish().expect("it steps");
    for step in [4, 8, 12] {
        let resumed = compiled(None);
        let from = args().resume_from(folder.path().join(format!("step-{step}")));
        let found = resumed.fit(&sentences(30), from).expect("it goes on");
        // Those that were made later are not in this checkpoint.
        let known = history.edits.iter().filter(|it| it.step < step).count();
        if known == history.edits.len() {
            assert!(weights(&resumed) == weights(&model), "from step {step}");
            assert_eq!(losses(&found), losses(&history), "from step {step}");
        }
        assert_eq!(found.edits, history.edits[..known], "from step {step}");
    }
}

#[test]
fn micro_batches_parts_and_recomputing_are_changed_alike() {
    let shown = |accumulation: usize, batch_size: usize, recompute: bool| {
        let model = support::compiled(None, "float32", grouped(plain_args(), 1, accumulation, 1));
        let args = args()
            .batch_size(batch_size)
            .shuffle(false)
            .recompute(recompute);
        let run = model.start(&sentences(24), args).expect("it is ready");
        let shown = run.what_if(all).expect("all of it exists");
        shown.commit().expect("it comes");
        run.step(1).expect("it steps");
        let report = run.report().expect("no callback");
        let recorded = report.recent.last().expect("a step");
        assert_near(recorded.loss, shown.after.loss);
        assert_near(recorded.gradient_norm, shown.after.gradient_norm);
        (shown.after.loss, shown.after.gradient_norm)
    };
    let whole = shown(1, 4, false);
    for other in [shown(2, 2, false), shown(1, 4, true), shown(4, 1, true)] {
        assert_near(other.0, whole.0);
        assert_near(other.1, whole.1);
    }
}

#[test]
fn dropout_and_decay_change_from_the_coming_step_on() {
    let (_, run) = started(None);
    run.step(1).expect("it steps");
    let before = run.batch().expect("a look").loss;
    let edit = run.set_dropout(0.0).expect("a rate");
    assert_eq!(edit.to_string(), "after step 1: dropout 0 from here on");
    let without = run.batch().expect("a look").loss;
    assert_ne!(before.to_bits(), without.to_bits());
    let shown = run.what_if(|it| it.dropout(0.0)).expect("a rate");
    assert_eq!(shown.before.loss.to_bits(), shown.after.loss.to_bits());
    assert_eq!(code(run.set_dropout(1.0)), "SC0103");
    assert_eq!(code(run.set_weight_decay(-1.0)), "SC0103");
    // Without a gradient a weight shrinks by rate × decay.
    let model = Sequential([Dense(1).input_shape(1)]).expect("valid");
    let adamw = stratoscope_models::AdamW::new(0.1).weight_decay(0.0);
    let args_of = |it: CompileArgs| it.loss(MeanSquaredError);
    model
        .compile(args_of(CompileArgs::new().optimizer(adamw)))
        .expect("valid");
    let data = Dataset::from_features([[0.0_f32], [0.0]]).expect("rows");
    let data = data.map(|example| example.with_label(Label::Value(0.0)));
    let run = model.start(&data, args()).expect("it is ready");
    let weight = |model: &stratoscope_models::Model| {
        let all = weights(model);
        all.iter()
            .find(|(name, _)| name.contains("weight"))
            .expect("one")
            .1[0]
    };
    let old = weight(&model);
    run.set_weight_decay(0.5).expect("a decay");
    run.step(1).expect("it steps");
    assert_near(
        f64::from(weight(&model)),
        f64::from(old) * (1.0 - 0.1 * 0.5),
    );
    let plain = Sequential([Dense(1).input_shape(1)]).expect("valid");
    plain
        .compile(args_of(CompileArgs::new().optimizer(SGD::new(0.1))))
        .expect("valid");
    let run = plain.start(&data, args()).expect("it is ready");
    assert_eq!(code(run.set_weight_decay(0.5)), "SC0103");
}

#[test]
fn what_does_not_exist_is_refused() {
    let (model, run) = started(None);
    let refused = |change: fn(&mut Interventions), expected: &str| {
        let problem = run.what_if(change).expect_err("it is refused");
        assert_eq!(problem.code, expected, "{}", problem.message);
        format!("{problem:?}")
    };
    let text = refused(|it| it.layer(9).scale(0.0), "SC0730");
    assert!(text.contains("0 to 1"), "{text}");
    refused(|it| it.head(0, 99).scale(0.0), "SC0730");
    refused(|it| it.layer(0).token(500).scale(0.0), "SC0730");
    refused(|it| it.layer(0).example(4).scale(0.0), "SC0730");
    refused(|it| it.output("pooller").scale(0.0), "SC0730");
    let text = refused(|it| it.weights("clasifier").scale(2.0), "SC0730");
    assert!(text.contains("classifier"), "{text}");
    refused(|it| it.gradients("encoder.layer.9.*").scale(2.0), "SC0730");
    refused(|it| it.label(0, 3), "SC0730");
    refused(|it| it.label(0, 0.5), "SC0730");
    refused(|it| it.label(7, "red"), "SC0730");
    refused(|it| it.label(0, "purple"), "SC0721");
    refused(|it| it.example_weight(0, -1.0), "SC0103");
    refused(|it| it.example_weight(0, f64::NAN), "SC0731");
    refused(|it| it.dropout(1.0), "SC0103");
    refused(|it| it.dropout(f64::NAN), "SC0103");
    refused(|_| {}, "SC0103");
    refused(|it| it.layer(0).scale(f64::INFINITY), "SC0731");
    refused(|it| it.weights("*").set(1e300), "SC0731");
    let text = refused(
        |it| {
            it.output("classifier").scale(3e38);
            it.output("classifier").scale(3e38);
        },
        "SC0731",
    );
    assert!(text.contains("loss"), "{text}");
    assert!(run.history().expect("no callback").edits.is_empty());
    // What was computed for a step is committed to no other, and once.
    let shown = run.what_if(|it| it.dropout(0.0)).expect("a rate");
    shown.commit().expect("it comes");
    assert_eq!(code(shown.commit()), "SC0732");
    let shown = run.what_if(|it| it.dropout(0.0)).expect("a rate");
    run.step(1).expect("it steps");
    assert_eq!(code(shown.commit()), "SC0732");
    run.finish().expect("it steps");
    assert_eq!(code(run.what_if(|it| it.dropout(0.0))), "SC0521");
    drop(run);
    assert_eq!(code(shown.commit()), "SC0732");
    drop(model);
}

#[test]
fn rows_are_relabelled_and_weighted_from_the_coming_step_on() {
    let data = sentences(30);
    let changed = data.relabel([(5, "red"), (17, "blue")]).expect("classes");
    let model = compiled(None);
    let run = model.start(&data, args()).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    let edit = run
        .relabel([(5, "red"), (17, "blue")])
        .expect("rows and classes");
    assert_eq!(
        edit.to_string(),
        "after step 0: label of row 5 = red; label of row 17 = blue from here on"
    );
    let other = compiled(None);
    let reference = other.start(&changed, args()).expect("it is ready");
    run.step(10).expect("it steps");
    reference.step(10).expect("it steps");
    let both = || [&run, &reference].map(|it| losses(&it.history().expect("no callback")));
    assert_eq!(both()[0], both()[1]);
    assert_eq!(
        run.worst(30).expect("a look").examples,
        reference.worst(30).expect("a look").examples
    );
    assert_eq!(
        run.data_map().expect("it is free").examples,
        reference.data_map().expect("it is free").examples
    );
    run.set_example_weights([(5, 0.0), (6, 2.0)]).expect("rows");
    run.step(4).expect("it steps");
    let (at_fourteen, history) = (weights(&model), run.history().expect("no callback"));
    run.step(1).expect("it steps");
    let rewound = run.rewind(14).expect("it was made");
    assert_eq!(rewound.differs, None);
    assert!(weights(&model) == at_fourteen);
    assert_eq!(run.history().expect("no callback").edits, history.edits);
    let rewound = run.rewind(10).expect("it was made");
    assert_eq!(rewound.dropped.len(), 1);
    assert_eq!(
        losses(&run.finish().expect("it steps")),
        losses(&reference.finish().expect("it steps"))
    );
    assert!(weights(&model) == weights(&other));
    let (_, run) = started(None);
    assert_eq!(code(run.relabel([(30, "red")])), "SC0720");
    assert_eq!(code(run.relabel(Vec::<(usize, &str)>::new())), "SC0720");
    assert_eq!(code(run.relabel([(3, "purple")])), "SC0721");
    assert_eq!(code(run.relabel([(3, 7)])), "SC0730");
    assert_eq!(code(run.set_example_weights([(3, -1.0)])), "SC0103");
    assert_eq!(code(run.set_example_weights([(-3, 1.0)])), "SC0720");
}
