//! Stages that compute the micro-batches of a batch: the bits of one device that accumulates gradients over batches of that size,
//! what each stage has and keeps, and what a pipeline refuses.

use std::fs;

use burn::tensor::{Device, Tensor};
use stratoscope_bert::{
    BertConfig, BertNetwork, BertTokenizer, Computed, Mode, MultipleChoice, QuestionAnswerer,
    Segment, SentenceEncoder, SequenceClassifier, TokenClassifier, checkpoint,
};
use stratoscope_data::{Batch, Dataset, Labels};
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForMultipleChoice, BertForSequenceClassification, CompileArgs,
    Dense, FitArgs, History, InStages, IntoOptimizer, Lamb, LoadOptions, Network, SGD, Sequential,
    accuracy,
};
use stratoscope_strategy::{
    AsStrategy, OneDeviceStrategy, PipelineSchedule, PipelineStrategy, VariableKind, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, gpu, heard, load, sentences, tiny_bert, weights,
};

const SCHEDULES: [PipelineSchedule; 2] = [
    PipelineSchedule::GPipe,
    PipelineSchedule::OneForwardOneBackward,
];

/// A BERT with 5 layers of the tiny BERT's size, new weights and dropout.
pub fn deep_bert() -> TempDir {
    let tiny = tiny_bert(0.1);
    let path = tiny.path().join("config.json");
    let text = fs::read_to_string(&path).expect("it was written");
    let layers = "\"num_hidden_layers\": ";
    let (before, after) = text.split_once(layers).expect("the layers are there");
    let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let text = format!("{before}{layers}5{rest}");
    let config = BertConfig::from_json(&text, &path).expect("it is valid");
    let network = SequenceClassifier::init(&config, 7, &Device::flex()).expect("room");
    let tokenizer = BertTokenizer::from_folder(tiny.path()).expect("it loads");
    let folder = TempDir::new().expect("a temporary folder");
    checkpoint::save(folder.path(), &network, &config, &tokenizer).expect("room");
    folder
}

fn pipeline(stages: usize, micro_batches: usize, schedule: PipelineSchedule) -> PipelineStrategy {
    let strategy = PipelineStrategy::logical(stages).expect("logical devices");
    let strategy = strategy.micro_batches(micro_batches).expect("a number");
    strategy.schedule(schedule)
}

pub fn one_f_one_b(stages: usize, micro_batches: usize) -> PipelineStrategy {
    pipeline(
        stages,
        micro_batches,
        PipelineSchedule::OneForwardOneBackward,
    )
}

pub fn one() -> OneDeviceStrategy {
    OneDeviceStrategy::new(cpu(0)).expect("a processor")
}

pub fn args(optimizer: impl IntoOptimizer) -> CompileArgs {
    let args = CompileArgs::new().optimizer(optimizer);
    args.loss(cross_entropy()).metrics([accuracy()])
}

pub fn compiled(
    strategy: &impl AsStrategy,
    folder: &TempDir,
    args: CompileArgs,
) -> BertForSequenceClassification {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(folder);
    model.compile(args).expect("valid arguments");
    model
}

fn fit() -> FitArgs<'static> {
    FitArgs::new().batch_size(8).seed(5).epochs(2)
}

/// Losses, metrics and norms to the bit.
fn trace(history: &History) -> String {
    let executions = history.executions.iter();
    let executions: Vec<_> = executions
        .map(|it| (it.loss.to_bits(), it.gradient_norm.map(f64::to_bits)))
        .collect();
    let epochs = history.epochs.iter();
    let epochs: Vec<_> = epochs
        .map(|it| {
            (
                it.metrics.clone(),
                it.validation.as_ref().map(|it| it.loss.to_bits()),
            )
        })
        .collect();
    format!("{executions:?} {epochs:?}")
}

/// Four micro-batches of 2 through two and three stages against batches of 2 on one device, four for a step: with dropout and every
/// kind of clipping; and an epoch whose last batch has three micro-batches, one of them with one example.
#[test]
fn the_bits_are_those_of_accumulation_on_one_device() {
    fn check<O: IntoOptimizer>(
        what: &str,
        (examples, epochs): (usize, usize),
        optimizer: impl Fn() -> O,
    ) {
        let (folder, data) = (deep_bert(), sentences(examples));
        let expected = {
            let args = args(optimizer()).gradient_accumulation_steps(4);
            let model = compiled(&one(), &folder, args.steps_per_execution(4));
            let fit = fit().epochs(epochs).batch_size(2);
            let history = model.fit(&data, fit.validation_data(&data));
            let history = history.expect("it trains");
            (weights(&model), trace(&history))
        };
        for stages in [2, 3] {
            for schedule in SCHEDULES {
                let strategy = pipeline(stages, 4, schedule);
                let model = compiled(&strategy, &folder, args(optimizer()));
                let fit = fit().epochs(epochs).validation_data(&data);
                let history = model.fit(&data, fit);
                let found = trace(&history.expect("it trains"));
                assert_eq!(found, expected.1, "{what}, {stages} stages, {schedule}");
                assert!(
                    weights(&model) == expected.0,
                    "{what}, {stages}, {schedule}"
                );
            }
        }
    }
    check("AdamW", (24, 2), || AdamW::new(1e-3).global_clipnorm(0.5));
    check("clipnorm", (24, 2), || {
        AdamW::new(1e-3).clipnorm(0.05).layer_decay(0.5)
    });
    check("Lamb", (21, 1), || Lamb::new(1e-3));
    check("use_ema", (24, 2), || {
        SGD::new(0.1).momentum(0.9).use_ema(true).ema_momentum(0.5)
    });
}

/// Several batches for a step, layers that are computed once more, lower layers that are not trained.
#[test]
fn accumulation_recomputing_and_frozen_layers_change_no_bit() {
    let (folder, data) = (deep_bert(), sentences(32));
    for frozen in [
        &[][..],
        &[
            "bert.embeddings",
            "bert.encoder.layer.0.",
            "bert.encoder.layer.1.",
        ],
    ] {
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
        let expected = run(&one(), 4, fit().batch_size(4));
        for (stages, recompute) in [(2, false), (3, true)] {
            let found = run(&one_f_one_b(stages, 2), 2, fit().recompute(recompute));
            assert!(found == expected, "{stages} stages, recompute {recompute}");
        }
    }
}

/// A rate of dropout that is set in the middle of a run holds in all stages.
#[test]
fn dropout_that_is_set_holds_in_all_stages() {
    let (folder, data) = (deep_bert(), sentences(32));
    let run = |strategy: &dyn AsStrategy, accumulation: usize, fit: FitArgs<'static>| {
        let strategy = strategy.strategy();
        let args = args(AdamW::new(1e-3)).gradient_accumulation_steps(accumulation);
        let model = compiled(&strategy, &folder, args);
        let run = model.start(&data, fit.verbose(false)).expect("it is ready");
        run.step(1).expect("it steps");
        run.set_dropout(0.5).expect("a rate");
        run.finish().expect("it ends");
        weights(&model)
    };
    let expected = run(&one(), 2, fit().epochs(1).batch_size(4));
    let changed_nothing = {
        let model = compiled(
            &one(),
            &folder,
            args(AdamW::new(1e-3)).gradient_accumulation_steps(2),
        );
        model
            .fit(&data, fit().epochs(1).batch_size(4))
            .expect("it trains");
        weights(&model)
    };
    assert!(expected != changed_nothing);
    for recompute in [false, true] {
        let found = run(&one_f_one_b(2, 2), 1, fit().epochs(1).recompute(recompute));
        assert!(found == expected, "recompute {recompute}");
    }
}

/// Each variable on one stage, with its gradient and its moments.
#[test]
fn a_variable_lives_on_one_stage() {
    let strategy = one_f_one_b(2, 4).stages([2, 3]).expect("five layers");
    let model = compiled(&strategy, &deep_bert(), args(AdamW::new(1e-3)));
    for when in ["planned", "measured"] {
        let report = model.placement().expect("the devices answer");
        let stages = report.devices.iter().map(|device| device.stage);
        assert_eq!(stages.collect::<Vec<_>>(), [Some(0), Some(1)]);
        let rows = report.variables.iter().filter(|row| !row.beside);
        for row in rows {
            let at: Vec<usize> = row.copies.iter().map(|copy| copy.device).collect();
            let later = ["layer.2.", "layer.3.", "layer.4.", "pooler", "classifier"];
            let stage = usize::from(later.iter().any(|part| row.name.contains(part)));
            assert_eq!(
                (row.kind, at),
                (VariableKind::Local, vec![stage]),
                "{}",
                row.name
            );
        }
        for device in 0..2 {
            let totals = report.device_totals(device);
            let [gradients, m, v] = totals.slots[..] else {
                unreachable!("gradients and two moments: {:?}", report.slots)
            };
            let each = [gradients, m, v];
            let weights = totals.weights;
            assert!(
                weights > 0 && each == [weights; 3],
                "{when}: {weights} {each:?}"
            );
        }
        model.fit(&sentences(16), fit()).expect("it trains");
    }
    let plain = model.placement().expect("the devices answer").to_plain();
    assert!(
        plain.contains("stage 0 has the embeddings and layers 0 to 1"),
        "{plain}"
    );
}

/// GPipe keeps all micro-batches, 1F1B at most as many as there are stages from this one on; what crosses a border has the
/// size of the activations.
#[test]
fn stages_keep_and_send_what_the_schedule_says() {
    // Rows of 7 tokens, with those that a row begins and ends with.
    let text = |index: usize| format!("w{} w20 w30 w40 w50", 60 + index);
    let rows = (0..8).map(|index| (text(index), ["red", "green", "blue"][index % 3]));
    let (folder, data) = (deep_bert(), Dataset::from_labelled(rows));
    for (schedule, expected) in SCHEDULES.into_iter().zip([[4, 4, 4], [3, 2, 1]]) {
        let model = compiled(&pipeline(3, 4, schedule), &folder, args(AdamW::new(1e-3)));
        let planned = model.pipeline().expect("it is under a pipeline");
        assert!(planned.step.is_none());
        model.fit(&data, fit().epochs(1)).expect("it trains");
        let report = model.pipeline().expect("it is under a pipeline");
        assert!((report.predicted - 2.0 / 6.0).abs() < 1e-12);
        let step = report.step.as_ref().expect("a step was made");
        let kept: Vec<usize> = step.stages.iter().map(|stage| stage.kept).collect();
        assert_eq!(kept, expected, "{schedule}");
        // 4 micro-batches of 2 × 7 tokens × 32 numbers of 4 bytes over each border, in both directions.
        let border = 4 * 2 * 7 * 32 * 4;
        let sent: Vec<u64> = step.stages.iter().map(|stage| stage.sent_bytes).collect();
        assert_eq!(sent, [border, 2 * border, border]);
        let bytes = |stage: usize| step.stages[stage].kept_bytes.expect("it is known");
        assert!(bytes(0) > 0 && bytes(1) > 0);
        assert!((0.0..1.0).contains(&step.bubble()), "{}", step.bubble());
        let passes = step.stages.iter().flat_map(|stage| stage.passes.windows(2));
        for pair in passes {
            assert!(
                pair[0].end <= pair[1].start,
                "a stage computes one pass at a time"
            );
        }
        let plain = report.to_plain();
        assert!(
            plain.contains("33 %") && plain.contains("stage 2  "),
            "{plain}"
        );
    }
}

/// Stepped, rewound, saved after some steps and gone on with, evaluated and asked: as on one device.
#[test]
fn a_run_can_do_what_other_runs_can() {
    let (folder, data) = (deep_bert(), sentences(24));
    let strategy = one_f_one_b(2, 4);
    let model = compiled(&strategy, &folder, args(AdamW::new(1e-3)));
    let run = model.start(&data, fit()).expect("it starts");
    run.step(2).expect("it steps");
    let there = weights(&model);
    run.step(2).expect("it steps");
    run.rewind(2).expect("it was kept");
    assert!(weights(&model) == there, "rewound");
    drop(run.gradients());
    drop(run.updates());
    assert!(weights(&model) == there, "looking changes nothing");
    run.finish().expect("it ends");
    let straight = compiled(&strategy, &folder, args(AdamW::new(1e-3)));
    let place = TempDir::new().expect("a temporary folder");
    let path = place.path().join("run");
    let path = path.to_str().expect("UTF-8");
    let kept = straight.fit(&data, fit().checkpoint(path).every(2));
    kept.expect("it trains");
    assert!(weights(&model) == weights(&straight), "the same steps");

    let last = format!("{path}/last");
    let alone = BertForSequenceClassification::from_pretrained(&last, 3).expect("it loads");
    assert!(
        weights(&alone) == weights(&straight),
        "whole, on one device"
    );
    let (mine, theirs) = (straight.predict(&data), alone.predict(&data));
    let shown = |found: stratoscope_diagnostics::Result<stratoscope_models::Predictions>| {
        found.expect("it predicts").to_string()
    };
    assert_eq!(shown(mine), shown(theirs));
    fs::remove_dir_all(format!("{path}/step-6")).expect("it is there");
    let resumed = compiled(&strategy, &folder, args(AdamW::new(1e-3)));
    resumed
        .fit(&data, fit().resume_from(path))
        .expect("it goes on");
    assert!(weights(&resumed) == weights(&straight), "resumed");
}

/// Each head computes in segments what it computes at once, in training and in evaluation.
#[test]
fn every_head_has_the_bits_of_its_segments() {
    fn check<N: Network + BertNetwork>(labels: usize, choices: usize) {
        let folder = deep_bert();
        let config = BertConfig::from_folder(folder.path()).expect("it was saved");
        let config = config.with_num_labels(labels).expect("a number");
        let device = Device::flex().autodiff();
        let network = N::init(&config, 3, &device).expect("room");
        let (rows, length) = (4, 6 * choices);
        let count = rows * length;
        let batch = Batch {
            ids: (0..count).map(|at| 5 + (at * 7 % 100) as i32).collect(),
            mask: (0..count)
                .map(|at| i32::from(at % 6 < 4 + at % 2))
                .collect(),
            type_ids: vec![0; count],
            features: Vec::new(),
            labels: Labels::Absent,
            rows: (0..rows).collect(),
            weights: None,
            seq: length,
            choices,
            by_worker: None,
        };
        let train = Mode::Train {
            seed: 3,
            step: 11,
            replica: 0,
        };
        let bits = |outputs: Tensor<2>| -> Vec<u32> {
            let outputs = outputs.into_data();
            outputs.iter::<f32>().map(f32::to_bits).collect()
        };
        assert_eq!(N::in_stages(), InStages::Chain);
        for mode in [train, Mode::Eval] {
            let whole = bits(network.logits(&batch, mode, &device));
            let (mut before, mut found) = (None, None);
            for (layers, has_head) in [(0..1, false), (1..4, false), (4..5, true)] {
                let segment = Segment { layers, has_head };
                let computed = network.segment(&segment, before.take(), &batch, mode, &device);
                match computed.expect("it is a chain") {
                    Computed::Hidden(hidden) => before = Some(hidden),
                    Computed::Outputs(outputs) => found = Some(bits(outputs)),
                }
            }
            assert_eq!(found, Some(whole), "{} {mode:?}", N::ARCHITECTURE);
        }
    }
    check::<SequenceClassifier>(3, 1);
    check::<TokenClassifier>(5, 1);
    check::<QuestionAnswerer>(2, 1);
    check::<MultipleChoice>(2, 2);
    check::<SentenceEncoder>(2, 1);
}

/// A pipeline under another head: the choices of a prompt are rows by themselves.
#[test]
fn choices_train_in_stages() {
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("UTF-8");
    let row = |index: usize| {
        let words = |it: usize| format!("w{} w{}", 10 + it % 90, 11 + it % 80);
        let choices = vec![words(3 * index), words(5 * index + 1)];
        (words(index), choices, index % 2)
    };
    let data = Dataset::from_choices::<_, String>((0..8).map(row)).expect("two choices each");
    let run = |strategy: &dyn AsStrategy, batch: usize, steps: usize| {
        let strategy = strategy.strategy();
        let scope = scope::enter(&strategy).expect("no scope is active");
        let options = LoadOptions::new();
        let model = BertForMultipleChoice::from_pretrained_with(path, 2, &options);
        let model = model.expect("it loads");
        let args = args(AdamW::new(1e-3)).gradient_accumulation_steps(steps);
        model.compile(args).expect("valid arguments");
        drop(scope);
        model
            .fit(&data, fit().batch_size(batch))
            .expect("it trains");
        weights(&model)
    };
    assert!(run(&one_f_one_b(2, 2), 4, 1) == run(&one(), 2, 2));
}

#[test]
fn what_a_pipeline_cannot_do_is_refused() {
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("UTF-8");
    let in_scope = |strategy: &PipelineStrategy, code: &str, text: &str| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let found = BertForSequenceClassification::from_pretrained(path, 3);
        let found = found.expect_err("it does not fit");
        assert_eq!(found.code.as_str(), code, "{found}");
        assert!(found.to_string().contains(text), "{found}");
    };
    in_scope(
        &one_f_one_b(3, 4),
        "SC0620",
        "3 stages for a network of 2 layers",
    );
    let given = one_f_one_b(2, 4).stages([2, 1]).expect("two numbers");
    in_scope(&given, "SC0620", "3 layers in all");
    let strategy = one_f_one_b(2, 4);
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let tied = BertForMaskedLM::from_pretrained(path).expect_err("its decoder is tied");
    assert_eq!(tied.code.as_str(), "SC0624");
    assert!(tied.to_string().contains("word embeddings"), "{tied}");
    let dense = Sequential([Dense(1).seed(1)]).expect_err("it is no chain of encoder layers");
    assert_eq!(dense.code.as_str(), "SC0624");
    let model = load(&folder);
    model.compile(args(SGD::new(0.1))).expect("valid arguments");
    let odd = model.fit(&sentences(12), fit().batch_size(6));
    let odd = odd.expect_err("6 is no multiple of 4");
    assert_eq!(odd.code.as_str(), "SC0622");
    let run = model.start(&sentences(12), fit()).expect("it starts");
    let odd = run.set_batch_size(6).expect_err("6 is no multiple of 4");
    assert_eq!(odd.code.as_str(), "SC0622");
}

#[test]
fn what_wastes_the_time_of_stages_is_reported() {
    let folder = deep_bert();
    let run = |strategy: PipelineStrategy| {
        let codes = &["SC0621", "SC0623"];
        let ((), heard) = heard(codes, || {
            let model = compiled(&strategy, &folder, args(SGD::new(0.1)));
            let history = model.fit(&sentences(8), fit().epochs(1));
            history.expect("it trains");
        });
        heard
            .into_iter()
            .map(|it| (it.code, it.message))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(one_f_one_b(2, 4)), []);
    let few = run(one_f_one_b(3, 2));
    assert_eq!(few.len(), 1, "{few:?}");
    assert!(few[0].0 == "SC0621" && few[0].1.contains("50 %"), "{few:?}");
    let heavy = run(one_f_one_b(2, 4).stages([4, 1]).expect("five layers"));
    assert_eq!(heavy.len(), 1, "{heavy:?}");
    assert!(
        heavy[0].0 == "SC0623" && heavy[0].1.contains("stage 0"),
        "{heavy:?}"
    );
}

/// On two shares of a GPU, and on the CPU and a GPU together.
#[test]
fn stages_train_alike_on_gpu() {
    let (folder, data) = (tiny_bert(0.1), sentences(8));
    let places: [fn() -> stratoscope_diagnostics::Result<PipelineStrategy>; 2] = [
        || PipelineStrategy::logical_on(gpu(), 2),
        || PipelineStrategy::on([cpu(0), gpu()]),
    ];
    let expected = match OneDeviceStrategy::new(gpu()) {
        Ok(alone) => {
            let args = args(SGD::new(0.1).momentum(0.9)).gradient_accumulation_steps(4);
            let model = compiled(&alone, &folder, args);
            model.fit(&data, fit().batch_size(2)).expect("it trains");
            weights(&model)
        }
        Err(reason) => {
            println!("skipped: {}", reason.one_line());
            return;
        }
    };
    for place in places {
        let strategy = place().expect("the devices are there");
        let model = compiled(&strategy, &folder, args(SGD::new(0.1).momentum(0.9)));
        model.fit(&data, fit()).expect("it trains");
        assert_near_weights(&weights(&model), &expected);
    }
}
