//! Changes to a run on its way: what they do, that they are listed, and that turning back, replaying and checkpoints
//! know of them.

use stratoscope_models::{
    BertForSequenceClassification, Clipping, FitArgs, History, Run, StopReason, compare, interrupt,
    pin, scale,
};
use tempfile::TempDir;

use crate::support::{self, heard, plain_args, recipe, sentences, weights};

type Bert = BertForSequenceClassification;

fn compiled() -> Bert {
    support::compiled(None, "float32", plain_args().optimizer(recipe()))
}

/// Eight batches an epoch, sixteen in all.
fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .verbose(false)
}

fn started() -> (Bert, Run) {
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
    run.set_learning_rate(1e-5).expect("a rate");
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
    let code = |outcome: stratoscope_diagnostics::Result<stratoscope_models::Edit>| {
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

/// The rows of the batches of an epoch, as callbacks cannot see them: step by step.
fn rows_of_epoch(run: &Run) -> Vec<Vec<usize>> {
    let mut steps = Vec::new();
    let epoch = || run.report().expect("no callback").position.epoch;
    let begun = epoch();
    while epoch() == begun && steps.len() < 100 {
        let batch = run.batch().expect("a look");
        if batch.examples.is_empty() {
            break;
        }
        steps.push(batch.examples.iter().map(|it| it.row).collect());
        run.step(1).expect("it steps");
        if run.report().expect("no callback").position.step
            == run.report().expect("no callback").position.steps
        {
            break;
        }
    }
    steps
}

fn sizes(steps: &[Vec<usize>]) -> Vec<usize> {
    steps.iter().map(Vec::len).collect()
}

fn sorted(steps: &[Vec<usize>]) -> Vec<usize> {
    let mut rows = steps.concat();
    rows.sort_unstable();
    rows
}

/// Whatever the sizes are, an epoch has every example once, in its order.
#[test]
fn batches_of_another_size_go_on_in_the_same_order() {
    let (_, whole) = started();
    let order = rows_of_epoch(&whole).concat();
    let (_, run) = started();
    let mut steps: Vec<Vec<usize>> = Vec::new();
    let mut take = |count: usize| {
        for _ in 0..count {
            let batch = run.batch().expect("a look");
            steps.push(batch.examples.iter().map(|it| it.row).collect());
            run.step(1).expect("it steps");
        }
    };
    take(2);
    let edit = run.set_batch_size(7).expect("a size");
    assert_eq!(edit.to_string(), "after step 2: batches of 7 examples");
    take(1);
    run.set_batch_size(3).expect("a size");
    let edit = run.set_accumulation(2).expect("a count");
    assert_eq!(edit.to_string(), "after step 3: 2 batches a step");
    take(1);
    let edit = run
        .drop_examples([order[22], order[0], order[22]])
        .expect("known");
    assert!(edit.what.starts_with("2 examples dropped: "), "{edit}");
    let report = run.report().expect("no callback");
    // 30 examples: 4, 4, 7, 6, and 8 of the 9 that were left.
    assert_eq!((report.position.batch, report.position.batches), (5, 8));
    take(2);
    assert_eq!(sizes(&steps), [4, 4, 7, 6, 6, 2]);
    let mut expected = order.clone();
    expected.remove(22);
    assert_eq!(steps.concat(), expected);
    // The next epoch is without both, and in the new sizes: 28 examples are 9 batches and one more.
    let second = rows_of_epoch(&run);
    assert_eq!(sizes(&second), [6, 6, 6, 6, 4]);
    let expected: Vec<usize> = (0..30)
        .filter(|row| *row != order[22] && *row != order[0])
        .collect();
    assert_eq!(sorted(&second), expected);
    let history = run.finish().expect("it steps");
    assert_eq!((history.steps.len(), history.epochs.len()), (11, 2));
    assert_eq!(history.counters.batches, 8 + 10);
    assert_eq!(history.counters.optimizer_steps, 11);
}

/// A schedule over the run does not jump, and ends with the last step.
#[test]
fn a_schedule_goes_on_by_the_data() {
    let whole = compiled().fit(&sentences(30), args()).expect("it trains");
    let planned = rates(&whole);
    let (_, run) = started();
    run.step(8).expect("it steps");
    run.set_batch_size(8).expect("a size");
    assert_eq!(run.report().expect("no callback").position.steps, 12);
    let history = run.finish().expect("it steps");
    let every_second = planned[8..].iter().step_by(2);
    let expected: Vec<f64> = planned[..8].iter().chain(every_second).copied().collect();
    assert_eq!(rates(&history), expected);
}

/// Turned back behind, between and before changes of the batches, and resumed from checkpoints around them.
#[test]
fn changes_of_the_batches_are_replayed_dropped_and_written() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled();
    let with = args().checkpoint(folder.path()).every(2).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.keep_snapshots(4, 1000).expect("the run is not over");
    run.step(3).expect("it steps");
    run.skip_batch().expect("there is one");
    run.set_batch_size(5).expect("a size");
    run.step(2).expect("it steps");
    run.drop_examples([1, 17, 29]).expect("known");
    run.set_accumulation(2).expect("a count");
    run.step(3).expect("it steps");
    let (at_eight, history) = (weights(&model), run.history().expect("no callback"));
    run.set_batch_size(2).expect("a size");
    run.step(2).expect("it steps");
    for back in [8, 6, 4, 2] {
        let rewound = run.rewind(back).expect("it was made");
        assert_eq!(rewound.differs, None, "{rewound}");
        let again = run.history().expect("no callback");
        assert_eq!(losses(&again), losses(&history)[..back as usize]);
        if back == 8 {
            assert!(weights(&model) == at_eight, "{rewound}");
            assert_eq!(edits(&again), edits(&history));
        }
    }
    assert!(run.history().expect("no callback").edits.is_empty());
    let finished = run.finish().expect("it steps");
    let whole = compiled().fit(&sentences(30), args()).expect("it trains");
    assert_eq!(losses(&finished), losses(&whole), "all changes are undone");
    assert_eq!(finished.counters, whole.counters);
}

#[test]
fn a_checkpoint_holds_changed_batches_and_the_data_map() {
    let folder = TempDir::new().expect("a temporary folder");
    let model = compiled();
    let with = args().checkpoint(folder.path()).every(2).keep_last(100);
    let run = model.start(&sentences(30), with).expect("it is ready");
    run.step(3).expect("it steps");
    run.set_batch_size(5).expect("a size");
    run.step(2).expect("it steps");
    run.drop_examples([1, 17, 29]).expect("known");
    run.set_accumulation(2).expect("a count");
    let history = run.finish().expect("it steps");
    let map = run.data_map().expect("no callback");
    assert!(map.epochs == 2 && map.examples.len() > 20, "{}", map.epochs);
    for step in [2, 4, 6, 8] {
        let resumed = compiled();
        let from = args().resume_from(folder.path().join(format!("step-{step}")));
        let again = resumed.start(&sentences(30), from).expect("it goes on");
        if step == 2 {
            // Before the changes: they are made once more.
            again.step(1).expect("it steps");
            again.set_batch_size(5).expect("a size");
            again.step(2).expect("it steps");
        }
        if step <= 4 {
            again.until(5).expect("it steps");
            again.drop_examples([1, 17, 29]).expect("known");
            again.set_accumulation(2).expect("a count");
        }
        let found = again.finish().expect("it steps");
        assert!(weights(&resumed) == weights(&model), "from step {step}");
        assert_eq!(losses(&found), losses(&history));
        assert_eq!(rates(&found), rates(&history));
        assert_eq!(edits(&found), edits(&history));
        // What the passes before the checkpoint have said is there.
        assert_eq!(
            again.data_map().expect("no callback"),
            map,
            "from step {step}"
        );
    }
}

/// A run that is given up goes on with `resume = true`, with its changes.
#[test]
fn a_run_that_is_given_up_keeps_its_changes() {
    let change = |run: &Run| {
        run.step(3).expect("it steps");
        run.set_batch_size(5).expect("a size");
        run.set_learning_rate(scale(0.5)).expect("a factor");
        run.step(1).expect("it steps");
    };
    let (reference, run) = started();
    change(&run);
    let whole = run.finish().expect("it steps");
    let (model, run) = started();
    change(&run);
    drop(run);
    let history = model
        .fit(&sentences(30), args().resume(true))
        .expect("it goes on");
    assert_eq!(
        (losses(&history), rates(&history)),
        (losses(&whole), rates(&whole))
    );
    assert!(weights(&model) == weights(&reference));
    assert_eq!(edits(&history), edits(&whole));
}

#[test]
fn wrong_sizes_and_examples_are_refused_and_change_nothing() {
    let (_, run) = started();
    let code = |outcome: stratoscope_diagnostics::Result<stratoscope_models::Edit>| {
        outcome.expect_err("it is refused").code
    };
    assert_eq!(code(run.set_batch_size(0)), "SC0103");
    assert_eq!(code(run.set_accumulation(-1)), "SC0103");
    assert_eq!(code(run.drop_examples([30])), "SC0522");
    assert_eq!(code(run.drop_examples([-1, 3])), "SC0522");
    assert_eq!(code(run.drop_examples([0_usize; 0])), "SC0522");
    assert_eq!(code(run.drop_examples(0..30)), "SC0523");
    assert!(run.history().expect("no callback").edits.is_empty());
    let red: Vec<usize> = (0..30).filter(|row| row % 3 == 0).collect();
    let (edit, notices) = heard(&["SC0524"], || run.drop_examples(red));
    edit.expect("a warning only");
    assert!(
        notices.len() == 1 && notices[0].message.contains("`red`"),
        "{notices:?}"
    );
    run.until(1_000).expect("it steps");
    assert_eq!(code(run.set_batch_size(4)), "SC0103");
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

/// On the way to where a run stands, all that is trained in the end may have been frozen.
#[test]
fn freezing_in_turns_is_made_again() {
    let frozen_in_turns = || {
        let (model, run) = started();
        run.freeze("bert").expect("the head is left");
        run.unfreeze("bert").expect("variables of this name");
        run.freeze("classifier").expect("the encoder is left");
        run.step(5).expect("it steps");
        (model, run)
    };
    let (reference, run) = frozen_in_turns();
    let whole = run.finish().expect("it steps");
    let (model, run) = frozen_in_turns();
    let refused = run.freeze("bert").expect_err("nothing would be left");
    assert_eq!(refused.code, "SC0111");
    let rewound = run.rewind(4).expect("it was made");
    assert_eq!((rewound.step, rewound.differs), (4, None), "{rewound}");
    run.hindsight(2..=3, |tap| tap.norm).expect("it is held");
    let history = run.finish().expect("it goes on");
    assert_eq!(losses(&history), losses(&whole));
    assert!(weights(&model) == weights(&reference));
    // Another call goes on with the changes as well.
    let (model, run) = frozen_in_turns();
    drop(run);
    let history = model.fit(&sentences(30), args().resume(true));
    let history = history.expect("it goes on");
    assert_eq!(losses(&history), losses(&whole));
    assert_eq!(edits(&history), edits(&whole));
}

/// Changes between the place where a replay is interrupted and the step that was asked for are undone, and listed.
#[test]
fn an_interrupted_replay_lists_all_that_is_undone() {
    let whole = compiled().fit(&sentences(30), args()).expect("it trains");
    let (_, run) = started();
    run.keep_snapshots(100, 1000).expect("the run is not over");
    run.step(3).expect("it steps");
    run.set_learning_rate(scale(0.5)).expect("a factor");
    run.step(3).expect("it steps");
    run.set_batch_size(5).expect("a size");
    run.step(2).expect("it steps");
    run.set_learning_rate(pin(1e-5)).expect("a rate");
    interrupt::request();
    let rewound = run.rewind(8).expect("it was made");
    assert!(rewound.interrupted && rewound.step < 3, "{rewound}");
    let dropped: Vec<u64> = rewound.dropped.iter().map(|it| it.step).collect();
    assert_eq!(dropped, [3, 6, 8], "{rewound}");
    assert!(run.history().expect("no callback").edits.is_empty());
    let history = run.finish().expect("it goes on");
    assert_eq!(losses(&history), losses(&whole), "all changes are undone");
    assert_eq!(history.counters, whole.counters);
}

#[test]
fn a_run_whose_last_batch_is_left_out_says_where_it_ends() {
    let (_, run) = started();
    run.step(15).expect("it steps");
    run.skip_batch().expect("there is one");
    let stop = run.step(1).expect("nothing is left");
    assert_eq!(stop.reason, StopReason::Complete);
    let text = stop.to_plain();
    assert!(
        text.starts_with("no steps are left after step 15;"),
        "{text}"
    );
    let refused = run.skip_batch().expect_err("nothing is left");
    assert_eq!(refused.code, "SC0103");
}
