//! Training by worker processes: the bits of logical devices in one process, whoever is killed meanwhile.

use std::collections::HashSet;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stratoscope_data::{Dataset, make_regression};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::{
    Activation, Adafactor, Adam, AdamW, CompileArgs, Dense, Dropout, FitArgs, History,
    IntoOptimizer, Lora, MeanSquaredError, Model, ModelOf, ModelOfRun, Network, SGD, Sequential,
    on_batch_end, serve_as_worker,
};
use stratoscope_strategy::strategy::start_workers_by;
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, MultiWorkerMirroredStrategy, Strategy, scope,
};
use stratoscope_workers::Launch;

use crate::support::{
    compiled, heard, id_model, is_full, load, plain_args, recipe, sentences, tiny_bert, weights,
};

mod choices;
mod half;
mod local;
mod moved;
mod on_gpu;
mod own;
mod shards;
mod what_if;

/// Not a test: a worker of the tests below.
#[test]
fn worker_process() {
    assert!(!serve_as_worker(), "a worker does not return");
}

struct ThisProgram;

impl Launch for ThisProgram {
    fn command(&self, _: usize) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "workers::worker_process", "--nocapture"]);
        Ok(command)
    }
}

pub(super) fn workers(count: usize) -> MultiWorkerMirroredStrategy {
    start_workers_by(Arc::new(ThisProgram));
    MultiWorkerMirroredStrategy::workers(count).expect("workers")
}

pub(super) fn logical(count: usize) -> MirroredStrategy {
    MirroredStrategy::logical(count).expect("logical devices")
}

fn signal(process: u32, signal: i32) {
    // SAFETY: a system call without pointers, to a process that this one has started.
    unsafe { libc::kill(process as i32, signal) };
}

/// All that a run leaves, to the bit.
#[derive(Debug, PartialEq)]
struct Left {
    losses: Vec<(u64, u64)>,
    validation: Vec<Option<u64>>,
    counters: String,
    weights: Vec<(String, Vec<u32>)>,
}

fn left(model: &Model, history: &History) -> Left {
    let steps = history.steps.iter();
    let epochs = history.epochs.iter();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
    Left {
        losses: steps.map(|it| (it.step, it.loss.to_bits())).collect(),
        validation: epochs
            .map(|it| it.validation.as_ref().map(|it| it.loss.to_bits()))
            .collect(),
        counters: format!("{:?}", history.counters),
        weights: (weights(model).into_iter())
            .map(|(name, values)| (name, bits(values)))
            .collect(),
    }
}

fn fit_args(dev: &Dataset) -> FitArgs<'_> {
    FitArgs::new()
        .epochs(2)
        .batch_size(6)
        .seed(3)
        .validation_data(dev)
        .verbose(false)
}

/// The tiny BERT with dropout, warm-up and clipping; 13 examples in batches of 6, so that the last one has no example for
/// three of four replicas.
fn bert(strategy: Strategy, policy: &str, accumulation: usize) -> Left {
    bert_that_averages(strategy, policy, accumulation, 1).0
}

/// The same with local SGD; also how often weights were averaged.
fn bert_that_averages(
    strategy: Strategy,
    policy: &str,
    accumulation: usize,
    sync_every: usize,
) -> (Left, u64) {
    let args = plain_args().optimizer(recipe()).sync_every(sync_every);
    let args = args.gradient_accumulation_steps(accumulation);
    let model = compiled(Some(strategy), policy, args);
    let (train, dev) = (sentences(13), sentences(7));
    let history = model.fit(&train, fit_args(&dev)).expect("it trains");
    (left(&model, &history), history.counters.parameter_averages)
}

#[test]
fn four_workers_have_the_bits_of_four_logical_devices() {
    for (policy, accumulation) in [("float32", 1), ("float32", 2), ("mixed_float16", 1)] {
        let expected = bert(logical(4).strategy(), policy, accumulation);
        let found = bert(workers(4).strategy(), policy, accumulation);
        assert_eq!(found, expected, "{policy}, {accumulation}");
    }
}

/// The workers build the adapters of the blueprint, and train what the chief trains.
#[test]
fn workers_train_adapters_to_the_bits_of_logical_devices() {
    let run = |strategy: Strategy, sync_every: usize| {
        let model = {
            let _scope = scope::enter(&strategy).expect("no scope is active");
            let model = load(&tiny_bert(0.1));
            let lora = Lora::new(2).alpha(4.0).dropout(0.1);
            model.add_lora(lora).expect("adapters");
            model
        };
        let args = plain_args().optimizer(recipe()).sync_every(sync_every);
        model.compile(args).expect("valid arguments");
        let (train, dev) = (sentences(13), sentences(7));
        let history = model.fit(&train, fit_args(&dev)).expect("it trains");
        left(&model, &history)
    };
    for sync_every in [1, 2] {
        let expected = run(logical(2).strategy(), sync_every);
        assert_eq!(run(workers(2).strategy(), sync_every), expected);
    }
}

/// Rates by layer travel with the update, also where workers step alone.
#[test]
fn workers_have_the_rates_of_layers() {
    for sync_every in [1, 2] {
        let run = |strategy: Strategy| {
            let optimizer = match sync_every {
                1 => AdamW::new(1e-3).layer_decay(0.5).into_optimizer(),
                // What it keeps is of another size than the variables.
                _ => Adafactor::new(1e-2).layer_decay(0.5).into_optimizer(),
            };
            let args = plain_args().optimizer(optimizer.expect("valid"));
            let model = compiled(Some(strategy), "float32", args.sync_every(sync_every));
            let (train, dev) = (sentences(13), sentences(7));
            let history = model.fit(&train, fit_args(&dev)).expect("it trains");
            left(&model, &history)
        };
        let expected = run(logical(2).strategy());
        assert_eq!(run(workers(2).strategy()), expected, "{sync_every}");
    }
}

/// The copies in a placement are those of the processes, which have them before the first step.
#[test]
fn a_placement_has_the_copies_of_all_workers() {
    let strategy = workers(3);
    let model = sequential(&strategy, CompileArgs::new().optimizer(Adam::new(0.01)));
    let data = make_regression(24, 5, 1).expect("numbers");
    let shown = |model: &Model| {
        let report = model.placement().expect("readable");
        for row in &report.variables {
            let devices: Vec<usize> = row.copies.iter().map(|it| it.device).collect();
            assert_eq!(devices, [0, 1, 2], "{}", report.to_plain());
            assert!(row.is_equal(), "{}", report.to_plain());
        }
        assert!(
            !report.to_plain().contains("no copy"),
            "{}",
            report.to_plain()
        );
        report.variables[0].copies[0].checksum
    };
    let before = shown(&model);
    let fit = FitArgs::new().batch_size(6).verbose(false);
    model.fit(&data, fit).expect("it trains");
    assert_ne!(shown(&model), before);
    // Whoever is gone has no copy.
    let strategy = strategy.replace_lost(false);
    let process = strategy.process(2).expect("a worker").expect("it lives");
    signal(process, libc::SIGKILL);
    while strategy.process(2).expect("a worker").is_some() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = model.placement().expect("readable");
    let row = &report.variables[0];
    assert_eq!(row.copies.len(), 2, "{}", report.to_plain());
    assert!(
        row.is_equal() && report.to_plain().contains("no copy"),
        "{}",
        report.to_plain()
    );
}

fn sequential(
    strategy: &impl AsStrategy,
    args: CompileArgs,
) -> ModelOf<stratoscope_models::sequential::Layers> {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let layers = [
        Dense(16).activation(Activation::Tanh).input_shape(5),
        Dropout(0.2),
        Dense(1),
    ];
    let model = Sequential(layers).expect("layers");
    model
        .compile(args.loss(MeanSquaredError))
        .expect("valid arguments");
    model
}

/// Every rule of the update, moving averages, frozen variables.
#[test]
fn the_updates_of_workers_are_those_of_one_process() {
    let train = make_regression(37, 5, 1).expect("data");
    let team = workers(3);
    let optimizers: [fn() -> CompileArgs; 4] = [
        || CompileArgs::new().optimizer(SGD::new(0.05).momentum(0.9).nesterov(true)),
        || CompileArgs::new().optimizer(Adam::new(0.01).amsgrad(true).clipnorm(0.1)),
        || CompileArgs::new().optimizer(Adam::new(0.01).use_ema(true).ema_momentum(0.8)),
        || CompileArgs::new().optimizer(Adam::new(0.01).clipvalue(0.05)),
    ];
    for (index, args) in optimizers.iter().enumerate() {
        let run = |strategy: Strategy| {
            let model = sequential(&strategy, args());
            if index == 3 {
                model.freeze("dense.").expect("there are such");
                let loss = args().loss(MeanSquaredError);
                model.compile(loss).expect("valid arguments");
            }
            let fit = FitArgs::new().epochs(2).batch_size(8).verbose(false);
            let history = model.fit(&train, fit).expect("it trains");
            left(&model, &history)
        };
        assert_eq!(run(team.strategy()), run(logical(3).strategy()), "{index}");
    }
}

/// A run of short steps, with what it says of workers.
fn long_run(strategy: &impl AsStrategy, epochs: usize) -> (Left, Vec<Diagnostic>) {
    let train = make_regression(64, 5, 2).expect("data");
    let args = CompileArgs::new().optimizer(Adam::new(0.01));
    heard(&["SC0808", "SC0812"], || {
        let model = sequential(strategy, args);
        let fit = FitArgs::new().epochs(epochs).batch_size(8).verbose(false);
        let history = model.fit(&train, fit).expect("it trains");
        left(&model, &history)
    })
}

fn codes(notices: &[Diagnostic], code: &str) -> usize {
    notices.iter().filter(|it| it.code == code).count()
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Kills or stops workers, so many times, each time a random one at a random moment. Every third one is stopped.
fn disturb(team: &MultiWorkerMirroredStrategy, times: usize) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut disturbed = HashSet::new();
    for number in 0..times {
        let worker = loop {
            std::thread::sleep(Duration::from_millis(80 + random.next() % 300));
            let worker = 1 + (random.next() >> 40) as usize % 3;
            // One that was stopped has its place until nothing was heard for 3 s.
            if let Some(process) = team.process(worker).expect("a worker")
                && disturbed.insert(process)
            {
                break process;
            }
        };
        signal(
            worker,
            [libc::SIGKILL, libc::SIGKILL, libc::SIGSTOP][number % 3],
        );
    }
}

/// Processes are killed and stopped at moments that nobody chose; every step has the loss of an undisturbed run, and the
/// last one leaves its weights. Twelve times; 50 in the long tests.
#[test]
fn a_run_whose_workers_are_killed_ends_on_the_same_bits() {
    let times = if is_full() { 50 } else { 12 };
    let train = make_regression(64, 5, 2).expect("data");
    let begun = |strategy: Strategy| {
        let model = sequential(&strategy, CompileArgs::new().optimizer(Adam::new(0.01)));
        let fit = FitArgs::new().epochs(20_000).batch_size(8).verbose(false);
        let run = model.start(&train, fit).expect("it starts");
        (model, run)
    };
    let team = workers(4);
    let disturbs = std::thread::spawn({
        let team = team.clone();
        move || disturb(&team, times)
    });
    let (mut losses, mut left) = (Vec::new(), Vec::new());
    let (_, notices) = heard(&["SC0808", "SC0812"], || {
        let (model, run) = begun(team.strategy());
        // The last one that was stopped is noticed 3 s later.
        let mut until = None;
        while until.is_none_or(|until| Instant::now() < until) {
            run.step(20).expect("steps");
            if until.is_none() && disturbs.is_finished() {
                until = Some(Instant::now() + Duration::from_secs(4));
            }
        }
        let steps = run.report().expect("a report").recent;
        losses.extend(steps.iter().map(|it| (it.step, it.loss.to_bits())));
        left = weights(&model);
    });
    disturbs.join().expect("nothing panics");
    let steps = losses.last().expect("there were steps").0;
    let (model, run) = begun(logical(4).strategy());
    run.step(steps).expect("steps");
    let recent = run.report().expect("a report").recent;
    let expected: Vec<_> = recent
        .iter()
        .map(|it| (it.step, it.loss.to_bits()))
        .collect();
    assert_eq!(losses, expected);
    assert_eq!(left, weights(&model));
    let (lost, came) = (codes(&notices, "SC0808"), codes(&notices, "SC0812"));
    println!("{steps} steps, {lost} workers were lost, {came} came");
    assert_eq!(lost, times, "{notices:?}");
    assert!(came >= 1, "{notices:?}");
    let killed = |card: &Diagnostic| card.message.contains("signal: 9 (SIGKILL)");
    assert!(notices.iter().any(killed), "{notices:?}");
}

/// A worker that hangs is noticed, and the run goes on without it.
#[test]
fn a_run_whose_worker_hangs_goes_on() {
    let (expected, _) = long_run(&logical(2), 4);
    let team = workers(2).replace_lost(false);
    let process = team.process(1).expect("a worker").expect("it is there");
    signal(process, libc::SIGSTOP);
    let (found, notices) = long_run(&team, 4);
    assert_eq!(found, expected);
    assert_eq!(codes(&notices, "SC0808"), 1, "{notices:?}");
    assert!(
        notices[0].message.contains("nothing was heard"),
        "{}",
        notices[0]
    );
    assert_eq!(team.process(1), Ok(None));
}

#[test]
fn a_run_with_too_few_workers_stops_and_can_go_on() {
    let train = make_regression(64, 5, 2).expect("data");
    let args = || CompileArgs::new().optimizer(Adam::new(0.01));
    let fit = || FitArgs::new().epochs(3).batch_size(8).verbose(false);
    let expected = {
        let model = sequential(&logical(2), args());
        let history = model.fit(&train, fit()).expect("it trains");
        left(&model, &history)
    };
    let team = workers(2).replace_lost(false).min_workers(2).wait(0.3);
    let model = sequential(&team, args());
    let run = model.start(
        &train,
        FitArgs::new().epochs(3).batch_size(8).verbose(false),
    );
    let run = run.expect("it starts");
    run.step(5).expect("five steps");
    signal(
        team.process(1).expect("a worker").expect("it is there"),
        libc::SIGKILL,
    );
    let problem = (0..100).find_map(|_| run.step(1).err());
    let problem = problem.expect("the worker is missed");
    assert_eq!(problem.code, "SC0809", "{problem}");
    let team = team.min_workers(1);
    let history = run.finish().expect("it goes on with one");
    assert_eq!(left(&model, &history), expected);
    drop(team);
}

/// What changes a run between two steps reaches the workers.
#[test]
fn a_run_is_rewound_forked_and_looked_at() {
    let train = make_regression(64, 5, 2).expect("data");
    let drive = |strategy: Strategy| {
        let model = sequential(&strategy, CompileArgs::new().optimizer(Adam::new(0.01)));
        let fit = FitArgs::new().epochs(3).batch_size(8).verbose(false);
        let run = model.start(&train, fit).expect("it starts");
        run.step(4).expect("steps");
        let fork = run.fork().expect("a fork");
        fork.set_learning_rate(stratoscope_models::pin(0.5))
            .expect("a rate");
        fork.step(2).expect("steps");
        run.step(3).expect("steps");
        // The columns of replicas are as wide as the names of their devices.
        let table = run.gradients().expect("it looks").to_string();
        let words: Vec<&str> = table.split_whitespace().collect();
        let gradients = words.join(" ").replace("worker:", "cpu:");
        fork.step(1).expect("a step");
        run.rewind(2).expect("it turns back");
        run.step(6).expect("steps");
        let forked = {
            let model = fork.model();
            let history = fork.finish().expect("it ends");
            left(&model, &history)
        };
        let history = run.finish().expect("it ends");
        (left(&model, &history), forked, gradients)
    };
    let expected = drive(logical(3).strategy());
    assert_eq!(drive(workers(3).strategy()), expected);
}

#[test]
fn a_module_of_ones_own_cannot_travel() {
    let team = workers(2);
    let _scope = scope::enter(&team).expect("no scope is active");
    let model = id_model();
    model.compile(plain_args()).expect("valid arguments");
    let data = crate::support::id_data(vec![("5:0 6:0".to_owned(), 1); 8]);
    let problem = model
        .fit(&data, FitArgs::new().verbose(false))
        .expect_err("its own module");
    assert_eq!(problem.code, "SC0810", "{problem}");
}

#[test]
fn workers_show_who_they_are() {
    let team = workers(3);
    let status = team.status().to_string();
    let lines: Vec<&str> = status.lines().collect();
    assert_eq!(lines.len(), 4, "{status}");
    assert!(lines[3].trim().starts_with("2  "), "{status}");
    assert!(lines[3].contains(" on this machine "), "{status}");
    let described = team.strategy().to_string();
    assert!(
        described.ends_with("3 worker processes, the first of which is this one"),
        "{described}"
    );
    let model = sequential(&team, CompileArgs::new().optimizer(Adam::new(0.01)));
    let train = make_regression(16, 5, 2).expect("data");
    let fit = FitArgs::new()
        .batch_size(8)
        .verbose(false)
        .callbacks(on_batch_end(|_| ()));
    model.fit(&train, fit).expect("it trains");
    let done = team.status();
    let members = &done.tally().members;
    // 16 examples in 2 batches of 8 for 3 replicas: 2, 3 and 3 of each, in some order.
    let examples: Vec<u64> = members.iter().map(|it| it.examples).collect();
    assert_eq!(examples.iter().sum::<u64>(), 16, "{done}");
    assert!(members.iter().all(|it| it.steps == 2), "{done}");
    // 5 · 16 + 16 + 16 + 1 gradients: to the last worker, and around to all.
    let gradients = 4 * (5 * 16 + 16 + 16 + 1);
    let sent: Vec<u64> = members.iter().map(|it| it.bytes).collect();
    assert_eq!(sent, [2 * 2 * gradients, 2 * gradients, 2 * gradients]);
    let placement = model.placement().expect("it is known").to_plain();
    assert!(placement.contains("worker:2"), "{placement}");
    assert!(placement.contains("chain"), "{placement}");

    let one = MultiWorkerMirroredStrategy::workers(0).expect_err("none");
    assert_eq!(one.code, "SC0915");
}
