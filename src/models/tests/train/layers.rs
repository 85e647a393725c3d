//! Through the coming step layer by layer: the values are those of the step, in the order of computing, and the run does not
//! notice.

use stratoscope_models::{
    BertForSequenceClassification, Direction, FitArgs, InStep, Place, Run, StopReason, pin,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, ModelParallel, Shard, Strategy};

use crate::support::{self, mirrored, plain_args, sentences, weights};

type Bert = BertForSequenceClassification;

fn model(strategy: Option<Strategy>, accumulation: usize) -> Bert {
    let args = support::grouped(plain_args(), 1, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

/// Eight batches an epoch.
fn started(model: &Bert) -> Run {
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    let args = args.verbose(false);
    model.start(&sentences(30), args).expect("it is ready")
}

/// All places up to the update, that of the update included.
fn to_the_update(run: &Run) -> Vec<InStep> {
    let mut places = Vec::new();
    loop {
        let place = run.next_layer().expect("no device fails");
        let is_update = matches!(place.place, Place::Update(_));
        places.push(place);
        if is_update {
            return places;
        }
    }
}

/// The passes, as `forward: classifier`.
fn names(places: &[InStep]) -> Vec<String> {
    let passes = places.iter().filter_map(InStep::pass);
    passes.map(ToString::to_string).collect()
}

#[test]
fn the_layers_of_a_step_come_one_by_one_with_the_values_of_the_step() {
    let reference = model(None, 1);
    let whole = started(&reference).finish().expect("it trains");
    let model = model(None, 1);
    let run = started(&model);
    run.step(2).expect("it steps");
    let outputs = run.activations("encoder.layer.1.output").expect("known");
    let gradients = run.gradients().expect("no device fails");
    let updates = run.updates().expect("no device fails");
    let before = weights(&model);

    assert!(run.in_step().is_none());
    let places = to_the_update(&run);
    assert_eq!(
        names(&places),
        [
            "forward: bert.embeddings",
            "forward: bert.encoder.layer.0",
            "forward: bert.encoder.layer.1",
            "forward: bert.pooler",
            "forward: classifier",
            "forward: outputs",
            "backward: outputs",
            "backward: classifier",
            "backward: bert.pooler",
            "backward: bert.encoder.layer.1",
            "backward: bert.encoder.layer.0",
            "backward: bert.embeddings",
        ]
    );
    let at = |name: &str| {
        let mut found = places.iter();
        let is = |it: &&InStep| it.pass().is_some_and(|it| it.to_string() == name);
        found.find(is).expect("it was passed")
    };
    let output = at("forward: bert.encoder.layer.1");
    let seen = output.value("layer.1.output").expect("it is of this layer");
    let expected = outputs["bert.encoder.layer.1.output"].norm;
    assert_eq!(seen.norm.to_bits(), expected.to_bits());
    assert_eq!(seen.elements.len(), seen.shape.iter().product::<usize>());
    let of_loss = at("backward: classifier");
    let seen = of_loss.value("classifier.weight").expect("it is trained");
    let expected = gradients["classifier.weight"].norm;
    assert_eq!(seen.norm.to_bits(), expected.to_bits());
    assert_eq!(of_loss.statistics()["classifier.weight"].norm, seen.norm);
    let last = places.last().expect("the update");
    assert_eq!(last.statistics().total().norm, updates.total().norm);
    assert_eq!(last.headline(), "step 3 of 16, the update of the weights");

    // Nothing has changed, and the next call makes the step.
    assert!(weights(&model) == before);
    assert_eq!(run.report().expect("no callback").position.step, 2);
    let made = run.next_layer().expect("it steps");
    let Place::Made(stop) = &made.place else {
        panic!("{made}")
    };
    assert_eq!(
        (stop.position.step, &stop.reason),
        (3, &StopReason::Reached)
    );
    assert!(run.in_step().is_none());
    // Others come without being asked for.
    run.next_layer().expect("no device fails");
    let history = run.finish().expect("it goes on");
    assert!(weights(&model) == weights(&reference));
    assert_eq!(history.counters, whole.counters);
    let over = run.next_layer().expect_err("it is over");
    assert_eq!(over.code, "SC0521");
}

#[test]
fn a_run_goes_back_layer_by_layer_also_to_an_earlier_micro_batch() {
    let model = model(None, 2);
    let run = started(&model);
    let forward = to_the_update(&run);
    let micro_batches: Vec<usize> = forward.iter().map(|it| it.micro_batch).collect();
    assert!(micro_batches.is_sorted() && micro_batches.ends_with(&[1]));
    assert_eq!(
        forward[0].headline(),
        "step 1 of 8, micro-batch 1 of 2, forward: bert.embeddings (1 of 12)"
    );
    let whole = run.batch().expect("no device fails").examples;
    for expected in forward.iter().rev().skip(1) {
        let place = run.previous_layer().expect("no device fails");
        if place.pass() == forward[0].pass() {
            let own = run.micro_batch().expect("no device fails").examples;
            let of_whole = whole
                .iter()
                .filter(|it| it.micro_batch == place.micro_batch);
            assert!(of_whole.eq(&own), "{place}");
        }
        assert_eq!(place.headline(), expected.headline());
        assert!(place.pass() == expected.pass(), "{place}");
    }
    let before = run.previous_layer().expect("no device fails");
    assert_eq!(before.place, Place::Before);
    assert!(run.in_step().is_none());
    let again = run.previous_layer().expect("no device fails");
    assert_eq!(
        again.headline(),
        "step 1 of 8, micro-batch 1 of 2, before the first layer"
    );
    let first = run.next_layer().expect("no device fails");
    assert!(first.pass() == forward[0].pass());
}

#[test]
fn a_change_of_the_run_begins_the_step_again() {
    let model = model(None, 1);
    let run = started(&model);
    run.step(2).expect("it steps");
    type Call = fn(&Run);
    let calls: [(&str, Call); 4] = [
        ("rate", |run| {
            run.set_learning_rate(pin(1e-2)).expect("a rate");
        }),
        ("batch", |run| {
            run.skip_batch().expect("there is one");
        }),
        ("step", |run| {
            run.step(1).expect("it steps");
        }),
        ("rewind", |run| {
            run.rewind(1).expect("it was made");
        }),
    ];
    for (name, change) in calls {
        run.next_layer().expect("no device fails");
        run.next_layer().expect("no device fails");
        change(&run);
        assert!(run.in_step().is_none(), "{name}");
        let place = run.next_layer().expect("no device fails");
        assert_eq!(place.place, Place::After(0), "{name}");
    }
    // What only looks leaves the place alone.
    run.next_layer().expect("no device fails");
    run.batch().expect("no device fails");
    run.gradients().expect("no device fails");
    run.break_when(stratoscope_models::breakpoints::nan())
        .expect("a condition");
    assert_eq!(run.in_step().expect("it is there").place, Place::After(1));
}

#[test]
fn at_the_end_a_condition_can_still_stop_the_step() {
    let model = model(None, 1);
    let run = started(&model);
    to_the_update(&run);
    run.break_when(stratoscope_models::breakpoints::grad_norm().above(1e-9))
        .expect("a condition");
    let place = run.next_layer().expect("no device fails");
    let Place::Made(stop) = &place.place else {
        panic!("{place}")
    };
    assert!(stop.hit().is_some() && stop.position.step == 0, "{place}");
    assert!(place.to_plain().contains("grad_norm"), "{place}");
}

#[test]
fn under_strategies_that_copy_and_that_shard() {
    let zero: fn() -> Option<Strategy> = || {
        let mirrored = MirroredStrategy::logical(2).expect("two");
        Some(
            mirrored
                .shard(Shard::Parameters)
                .expect("it shards")
                .strategy(),
        )
    };
    let parallel: fn() -> Option<Strategy> =
        || Some(ModelParallel::logical(2).expect("two").strategy());
    for (strategy, replicas) in [
        (mirrored as fn() -> Option<Strategy>, 2),
        (zero, 2),
        (parallel, 1),
    ] {
        let reference = model(strategy(), 1);
        started(&reference).finish().expect("it trains");
        let model = model(strategy(), 1);
        let run = started(&model);
        run.step(1).expect("it steps");
        let places = to_the_update(&run);
        assert!(names(&places).len() > 10, "{:?}", names(&places));
        let pass = places[1].pass().expect("a layer");
        let of: std::collections::BTreeSet<usize> =
            pass.values.iter().map(|it| it.replica).collect();
        assert_eq!(of.len(), replicas, "{}", places[1]);
        assert_eq!(
            run.shares().expect("no callback").len(),
            places[1].replicas.len().max(1)
        );
        run.finish().expect("it goes on");
        assert!(weights(&model) == weights(&reference));
    }
}

#[test]
fn what_the_optimizer_keeps_has_a_row_for_each_weight() {
    let model = model(None, 1);
    let run = started(&model);
    let moments = run.moments().expect("no callback");
    assert!(
        moments.is_empty() && moments.notes[0].contains("first step"),
        "{moments}"
    );
    run.step(1).expect("it steps");
    let moments = run.moments().expect("no callback");
    let m = &moments["Adam m of classifier.weight"];
    let v = &moments["Adam v of classifier.weight"];
    assert_eq!(m.shape, v.shape);
    assert!(m.norm > 0.0 && v.min >= 0.0);
    assert_eq!(
        run.shares().expect("no callback"),
        [("cpu:0".to_owned(), 4)]
    );
}

#[test]
fn of_a_network_without_taps_outputs_and_gradients_are_seen() {
    use stratoscope_models::{CompileArgs, Dense, MeanSquaredError, SGD, Sequential};

    let layers = [Dense(3).activation("relu").input_shape(2), Dense(1)];
    let model = Sequential(layers).expect("layers");
    let args = CompileArgs::new().optimizer(SGD::new(0.1));
    model
        .compile(args.loss(MeanSquaredError))
        .expect("valid arguments");
    let rows: Vec<[f32; 2]> = (0..8).map(|row| [row as f32 / 8.0, 1.0]).collect();
    let sums: Vec<f32> = rows.iter().map(|row| row[0] + row[1]).collect();
    let data = stratoscope_data::Dataset::from_arrays(rows, sums).expect("rows");
    let run = model
        .start(&data, FitArgs::new().batch_size(4).verbose(false))
        .expect("it is ready");
    let places = to_the_update(&run);
    let backward = places.iter().filter_map(InStep::pass);
    let backward = backward.filter(|it| it.direction == Direction::Backward);
    let layers: Vec<&str> = backward.map(|it| it.layer.as_str()).collect();
    assert_eq!(layers, ["outputs", "dense_1", "dense"]);
}
