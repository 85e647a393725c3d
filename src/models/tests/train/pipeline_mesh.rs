//! Pipelines in a mesh: rows of stages, which are replicas. The bits of mirrored replicas that accumulate gradients over batches of
//! the size of a micro-batch, what each device has and sends, all that a run can do, and what does not compose.

use std::fs;

use stratoscope_data::Dataset;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, EvaluateArgs, FitArgs, History, IntoOptimizer, Lamb, SGD,
};
use stratoscope_strategy::{
    AsStrategy, CrossDeviceOps, DeviceMesh, MirroredStrategy, PipelineSchedule, PipelineStrategy,
    VariableKind, scope,
};
use tempfile::TempDir;

use crate::pipeline::{args, compiled, deep_bert, one_f_one_b};
use crate::support::{heard, load, sentences, tiny_bert, weights};

const SCHEDULES: [PipelineSchedule; 2] = [
    PipelineSchedule::GPipe,
    PipelineSchedule::OneForwardOneBackward,
];

fn mesh(replicas: usize, stages: usize) -> DeviceMesh {
    DeviceMesh::logical([replicas, stages], ["batch", "stage"]).expect("logical devices")
}

fn over(replicas: usize, stages: usize, micro_batches: usize) -> PipelineStrategy {
    let strategy = PipelineStrategy::over(&mesh(replicas, stages)).expect("two axes");
    strategy.micro_batches(micro_batches).expect("a number")
}

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::logical(replicas).expect("logical devices")
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().batch_size(8).seed(5).epochs(2)
}

type Weights = Vec<(String, Vec<f32>)>;

/// Losses, metrics and norms to the bit.
fn trace(history: &History) -> String {
    let executions = history.executions.iter();
    let executions: Vec<_> = executions
        .map(|it| (it.loss.to_bits(), it.gradient_norm.map(f64::to_bits)))
        .collect();
    let epochs = history.epochs.iter();
    let epochs: Vec<_> = epochs
        .map(|it| {
            let validated = it.validation.as_ref();
            (it.metrics.clone(), validated.map(|it| it.loss.to_bits()))
        })
        .collect();
    format!("{executions:?} {epochs:?}")
}

/// What mirrored replicas make of batches of 8 in parts: batches of a part's size, and as many for a step.
fn accumulated(
    replicas: usize,
    parts: usize,
    ops: CrossDeviceOps,
    (data, epochs): (&Dataset, usize),
    optimizer: impl IntoOptimizer,
) -> (Weights, String) {
    let folder = deep_bert();
    let args = args(optimizer).gradient_accumulation_steps(parts);
    let strategy = mirrored(replicas).cross_device_ops(ops);
    let model = compiled(&strategy, &folder, args.steps_per_execution(parts));
    let fit = fit().epochs(epochs).batch_size(8 / parts);
    let history = model.fit(data, fit.validation_data(data));
    (weights(&model), trace(&history.expect("it trains")))
}

/// Four micro-batches of 2 on two rows of two and three stages, and two of 4 on four rows: with dropout, every schedule, every
/// kind of clipping and pattern of the all-reduce; and an epoch whose last micro-batch has one example, which one row computes.
#[test]
fn the_bits_are_those_of_mirrored_replicas_that_accumulate() {
    fn check<O: IntoOptimizer>(
        what: &str,
        (replicas, parts): (usize, usize),
        (examples, epochs): (usize, usize),
        ops: CrossDeviceOps,
        optimizer: impl Fn() -> O,
    ) {
        let (folder, data) = (deep_bert(), sentences(examples));
        let expected = accumulated(replicas, parts, ops, (&data, epochs), optimizer());
        for stages in [2, 3] {
            for schedule in SCHEDULES {
                let strategy = over(replicas, stages, parts).schedule(schedule);
                let strategy = strategy.cross_device_ops(ops);
                let model = compiled(&strategy, &folder, args(optimizer()));
                let fit = fit().epochs(epochs).validation_data(&data);
                let history = model.fit(&data, fit);
                let found = trace(&history.expect("it trains"));
                let what = format!("{what}, {replicas} × {stages}, {schedule}");
                assert_eq!(found, expected.1, "{what}");
                assert!(weights(&model) == expected.0, "{what}");
                let report = model.placement().expect("the devices answer");
                assert!(report.copies_are_equal(), "{what}");
            }
        }
    }
    let adam = || AdamW::new(1e-3).global_clipnorm(0.5);
    check("AdamW", (2, 4), (24, 2), CrossDeviceOps::Centralized, adam);
    let averaged = || SGD::new(0.1).momentum(0.9).use_ema(true).ema_momentum(0.5);
    check("use_ema", (4, 2), (24, 2), CrossDeviceOps::Tree, averaged);
    let layers = || AdamW::new(1e-3).clipnorm(0.05).layer_decay(0.5);
    check("clipnorm", (4, 2), (24, 1), CrossDeviceOps::Ring, layers);
    let lamb = || Lamb::new(1e-3);
    check("Lamb", (2, 4), (21, 1), CrossDeviceOps::Chain, lamb);
}

/// A mesh of one row is a pipeline.
#[test]
fn one_row_is_a_pipeline() {
    let (folder, data) = (deep_bert(), sentences(20));
    let run = |strategy: PipelineStrategy| {
        let model = compiled(&strategy, &folder, args(AdamW::new(1e-3)));
        let history = model.fit(&data, fit().validation_data(&data));
        let report = model.pipeline().expect("it is a pipeline");
        assert_eq!((report.replicas, report.stages.len()), (1, 2));
        let placed = model.placement().expect("the devices answer");
        assert!(placed.devices.iter().all(|it| it.replica.is_none()));
        (
            weights(&model),
            trace(&history.expect("it trains")),
            placed.verdict(),
        )
    };
    assert!(run(over(1, 2, 4)) == run(one_f_one_b(2, 4)));
}

/// Several batches for a step, layers that are computed once more, lower layers that are not trained.
#[test]
fn accumulation_recomputing_and_frozen_layers_change_no_bit() {
    let (folder, data) = (deep_bert(), sentences(32));
    for frozen in [&[][..], &["bert.embeddings", "bert.encoder.layer.0."]] {
        let run = |strategy: &dyn AsStrategy, accumulation: usize, fit: FitArgs<'_>| {
            let strategy = strategy.strategy();
            let scope = scope::enter(&strategy).expect("no scope is active");
            let model = load(&folder);
            for prefix in frozen {
                model.freeze(prefix).expect("the variables are there");
            }
            let args = args(AdamW::new(1e-3).global_clipnorm(0.5));
            let args = args.gradient_accumulation_steps(accumulation);
            model.compile(args).expect("valid arguments");
            drop(scope);
            model.fit(&data, fit).expect("it trains");
            weights(&model)
        };
        let expected = run(&mirrored(2), 4, fit().batch_size(4));
        for (stages, recompute) in [(2, false), (3, true)] {
            let found = run(&over(2, stages, 2), 2, fit().recompute(recompute));
            assert!(found == expected, "{stages} stages, recompute {recompute}");
        }
    }
}

/// Each variable on one stage of each replica, with its gradient and its moments; the stages send gradients to their like.
#[test]
fn a_variable_lives_on_one_stage_of_each_replica() {
    let strategy = over(2, 2, 4).stages([2, 3]).expect("five layers");
    let model = compiled(&strategy, &deep_bert(), args(AdamW::new(1e-3)));
    let planned = model.placement().expect("the devices answer");
    model.fit(&sentences(16), fit()).expect("it trains");
    let report = model.placement().expect("the devices answer");
    let places = report.devices.iter().map(|it| (it.replica, it.stage));
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)];
    assert!(places.eq(expected.map(|(replica, stage)| (Some(replica), Some(stage)))));
    let mut weights = [0; 2];
    for row in report.variables.iter().filter(|row| !row.beside) {
        let at: Vec<usize> = row.copies.iter().map(|copy| copy.device).collect();
        let later = ["layer.2.", "layer.3.", "layer.4.", "pooler", "classifier"];
        let stage = usize::from(later.iter().any(|part| row.name.contains(part)));
        assert_eq!(row.kind, VariableKind::Mirrored, "{}", row.name);
        assert_eq!(at, [stage, stage + 2], "{}", row.name);
        weights[stage] += row.bytes;
    }
    for device in 0..4 {
        let totals = report.device_totals(device);
        let own = weights[device % 2];
        assert_eq!(totals.weights, own);
        assert_eq!(totals.slots, [own; 3], "gradients and two moments");
    }
    let [done] = report.collectives.as_slice() else {
        unreachable!("one all-reduce: {:?}", report.collectives)
    };
    assert_eq!(
        done.hops, planned.collectives[0].hops,
        "the plan is what happens"
    );
    assert_eq!(done.payload_bytes, weights[0] + weights[1]);
    let arrows = done.hops.iter().flat_map(|hop| &hop.arrows);
    let arrows: Vec<_> = arrows.map(|it| (it.from, it.to, it.bytes)).collect();
    let [first, second] = weights;
    let expected = [(2, 0, first), (3, 1, second), (0, 2, first), (1, 3, second)];
    assert_eq!(arrows, expected);
    let verdict = report.verdict();
    assert!(
        verdict.ends_with("equal on all 2 replicas, each of them on one of 2 stages"),
        "{verdict}"
    );
    let text = report.to_plain();
    let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "stage 0 of each of its 2 replicas has the embeddings and layers 0 to 1",
        "a copy on one stage of every replica",
        "each to its like in the first replica, which adds",
    ] {
        assert!(in_one_line.contains(part), "{text}");
    }
    assert!(report.to_html().contains("replica 1, stage 1"));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

/// Rows of 7 tokens, with those that a row begins and ends with.
fn even_rows(count: usize) -> Dataset {
    let text = |index: usize| format!("w{} w20 w30 w40 w50", 60 + index % 20);
    let labels = ["red", "green", "blue"];
    Dataset::from_labelled((0..count).map(|index| (text(index), labels[index % 3])))
}

/// Each row has a timeline, and its stages keep and send what the schedule says for its half of each micro-batch.
#[test]
fn rows_keep_and_send_what_the_schedule_says() {
    let folder = deep_bert();
    let strategy = over(2, 2, 4);
    let words = strategy.to_string();
    assert!(
        words.ends_with("2 replicas, each a pipeline with 4 micro-batches (1F1B)"),
        "{words}"
    );
    let model = compiled(&strategy, &folder, args(AdamW::new(1e-3)));
    model
        .fit(&even_rows(16), fit().batch_size(16).epochs(1))
        .expect("it trains");
    let report = model.pipeline().expect("it is under a pipeline");
    assert_eq!((report.replicas, report.stages.len()), (2, 4));
    assert!((report.predicted - 0.2).abs() < 1e-12);
    let names: Vec<&str> = report.stages.iter().map(|it| it.device.as_str()).collect();
    assert_eq!(names, ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]);
    assert_eq!(report.stages[0].has, report.stages[2].has);
    let step = report.step.as_ref().expect("a step was made");
    let kept: Vec<usize> = step.stages.iter().map(|stage| stage.kept).collect();
    assert_eq!(kept, [2, 1, 2, 1]);
    // 4 parts of 2 × 7 tokens × 32 numbers of 4 bytes over each border, in both directions.
    let border = 4 * 2 * 7 * 32 * 4;
    assert!(step.stages.iter().all(|it| it.sent_bytes == border));
    assert!(step.stages.iter().all(|it| it.passes.len() == 8));
    assert!(step.stages.iter().all(|it| it.kept_bytes > Some(0)));
    assert!((0.0..1.0).contains(&step.bubble()), "{}", step.bubble());
    let plain = report.to_plain();
    for part in ["20 %", "replica 0, stage 0  ", "replica 1, stage 1  "] {
        assert!(plain.contains(part), "{plain}");
    }
}

/// Stepped, looked at, profiled, rewound, saved after some steps and gone on with, evaluated and asked.
#[test]
fn a_run_can_do_what_other_runs_can() {
    let (folder, data) = (deep_bert(), sentences(24));
    let new = || compiled(&over(2, 2, 4), &folder, args(AdamW::new(1e-3)));
    let model = new();
    let run = model.start(&data, fit().verbose(false)).expect("it starts");
    run.step(2).expect("it steps");
    let there = weights(&model);
    run.step(2).expect("it steps");
    run.rewind(2).expect("it was kept");
    assert!(weights(&model) == there, "rewound");
    drop(run.gradients());
    drop(run.updates());
    drop(run.weights());
    assert!(weights(&model) == there, "looking changes nothing");
    let profile = run.profile(2).expect("steps are left");
    let lanes = profile.events.iter();
    assert!(
        lanes
            .map(|it| it.lane_name.as_str())
            .any(|it| it == "replica 1, stage 0, cpu:2")
    );
    run.finish().expect("it ends");
    let straight = new();
    let place = TempDir::new().expect("a temporary folder");
    let path = place.path().join("run");
    let path = path.to_str().expect("UTF-8");
    let kept = straight.fit(&data, fit().checkpoint(path).every(2));
    kept.expect("it trains");
    assert!(weights(&model) == weights(&straight), "the same steps");
    // The folder is that of any model: on one device, and mirrored.
    let last = format!("{path}/last");
    let alone = BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads");
    let of_copies = {
        let _scope = scope::enter(&mirrored(2)).expect("no scope is active");
        BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads")
    };
    of_copies
        .compile(args(AdamW::new(1e-3)))
        .expect("valid arguments");
    assert!(weights(&alone) == weights(&straight), "whole");
    assert!(weights(&of_copies) == weights(&straight), "whole");
    // Both divide a batch in halves.
    let results = [&straight, &of_copies].map(|it| {
        let found = it.evaluate(&data, EvaluateArgs::new()).expect("a result");
        let predicted = it.predict(&data).expect("predictions");
        (found.loss.to_bits(), predicted.to_string())
    });
    assert_eq!(results[0], results[1]);
    // As after a crash: what was written last is of the fourth step.
    fs::remove_dir_all(format!("{path}/step-6")).expect("it is there");
    let resumed = new();
    resumed
        .fit(&data, fit().resume_from(path))
        .expect("it goes on");
    assert!(weights(&resumed) == weights(&straight), "resumed");
    // Mirrored replicas go on in parts of the size of the micro-batches, to the same bits.
    let moved = compiled(&mirrored(2), &folder, args(AdamW::new(1e-3)));
    let ((), notes) = heard(&["SC0532"], || {
        let kept = fit().resume_from(format!("{path}/step-4"));
        moved.fit(&data, kept).expect("it goes on");
    });
    assert!(weights(&moved) == weights(&straight), "moved");
    assert!(notes.is_empty(), "{notes:?}");
}

/// A step by hand on a mesh is that of mirrored replicas.
#[test]
fn a_step_by_hand_reaches_all_devices() {
    let (folder, data) = (tiny_bert(0.1), sentences(8));
    let step = |strategy: &dyn AsStrategy| {
        let optimizer = SGD::new(0.05).momentum(0.9);
        let model = compiled(&strategy.strategy(), &folder, args(optimizer));
        for _ in 0..2 {
            let gradients = model.gradients(&data).expect("a gradient");
            model.apply(gradients).expect("a step");
        }
        let report = model.placement().expect("the devices answer");
        assert!(report.copies_are_equal(), "{}", report.verdict());
        weights(&model)
    };
    assert!(step(&over(2, 2, 4)) == step(&mirrored(2)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let code = |shape: &[usize], names: &[&str]| {
        let mesh = DeviceMesh::logical(shape.to_vec(), names.to_vec()).expect("devices");
        let found = PipelineStrategy::over(&mesh).expect_err("it does not fit");
        (found.code.clone(), format!("{found:?}"))
    };
    let (three, text) = code(&[2, 2, 2], &["batch", "model", "stage"]);
    assert_eq!(three, "SC0627");
    assert!(text.contains("[4, 2]"), "{text}");
    let (one, text) = code(&[4, 1], &["batch", "stage"]);
    assert_eq!(one, "SC0627");
    assert!(text.contains("[1, 4]"), "{text}");
    let model = compiled(&over(2, 2, 4), &tiny_bert(0.1), args(SGD::new(0.1)));
    let odd = model.fit(&sentences(24), fit().batch_size(12));
    let odd = odd.expect_err("6 for each replica are no multiple of 4");
    assert_eq!(odd.code.as_str(), "SC0622");
    for part in ["4 micro-batches for 2 replicas", "`batch_size = 16`", "3)"] {
        assert!(format!("{odd:?}").contains(part), "{part}: {odd:?}");
    }
    let run = model.start(&sentences(24), fit()).expect("it starts");
    let odd = run.set_batch_size(12).expect_err("no multiple of 8");
    assert_eq!(odd.code.as_str(), "SC0622");
    drop(run);
    let alone = args(SGD::new(0.1)).sync_every(4);
    let found = model.compile(alone).expect_err("they update together");
    assert_eq!(found.code.as_str(), "SC0103");
    assert!(
        format!("{found:?}").contains("`MirroredStrategy`"),
        "{found:?}"
    );
}
