//! Complete checkpoints: a run that goes on from any of them, with a model of its own as in another process, ends on the
//! very weights and losses of one that was not left; and what is damaged, foreign or of another version is refused.

use std::fs;
use std::path::{Path, PathBuf};

use stratoscope_data::make_regression;
use stratoscope_models::breakpoints::custom;
use stratoscope_models::{
    Adafactor, Adam, AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, History,
    IntoOptimizer, Lamb, Lion, MeanSquaredError, Optimizer, RMSprop, SGD, Sequential, StopReason,
    interrupt, pearson, set_global_policy, warmup_linear,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Partitioner, Strategy,
};
use tempfile::TempDir;

use crate::support::{self, heard, mirrored, plain_args, recipe, sentences, weights};

type Weights = Vec<(String, Vec<f32>)>;

struct Case {
    name: &'static str,
    strategy: fn() -> Option<Strategy>,
    optimizer: fn() -> Optimizer,
    policy: &'static str,
    sync_every: usize,
    accumulation: usize,
    steps_per_execution: usize,
    early_stopping: bool,
    every: usize,
}

const CASE: Case = Case {
    name: "one device",
    strategy: || None,
    optimizer: || valid(recipe()),
    policy: "float32",
    sync_every: 1,
    accumulation: 1,
    steps_per_execution: 1,
    early_stopping: false,
    every: 3,
};

fn valid(optimizer: impl IntoOptimizer) -> Optimizer {
    optimizer.into_optimizer().expect("valid numbers")
}

fn compiled(case: &Case) -> BertForSequenceClassification {
    let args = support::grouped(
        plain_args().optimizer((case.optimizer)()),
        case.sync_every,
        case.accumulation,
        case.steps_per_execution,
    );
    support::compiled((case.strategy)(), case.policy, args)
}

/// Eight batches an epoch, sixteen in all.
fn trained(
    case: &Case,
    change: impl for<'a> FnOnce(FitArgs<'a>) -> FitArgs<'a>,
) -> stratoscope_diagnostics::Result<(Weights, History)> {
    let model = compiled(case);
    let (train, dev) = (sentences(30), sentences(7));
    let mut args = FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .validation_data(&dev)
        .verbose(false);
    if case.early_stopping {
        args = args.early_stopping(5);
    }
    let history = model.fit(&train, change(args))?;
    Ok((weights(&model), history))
}

/// All that a history has measured, but times.
fn measured(history: &History) -> String {
    let mut history = history.clone();
    history
        .executions
        .iter_mut()
        .for_each(|it| it.seconds = 0.0);
    for epoch in &mut history.epochs {
        (epoch.seconds, epoch.sequences_per_second) = (0.0, 0.0);
        if let Some(validation) = &mut epoch.validation {
            validation.seconds = 0.0;
        }
    }
    let History {
        epochs,
        executions,
        steps,
        counters,
        best_epoch,
        restored_best,
        averaged_weights,
        loss_scale,
        ..
    } = history;
    let all = (epochs, executions, steps, counters);
    format!("{all:?} {best_epoch:?} {restored_best} {averaged_weights} {loss_scale:?}")
}

fn steps_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("manifest.json").exists())
        .collect();
    paths.sort();
    paths
}

/// From every checkpoint of a run to its end.
fn check(case: &Case) {
    let name = case.name;
    let (expected, whole) = trained(case, |args| args).expect("it trains");
    let folder = TempDir::new().expect("a temporary folder");
    let (found, history) = trained(case, |args| {
        args.checkpoint(folder.path())
            .every(case.every)
            .keep_last(100)
    })
    .expect("it trains");
    assert!(found == expected, "{name}: writing changes nothing");
    assert_eq!(measured(&history), measured(&whole), "{name}");
    let paths = steps_of(folder.path());
    assert!(paths.len() > 1, "{name}: {paths:?}");
    for path in paths {
        let (found, history) = trained(case, |args| args.resume_from(&path)).expect("it goes on");
        assert!(
            found == expected,
            "{name}: other weights from {}",
            path.display()
        );
        assert_eq!(
            measured(&history),
            measured(&whole),
            "{name}, {}",
            path.display()
        );
    }
}

#[test]
fn on_one_device() {
    check(&CASE);
}

#[test]
fn with_rmsprop_lion_lamb_and_adafactor() {
    check(&Case {
        name: "centered RMSprop",
        optimizer: || valid(RMSprop::new(1e-3).momentum(0.9).centered(true)),
        ..CASE
    });
    check(&Case {
        name: "Lion",
        optimizer: || valid(Lion::new(1e-3).weight_decay(0.1)),
        ..CASE
    });
    let adafactor = Case {
        name: "Adafactor",
        optimizer: || valid(Adafactor::new(1e-2).weight_decay(0.1).use_ema(true)),
        ..CASE
    };
    check(&adafactor);
    // What replicas keep alone.
    check(&Case {
        name: "Adafactor, sync_every",
        optimizer: || valid(Adafactor::new(1e-2)),
        strategy: mirrored,
        sync_every: 3,
        every: 2,
        ..CASE
    });
    check(&Case {
        name: "LAMB",
        optimizer: || valid(Lamb::new(1e-2).weight_decay(0.1)),
        ..CASE
    });
}

#[test]
fn on_mirrored_replicas_with_accumulation_and_executions_of_several_batches() {
    check(&Case {
        name: "mirrored",
        strategy: mirrored,
        accumulation: 3,
        steps_per_execution: 4,
        every: 1,
        ..CASE
    });
}

#[test]
fn with_replicas_that_step_alone_and_the_best_weights() {
    check(&Case {
        name: "sync_every",
        strategy: mirrored,
        sync_every: 3,
        early_stopping: true,
        every: 2,
        ..CASE
    });
}

#[test]
fn with_every_tensor_that_an_optimizer_keeps() {
    let averaged: fn() -> Optimizer = || {
        valid(
            Adam::new(1e-3)
                .amsgrad(true)
                .use_ema(true)
                .ema_momentum(0.5),
        )
    };
    check(&Case {
        name: "amsgrad and averages",
        optimizer: averaged,
        ..CASE
    });
    check(&Case {
        name: "momentum",
        optimizer: || valid(SGD::new(0.05).momentum(0.9).nesterov(true)),
        every: 7,
        ..CASE
    });
}

#[test]
fn with_rates_by_layer() {
    check(&Case {
        name: "layer_decay",
        optimizer: || valid(AdamW::new(1e-3).layer_decay(0.5).rate_for("*.bias", 2.0)),
        ..CASE
    });
}

#[test]
fn with_one_copy_of_the_variables() {
    let central: fn() -> Option<Strategy> =
        || Some(CentralStorageStrategy::logical(2).expect("two").strategy());
    check(&Case {
        name: "central storage",
        strategy: central,
        every: 5,
        ..CASE
    });
}

#[test]
fn on_parameter_servers() {
    let asynchronous: fn() -> Option<Strategy> = {
        || {
            Some(
                ParameterServerStrategy::logical(2, 2)
                    .expect("two and two")
                    .strategy(),
            )
        }
    };
    check(&Case {
        name: "asynchronous servers",
        strategy: asynchronous,
        every: 5,
        ..CASE
    });
    let cut: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 3).expect("two and three");
        let cut = servers.variable_partitioner(Partitioner::MinSize(64));
        Some(cut.expect("a size above 0").synchronous().strategy())
    };
    check(&Case {
        name: "shards",
        strategy: cut,
        early_stopping: true,
        every: 5,
        ..CASE
    });
}

#[test]
fn with_mixed_precision() {
    check(&Case {
        name: "mixed_float16",
        policy: "mixed_float16",
        every: 4,
        ..CASE
    });
}

/// A network without files of Hugging Face's kind has complete checkpoints all the same.
#[test]
fn of_a_network_without_files() {
    let data = make_regression(40, 3, 3).expect("sizes above 0");
    let trained = |change: &dyn Fn(FitArgs<'static>) -> FitArgs<'static>| {
        let model = Sequential([Dense(4).seed(1), Dense(1).seed(2)]).expect("a valid model");
        let args = CompileArgs::new().optimizer(Adam::new(0.01));
        let args = args.loss(MeanSquaredError).metrics([pearson()]);
        model.compile(args).expect("valid arguments");
        let args = FitArgs::new().epochs(3).batch_size(8).verbose(false);
        model
            .fit(&data, change(args))
            .map(|history| (weights(&model), measured(&history)))
    };
    let folder = TempDir::new().expect("a temporary folder");
    let expected = trained(&|args| args.checkpoint(folder.path()).every(4)).expect("it trains");
    let paths = steps_of(folder.path());
    assert_eq!(paths.len(), 3, "the newest three: {paths:?}");
    for path in paths {
        assert!(trained(&|args| args.resume_from(&path)).expect("it goes on") == expected);
    }
    // The best weights alone, as `save_pretrained` writes them.
    assert!(trained(&|args| args.checkpoint(folder.path())).is_ok());
}

/// A folder with the checkpoints of a run, the newest after 15 steps, with names relative to it.
fn written() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    trained(&CASE, |args| args.checkpoint(folder.path()).every(5)).expect("it trains");
    let names: Vec<_> = steps_of(folder.path());
    let names: Vec<_> = names
        .iter()
        .map(|path| path.file_name().expect("a name"))
        .collect();
    assert_eq!(names, ["step-10", "step-15", "step-16"]);
    folder
}

#[test]
fn every_checkpoint_is_loaded_by_from_pretrained() {
    let folder = written();
    let path = folder.path().join("step-16");
    let path = path.to_str().expect("UTF-8");
    let loaded = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
    let (expected, _) = trained(&CASE, |args| args).expect("it trains");
    assert!(weights(&loaded) == expected);
    // What it is trained from is nobody else's business.
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(Path::new(path)), 0o700);
    for entry in fs::read_dir(path).expect("a folder").flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
    }
}

/// From every checkpoint the files beside it are loaded into a model that predicts what the run's own model predicts when
/// it goes on from there.
fn files_predict_what_the_run_predicts(case: &Case) {
    let folder = TempDir::new().expect("a temporary folder");
    trained(case, |args| {
        args.checkpoint(folder.path()).every(4).keep_last(100)
    })
    .expect("it trains");
    let texts = ["w10 w11 w15", "w40 w44", "w70 w71 w72 w73"];
    let mut seen = Vec::new();
    for path in steps_of(folder.path()) {
        let model = compiled(case);
        let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
        let args = args.validation_data_copied(&sentences(7)).verbose(false);
        let run = model.start(&sentences(30), args.resume_from(&path));
        let run = run.expect("it is complete");
        let expected = model.predict(texts).expect("it is read");
        drop(run);
        let path = path.to_str().expect("UTF-8");
        set_global_policy(case.policy).expect("a policy");
        let loaded = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
        set_global_policy("float32").expect("a policy");
        let found = loaded.predict(texts).expect("it predicts");
        for (found, expected) in found.rows.iter().zip(&expected.rows) {
            assert_eq!(found.label, expected.label, "{}: {path}", case.name);
            let pairs = found.probabilities.iter().zip(&expected.probabilities);
            for (found, expected) in pairs {
                // Replicas that share the texts have smaller matrices, whose sums have another order.
                let allowed = if case.name == CASE.name { 0.0 } else { 1e-6 };
                let difference = (found - expected).abs();
                assert!(
                    difference <= allowed,
                    "{}: {path}: {difference:e}",
                    case.name
                );
            }
        }
        seen.push(found.rows[0].score);
    }
    assert!(seen.len() >= 4, "{}", case.name);
    assert!(
        seen.windows(2).all(|pair| pair[0] != pair[1]),
        "it learns between two of them"
    );
}

#[test]
fn the_files_of_every_checkpoint_predict_what_the_run_predicts() {
    let shards: fn() -> Option<Strategy> = || {
        let servers = ParameterServerStrategy::logical(2, 3).expect("two and three");
        let cut = servers.variable_partitioner(Partitioner::MinSize(64));
        Some(cut.expect("a size above 0").synchronous().strategy())
    };
    for case in [
        CASE,
        Case {
            name: "mirrored",
            strategy: mirrored,
            ..CASE
        },
        Case {
            name: "shards",
            strategy: shards,
            ..CASE
        },
        Case {
            name: "mixed_bfloat16",
            policy: "mixed_bfloat16",
            ..CASE
        },
    ] {
        files_predict_what_the_run_predicts(&case);
    }
}

#[test]
fn the_files_of_each_epoch_are_written_as_ever() {
    let folder = written();
    for name in ["last", "best"] {
        assert!(
            folder.path().join(name).join("model.safetensors").exists(),
            "{name}"
        );
    }
}

/// The newest one is damaged in every file and every way; the one before it is used, to the same bits.
#[test]
fn damage_is_found_and_the_one_before_is_used() {
    let folder = written();
    let (expected, whole) = trained(&CASE, |args| args).expect("it trains");
    let newest = folder.path().join("step-16");
    let names = [
        "config.json",
        "model.safetensors",
        "state.safetensors",
        "progress.json",
        "manifest.json",
    ];
    let mut tried = 0;
    for name in names {
        let path = newest.join(name);
        let sound = fs::read(&path).expect("it is there");
        let mut flipped = sound.clone();
        flipped[sound.len() / 2] ^= 1;
        let cut = sound[..sound.len() - 1].to_vec();
        for bytes in [Some(flipped), Some(cut), Some(Vec::new()), None] {
            match &bytes {
                Some(bytes) => fs::write(&path, bytes).expect("room"),
                None => fs::remove_file(&path).expect("it is there"),
            }
            let resume = || trained(&CASE, |args| args.resume_from(folder.path()));
            let (outcome, notices) = heard(&["SC0526"], resume);
            let (found, history) = outcome.expect("another one is complete");
            assert!(found == expected, "{name}");
            assert_eq!(measured(&history), measured(&whole), "{name}");
            assert_eq!(notices.len(), 1, "{name}: {notices:?}");
            assert!(
                notices[0].message.contains("step-15"),
                "{}",
                notices[0].message
            );
            // By itself it is refused.
            let alone = trained(&CASE, |args| args.resume_from(&newest));
            assert_eq!(alone.expect_err("it is damaged").code, "SC0526", "{name}");
            fs::write(&path, &sound).expect("room");
            tried += 1;
        }
    }
    assert_eq!(tried, 20);
    let (outcome, notices) = heard(&["SC0526"], || {
        trained(&CASE, |args| args.resume_from(folder.path()))
    });
    outcome.expect("it is sound again");
    assert!(notices.is_empty(), "{notices:?}");
}

#[test]
fn another_run_is_refused_and_what_differs_is_named() {
    let folder = written();
    let check =
        |case: &Case, names: &[&str], change: &dyn for<'a> Fn(FitArgs<'a>) -> FitArgs<'a>| {
            let refused = trained(case, |args| change(args.resume_from(folder.path())));
            let refused = refused.expect_err("it is another run");
            assert_eq!(refused.code, "SC0527", "{names:?}");
            for name in names {
                assert!(
                    refused.message.contains(&format!("`{name}`")),
                    "{}",
                    refused.message
                );
            }
        };
    check(&CASE, &["epochs"], &|args| args.epochs(3));
    check(&CASE, &["seed"], &|args| args.seed(4));
    check(&CASE, &["batch_size"], &|args| args.batch_size(8));
    check(&CASE, &["early_stopping"], &|args| args.early_stopping(1));
    let slower = Case {
        optimizer: || valid(AdamW::new(warmup_linear(1e-4, 0.2)).global_clipnorm(1.0)),
        ..CASE
    };
    check(&slower, &["optimizer"], &|args| args);
    // Other devices alone are none; with other arguments they are named as well.
    let on_two = Case {
        strategy: mirrored,
        ..CASE
    };
    check(&on_two, &["strategy", "seed"], &|args| args.seed(4));
    // Another text in the data, as many as before.
    let model = compiled(&CASE);
    let other = sentences(33).skip(3);
    let args = FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .verbose(false);
    let refused = model.fit(&other, args.resume_from(folder.path()));
    let message = refused.expect_err("other data").message;
    assert!(message.contains("`training data`"), "{message}");
}

#[test]
fn another_version_and_an_empty_folder_are_refused() {
    let folder = written();
    let mut current = "\"format\": 3".to_owned();
    // An earlier version, whose checksums are of another algorithm, and a later one.
    for other in [2, 4] {
        let other = format!("\"format\": {other}");
        for name in ["step-10", "step-15", "step-16"] {
            let path = folder.path().join(name).join("manifest.json");
            let text = fs::read_to_string(&path).expect("it is there");
            let changed = text.replacen(&current, &other, 1);
            assert_ne!(changed, text);
            fs::write(&path, changed).expect("room");
        }
        let refused = trained(&CASE, |args| args.resume_from(folder.path()));
        assert_eq!(refused.expect_err("another version").code, "SC0528");
        current = other;
    }
    let empty = TempDir::new().expect("a temporary folder");
    let refused = trained(&CASE, |args| args.resume_from(empty.path()));
    assert_eq!(refused.expect_err("there is none").code, "SC0526");
    let absent = trained(&CASE, |args| args.resume_from(empty.path().join("absent")));
    assert_eq!(absent.expect_err("there is none").code, "SC0526");
}

/// A checkpoint is not left to a call that may never come, and the end of an epoch is a place to go on from.
#[test]
fn what_is_due_where_a_call_ends_is_written_then() {
    let (expected, whole) = trained(&CASE, |args| args).expect("it trains");
    let folder = TempDir::new().expect("a temporary folder");
    let names = || -> Vec<String> {
        let name = |path: &PathBuf| {
            let name = path.file_name().expect("a name");
            name.to_string_lossy().into_owned()
        };
        steps_of(folder.path()).iter().map(name).collect()
    };
    let model = compiled(&CASE);
    let args = FitArgs::new().epochs(2).batch_size(4).seed(3);
    let args = args.validation_data_copied(&sentences(7)).verbose(false);
    let args = args.checkpoint(folder.path()).every(4).keep_last(100);
    let run = model.start(&sentences(30), args).expect("it is ready");
    run.step(4).expect("it steps");
    assert_eq!(names(), ["step-4"]);
    run.step(4).expect("it steps");
    assert_eq!(names(), ["step-4", "step-8"]);
    run.step(3).expect("it steps");
    // An interrupt, here while step 12 is made, does not wait for a checkpoint; the next call writes it.
    let interrupts = custom(|step| {
        if step.step == 12 {
            interrupt::request();
        }
        false
    });
    run.break_when(interrupts).expect("a condition");
    let stop = run.step(5).expect("it is interrupted");
    assert_eq!(
        (stop.reason, stop.position.step),
        (StopReason::Interrupted, 12)
    );
    assert_eq!(names(), ["step-4", "step-8"]);
    run.step(2).expect("it steps");
    assert_eq!(names(), ["step-12", "step-4", "step-8"]);
    run.epoch().expect("it steps");
    assert_eq!(names(), ["step-12", "step-16", "step-4", "step-8"]);
    let newest = run.history().expect("no callback").complete_checkpoint;
    assert!(newest.is_some_and(|it| it.ends_with("step-16")));
    run.finish().expect("all steps are made");
    assert_eq!(names().len(), 4, "it is written once");
    assert!(weights(&model) == expected);
    for path in steps_of(folder.path()) {
        let (found, history) = trained(&CASE, |args| args.resume_from(&path)).expect("it goes on");
        assert!(found == expected, "{}", path.display());
        assert_eq!(measured(&history), measured(&whole), "{}", path.display());
    }
}

/// Two runs that write to one folder keep their own; the newest is the one that was written last.
#[test]
fn runs_do_not_remove_the_checkpoints_of_others() {
    let folder = written();
    trained(&CASE, |args| {
        args.seed(9).checkpoint(folder.path()).every(8).keep_last(1)
    })
    .expect("it trains");
    let names: Vec<String> = (steps_of(folder.path()).iter())
        .map(|path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names, ["step-10", "step-15", "step-16", "step-16.2"]);
    trained(&CASE, |args| args.seed(9).resume_from(folder.path())).expect("the newest is of it");
    // A run that goes on prunes those of the process that began it.
    trained(&CASE, |args| {
        let first = folder.path().join("step-10");
        args.resume_from(first)
            .checkpoint(folder.path())
            .every(5)
            .keep_last(1)
    })
    .expect("it goes on");
    assert_eq!(steps_of(folder.path()).len(), 2);
}
