//! What a training row has changed: exactly, and as TracIn estimates it; and the run is left as it was.

use stratoscope_data::Dataset;
use stratoscope_models::{AdamW, FitArgs, Influence, ModelOf, Run, pin};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, Shard, scope};

use crate::pipeline::{self, deep_bert, one_f_one_b};
use crate::profile::even_rows;
use crate::support::{IdNetwork, id_data, id_model, plain_args, weights};

/// Each class has tokens of its own.
fn text(class: usize, row: usize) -> String {
    let token = |at: usize| 10 + class * 30 + (row * 7 + at * 5) % 20;
    format!(
        "{}:0 {}:0 {}:0 {}:0",
        token(0),
        token(1),
        token(2),
        token(3)
    )
}

/// The text that is asked about, and the row that has it with another label.
const QUESTION: usize = 16;
const PLANTED: usize = 13;

/// 24 rows, of which one is planted.
fn data(weight: f32) -> Dataset {
    let rows = (0..24).map(|row| match row {
        PLANTED => (text(0, QUESTION), 1),
        row => (text(row % 3, row), row % 3),
    });
    let mut data = id_data(rows.collect());
    data.examples[PLANTED].weight = weight;
    data
}

fn model() -> ModelOf<IdNetwork> {
    let model = id_model();
    let args = plain_args().optimizer(AdamW::new(2e-3));
    model.compile(args).expect("valid");
    model
}

fn args() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(12)
        .batch_size(4)
        .seed(5)
        .verbose(false)
}

fn asked(run: &Run, rows: usize) -> Influence {
    let found = run.influence(text(0, QUESTION), "LABEL_0", rows);
    found.expect("the run has snapshots")
}

#[test]
fn a_planted_wrong_label_is_found_and_leaving_it_out_helps() {
    let model = model();
    let run = model.start(&data(1.0), args()).expect("it is ready");
    run.keep_snapshots(5, 1000).expect("the run is not over");
    run.step(37).expect("it steps");
    run.set_learning_rate(pin(1e-3)).expect("a rate");
    run.step(15).expect("it steps");
    let (before, history) = (weights(&model), run.history().expect("no callback"));
    let found = asked(&run, 4);
    let rows: Vec<usize> = found.rows.iter().map(|it| it.row).collect();
    assert_eq!(rows.len(), 4);
    let planted = found.rows.iter().position(|it| it.row == PLANTED);
    assert!(planted.is_some_and(|at| at < 2), "{found}");
    let planted = &found.rows[planted.expect("found")];
    assert!(
        planted.score < 0.0,
        "steps along it raise the loss: {found}"
    );
    assert!(
        planted.loss_change < 0.0 && planted.probability_change > 0.0,
        "{found}"
    );
    assert_eq!(planted.label, "LABEL_1");
    assert_eq!(found.scored, 24);
    let agreement = found.agreement.expect("of four rows");
    assert!(agreement.low <= agreement.value && agreement.value <= agreement.high);
    assert!((-1.0..=1.0).contains(&agreement.value));
    assert!(found.to_html().contains("rank correlation"));
    // The run is as it was, and goes on with the bits of one that nobody asked.
    assert!(weights(&model) == before);
    let now = run.history().expect("no callback");
    assert_eq!(
        (now.steps.len(), now.edits.len()),
        (history.steps.len(), history.edits.len())
    );
    run.step(3).expect("it steps");
    let other = self::model();
    let quiet = other.start(&data(1.0), args()).expect("it is ready");
    quiet.step(37).expect("it steps");
    quiet.set_learning_rate(pin(1e-3)).expect("a rate");
    quiet.step(18).expect("it steps");
    assert!(weights(&model) == weights(&other));
}

#[test]
fn the_effect_is_that_of_a_run_in_which_the_row_has_no_weight() {
    for replicas in [1, 2] {
        let two = || MirroredStrategy::logical(2).expect("two");
        let mirrored = (replicas == 2).then(two);
        let enter = |it| scope::enter(it).expect("no scope is active");
        let entered = mirrored.as_ref().map(enter);
        let model = model();
        let run = model.start(&data(1.0), args()).expect("it is ready");
        run.keep_snapshots(4, 1000).expect("the run is not over");
        run.step(9).expect("it steps");
        let found = run.influence(text(0, QUESTION), "LABEL_0", [PLANTED, 2]);
        let found = found.expect("the rows are there");
        let planted = found
            .rows
            .iter()
            .find(|it| it.row == PLANTED)
            .expect("asked");
        let without = self::model();
        let reference = without.start(&data(0.0), args()).expect("it is ready");
        reference.step(9).expect("it steps");
        let expected = without.predict(text(0, QUESTION)).expect("it answers");
        let expected = expected.rows[0].probabilities[0];
        let exact = found.probability + planted.probability_change;
        assert!(
            (exact - expected).abs() < 1e-12,
            "{exact} {expected}: {found}"
        );
        assert!(planted.from.is_some());
        assert!(found.agreement.is_none(), "two rows have none");
        drop(entered);
    }
}

/// A weight and a label that the user has given the row do not hold in the run without it, and come back.
#[test]
fn rows_that_the_user_has_changed_are_left_out_too() {
    let model = model();
    let run = model.start(&data(1.0), args()).expect("it is ready");
    run.set_example_weights([(PLANTED, 3.0)]).expect("a row");
    run.relabel([(PLANTED, "LABEL_2")]).expect("a label");
    run.step(9).expect("it steps");
    let before = weights(&model);
    let found = run.influence(text(0, QUESTION), "LABEL_0", [PLANTED]);
    let found = found.expect("the row is there");
    assert_eq!(found.rows[0].label, "LABEL_2");
    let without = self::model();
    let reference = without.start(&data(0.0), args()).expect("it is ready");
    reference.step(9).expect("it steps");
    let expected = without.predict(text(0, QUESTION)).expect("it answers");
    let exact = found.probability + found.rows[0].probability_change;
    assert!(
        (exact - expected.rows[0].probabilities[0]).abs() < 1e-12,
        "{found}"
    );
    assert!(weights(&model) == before);
    run.step(2).expect("it steps");
    let quiet = self::model();
    let other = quiet.start(&data(1.0), args()).expect("it is ready");
    other.set_example_weights([(PLANTED, 3.0)]).expect("a row");
    other.relabel([(PLANTED, "LABEL_2")]).expect("a label");
    other.step(11).expect("it steps");
    assert!(weights(&model) == weights(&quiet));
}

/// A pipeline has the bits of accumulation on one device, ZeRO those of mirrored replicas; and so have the runs without a row.
#[test]
fn stages_and_shards_answer_as_whole_models() {
    let folder = deep_bert();
    let of = |strategy: &dyn AsStrategy, accumulation: usize| {
        let strategy = strategy.strategy();
        let args = pipeline::args(AdamW::new(1e-3)).gradient_accumulation_steps(accumulation);
        let model = pipeline::compiled(&strategy, &folder, args);
        let fit = FitArgs::new()
            .batch_size(8 / accumulation)
            .seed(5)
            .verbose(false);
        let run = model.start(&even_rows(24), fit).expect("it is ready");
        run.keep_snapshots(1, 1000).expect("the run is not over");
        run.step(3).expect("it steps");
        let before = weights(&model);
        let found = run.influence("w61 w20 w30", "red", [0, 5, 9, 17]);
        assert!(weights(&model) == before);
        found.expect("the rows are there")
    };
    let compare = |found: &Influence, expected: &Influence| {
        assert_eq!(found.loss.to_bits(), expected.loss.to_bits());
        for row in &found.rows {
            let other = expected.rows.iter().find(|it| it.row == row.row);
            let other = other.expect("the same rows");
            assert_eq!(row.loss_change.to_bits(), other.loss_change.to_bits());
            assert!(row.loss_change != 0.0);
            // Slopes are differences, in batches of another size.
            let largest = expected.rows[0].score.abs();
            assert!(
                (row.score - other.score).abs() < 0.02 * largest,
                "{found} {expected}"
            );
        }
    };
    compare(&of(&one_f_one_b(2, 2), 1), &of(&pipeline::one(), 2));
    let two = || MirroredStrategy::logical(2).expect("two");
    let zero = two().shard(Shard::Parameters).expect("several");
    compare(&of(&zero, 1), &of(&two(), 1));
}

#[test]
fn a_row_that_no_step_has_used_has_changed_nothing() {
    let model = model();
    let run = model.start(&data(1.0), args()).expect("it is ready");
    run.step(2).expect("it steps");
    let all = run.influence(
        text(0, QUESTION),
        "LABEL_0",
        (0..24).collect::<Vec<usize>>(),
    );
    let all = all.expect("the rows are there");
    let unused: Vec<_> = all.rows.iter().filter(|it| it.from.is_none()).collect();
    assert_eq!(unused.len(), 24 - 2 * 4, "{all}");
    assert!(
        unused
            .iter()
            .all(|it| it.loss_change == 0.0 && it.probability_change == 0.0)
    );
    let used = all.rows.iter().filter(|it| it.from.is_some());
    assert!(used.clone().all(|it| it.loss_change != 0.0), "{all}");
    assert!(all.to_plain().contains("no step has used"), "{all}");
}

#[test]
fn what_cannot_be_asked_is_a_card() {
    let model = model();
    let run = model.start(&data(1.0), args()).expect("it is ready");
    let code = |found: stratoscope_diagnostics::Result<Influence>| found.expect_err("refused").code;
    let question = text(0, QUESTION);
    assert_eq!(code(run.influence(&question, "LABEL_0", 3)), "SC0742");
    run.step(2).expect("it steps");
    assert_eq!(code(run.influence(&question, "LABEL_0", [3, 24])), "SC0741");
    assert_eq!(
        code(run.influence(&question, "LABEL_0", Vec::<usize>::new())),
        "SC0741"
    );
    assert_eq!(code(run.influence(&question, "LABEL_0", [-1])), "SC0741");
    assert_eq!(code(run.influence(&question, "LABEL_0", 0)), "SC0103");
    assert_eq!(code(run.influence(&question, "LABEL_0", 65)), "SC0103");
    assert_eq!(code(run.influence(&question, "LABEL_9", 3)), "SC0103");
    run.drop_examples([3]).expect("others are left");
    assert_eq!(code(run.influence(&question, "LABEL_0", [3])), "SC0741");
    run.keep_snapshots(100, 0).expect("the run is not over");
    run.step(1).expect("it steps");
    assert_eq!(code(run.influence(&question, "LABEL_0", 3)), "SC0742");
    run.finish().expect("it ends");
    assert_eq!(code(run.influence(&question, "LABEL_0", 3)), "SC0521");
}
