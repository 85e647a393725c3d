//! Changes to a run on its way: what they do, that they are listed, and that turning back, replaying and checkpoints
//! know of them.

use stratoscope_train::{
    AdamW, BertForSequenceClassification, Clipping, FitArgs, History, Run, compare, pin, scale,
    warmup_linear,
};
use tempfile::TempDir;

use crate::support::{load, plain_args, sentences, tiny_bert, weights};

type Bert = BertForSequenceClassification;

fn compiled() -> Bert {
    let model = load(&tiny_bert(0.1));
    let optimizer = AdamW::new(warmup_linear(1e-3, 0.2)).global_clipnorm(1.0);
    model
        .compile(plain_args().optimizer(optimizer))
        .expect("valid arguments");
    model
}

/// Eight batches an epoch, sixteen in all.
fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .verbose(false)
}

fn started() -> (Bert, Run<stratoscope_bert::SequenceClassifier>) {
    let model = compiled();
    let run = model.start(&sentences(30), args()).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    (model, run)
}

fn rates(history: &History) -> Vec<f64> {
    history.steps.iter().map(|it| it.learning_rate).collect()
}

fn edits(history: &History) -> Vec<(u64, &str)> {
    let edits = history.edits.iter();
    edits.map(|it| (it.step, it.what.as_str())).collect()
}

fn losses(history: &History) -> Vec<u64> {
    history.steps.iter().map(|it| it.loss.to_bits()).collect()
}

#[test]
fn rates_change_from_the_coming_step_on_and_are_listed_and_drawn() {
    let whole = compiled().fit(&sentences(30), args()).expect("it trains");
    let planned = rates(&whole);
    let (_, run) = started();
    run.step(4).expect("it steps");
    let edit = run.set_learning_rate(scale(0.5)).expect("a factor");
    assert_eq!(edit.to_string(), "after step 4: learning rate × 0.5");
    run.step(3).expect("it steps");
    run.set_learning_rate(pin(1e-5)).expect("a rate");
    run.step(2).expect("it steps");
    run.set_learning_rate(scale(4.0)).expect("a factor");
    let history = run.finish().expect("it steps");
    let expected: Vec<f64> = (planned.iter().enumerate())
        .map(|(made, &rate)| match made {
            0..4 => rate,
            4..7 => rate * 0.5,
            7..9 => 1e-5,
            _ => 4e-5,
        })
        .collect();
    assert_eq!(rates(&history), expected);
    let steps: Vec<u64> = history.edits.iter().map(|it| it.step).collect();
    assert_eq!(steps, [4, 7, 9]);
    let expected = "after step 7: learning rate 1e-5 from here on";
    assert!(history.notes().iter().any(|note| note.contains(expected)));
    let mut without = history.clone();
    without.edits.clear();
    let (marked, plain) = (history.picture().svg.len(), without.picture().svg.len());
    assert!(
        marked > plain,
        "lines where it was changed: {marked} and {plain} bytes"
    );
}

#[test]
fn what_is_no_number_is_refused_and_changes_nothing() {
    let (_, run) = started();
    let code = |outcome: stratoscope_diagnostics::Result<stratoscope_train::Edit>| {
        outcome.expect_err("it is refused").code
    };
    assert_eq!(code(run.set_learning_rate(pin(f64::NAN))), "SC0103");
    assert_eq!(code(run.set_learning_rate(scale(-1.0))), "SC0103");
    assert_eq!(code(run.set_clipping(Clipping::Global(0.0))), "SC0103");
    assert_eq!(code(run.freeze("nothing of this name")), "SC0103");
    assert_eq!(code(run.freeze("")), "SC0111");
    assert!(run.history().expect("no callback").edits.is_empty());
}

#[test]
fn clipping_and_freezing_do_what_they_say() {
    let (model, run) = started();
    run.step(3).expect("it steps");
    run.freeze("bert").expect("variables of this name");
    let frozen = weights(&model);
    run.step(3).expect("it steps");
    let after = weights(&model);
    for ((name, before), (_, after)) in frozen.iter().zip(&after) {
        assert_eq!(before == after, name.starts_with("bert"), "{name}");
    }
    run.unfreeze("bert").expect("variables of this name");
    run.set_clipping(Clipping::Value(1e-9)).expect("a limit");
    run.set_learning_rate(pin(0.0)).expect("a rate");
    let before = weights(&model);
    run.step(1).expect("it steps");
    assert!(weights(&model) == before, "a rate of 0 moves nothing");
    assert_eq!(run.history().expect("no callback").edits.len(), 4);
}

#[test]
fn a_batch_is_left_out_and_the_others_are_what_they_were() {
    let (_, run) = started();
    run.step(3).expect("it steps");
    run.skip_batch().expect("there is one");
    run.skip_batch().expect("and the one behind it");
    let history = run.finish().expect("it steps");
    assert_eq!(history.steps.len(), 14);
    assert_eq!(history.counters.batches, 14);
    assert_eq!(
        edits(&history),
        [
            (3, "batch 4 of epoch 1 left out"),
            (3, "batch 5 of epoch 1 left out")
        ]
    );
    // The last one of an epoch, which ends all the same.
    let (_, run) = started();
    run.step(7).expect("it steps");
    run.skip_batch().expect("there is one");
    let history = run.finish().expect("it steps");
    assert_eq!((history.epochs.len(), history.steps.len()), (2, 15));
    assert!(run.skip_batch().is_err(), "the run is over");
}

/// Turned back behind changes: they are made again. Before them: they are gone, and listed.
#[test]
fn changes_are_replayed_or_dropped() {
    let (model, run) = started();
    run.step(2).expect("it steps");
    run.set_learning_rate(scale(0.5)).expect("a factor");
    run.step(3).expect("it steps");
    run.freeze("bert.encoder").expect("variables of this name");
    run.skip_batch().expect("there is one");
    run.step(4).expect("it steps");
    let (at_nine, history) = (weights(&model), run.history().expect("no callback"));
    run.set_learning_rate(pin(1.0)).expect("a rate");
    run.step(3).expect("it steps");
    let rewound = run.rewind(9).expect("it was made");
    assert!(weights(&model) == at_nine, "{rewound}");
    assert_eq!(rewound.differs, None);
    let dropped: Vec<u64> = rewound.dropped.iter().map(|it| it.step).collect();
    assert_eq!(dropped, [9]);
    assert!(
        rewound
            .to_string()
            .contains("undone: after step 9: learning rate 1"),
        "{rewound}"
    );
    let again = run.history().expect("no callback");
    assert_eq!(losses(&again), losses(&history));
    assert_eq!(edits(&again), edits(&history));
    // Before all of them: the run is the one without changes.
    let rewound = run.rewind(2).expect("it was made");
    assert_eq!(rewound.dropped.len(), 3);
    let history = run.finish().expect("it steps");
    let reference = compiled();
    let whole = reference.fit(&sentences(30), args()).expect("it trains");
    assert_eq!(losses(&history), losses(&whole));
    assert_eq!(rates(&history), rates(&whole));
    assert!(weights(&model) == weights(&reference));
    assert!(history.edits.is_empty());
}

#[test]
fn a_checkpoint_holds_the_changes() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled();
    let with = args().checkpoint(folder.path()).every(4).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(3).expect("it steps");
    run.set_learning_rate(scale(0.5)).expect("a factor");
    run.set_clipping(Clipping::None).expect("none");
    run.freeze("bert.embeddings")
        .expect("variables of this name");
    run.step(2).expect("it steps");
    run.skip_batch().expect("there is one");
    let history = run.finish().expect("it steps");
    for step in [8, 12] {
        let resumed = compiled();
        let from = args().resume_from(folder.path().join(format!("step-{step}")));
        let found = resumed.fit(&sentences(30), from).expect("it goes on");
        assert!(weights(&resumed) == weights(&model), "from step {step}");
        assert_eq!(losses(&found), losses(&history));
        assert_eq!(rates(&found), rates(&history));
        assert_eq!(edits(&found), edits(&history));
    }
}

#[test]
fn two_runs_part_where_one_was_changed() {
    let ((_, first), (_, second)) = (started(), started());
    first.step(6).expect("it steps");
    second.step(6).expect("it steps");
    let same = compare([&first, &second]).expect("both go on");
    assert_eq!((same.steps, &same.parted, &same.weights), (6, &None, &None));
    second.freeze("bert").expect("variables of this name");
    first.step(6).expect("it steps");
    second.step(6).expect("it steps");
    let found = compare([&first, &second]).expect("both go on");
    let parted = found.parted.as_ref().expect("one was frozen");
    // The step behind the change has the same loss: it is computed before the update.
    assert_eq!((found.steps, parted.step), (12, 8));
    assert_eq!(parted.batches, [Some((0, 7)); 2]);
    assert_eq!(
        (parted.rows[0].len(), &parted.rows[0]),
        (2, &parted.rows[1])
    );
    let weights = found.weights.as_ref().expect("there are snapshots");
    assert_eq!(weights.step, 8);
    assert!(
        weights
            .variables
            .iter()
            .all(|name| weights.of > 1 && !name.is_empty())
    );
    let picture = found.picture();
    assert!(picture.svg.contains("first run") && picture.svg.contains("second run"));
    assert!(
        found
            .to_plain()
            .contains("second run, after step 6: `bert` frozen"),
        "{found}"
    );
}
