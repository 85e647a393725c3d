//! Losses and metrics of one's own: functions in place of the usual ones, under every strategy, policy and way to go on.

use std::sync::atomic::{AtomicU32, Ordering};

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};
use stratoscope_data::{Dataset, Label};
use stratoscope_models::{
    AdamW, BertForQuestionAnswering, BertForSentenceEmbedding, BertForSequenceClassification,
    CompileArgs, EarlyStopping, FitArgs, History, LoadOptions, Loss, Metric, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, ParameterServerStrategy, Strategy, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, heard, load, mirrored, plain_args, recipe, sentences,
    tiny_bert, weights,
};
use crate::workers::workers;

/// The cross-entropy of classes.
fn own() -> Loss {
    Loss::of_classes("mine", |outputs, classes: Tensor<1, Int>| {
        let logarithms = log_softmax(outputs, 1);
        let own = logarithms.gather(1, classes.unsqueeze_dim(1));
        own.squeeze_dim::<1>(1).neg()
    })
}

/// How far apart class and largest output are.
fn distance() -> Metric {
    Metric::mean_of("distance", |outputs, label| {
        let best = (0..outputs.len()).max_by(|&a, &b| outputs[a].total_cmp(&outputs[b]));
        match label {
            Label::Class(class) => class.abs_diff(best.unwrap_or(0)) as f64,
            Label::Value(_) => f64::NAN,
        }
    })
}

fn model(strategy: Option<Strategy>, args: CompileArgs) -> BertForSequenceClassification {
    let _scope = strategy
        .as_ref()
        .map(|it| scope::enter(it).expect("no scope is active"));
    let model = load(&tiny_bert(0.0));
    model.compile(args).expect("valid arguments");
    model
}

fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(4)
        .epochs(2)
        .seed(3)
        .verbose(false)
}

fn values(history: &History) -> Vec<(f64, Vec<Option<f64>>)> {
    let epochs = history.epochs.iter();
    let epochs = epochs.map(|epoch| {
        let metrics = epoch.metrics.iter().map(|metric| metric.value);
        (epoch.loss, metrics.collect())
    });
    epochs.collect()
}

#[test]
fn a_function_trains_like_the_loss_that_it_computes() {
    let metrics = [distance(), accuracy()];
    let run = |strategy: Option<Strategy>, loss: Option<Loss>, weighted: bool| {
        let args = plain_args().optimizer(recipe()).metrics(metrics);
        let args = match loss {
            Some(loss) => args.loss(loss),
            None => args,
        };
        let model = model(strategy, args);
        let fit = match weighted {
            true => fit().class_weight([1.0, 3.0, 0.5]),
            false => fit(),
        };
        let history = model.fit(&sentences(21), fit).expect("it trains");
        (values(&history), weights(&model))
    };
    for weighted in [false, true] {
        let usual = run(None, None, weighted);
        let found = run(None, Some(own()), weighted);
        assert_near_weights(&found.1, &usual.1);
        for (found, usual) in found.0.iter().zip(&usual.0) {
            assert!((found.0 - usual.0).abs() < 1e-5, "{found:?} {usual:?}");
            assert_eq!(found.1, usual.1);
        }
        let mirrored = MirroredStrategy::logical(2).expect("logical devices");
        let of_two = run(Some(mirrored.strategy()), Some(own()), weighted);
        assert_near_weights(&of_two.1, &found.1);
        assert_eq!(of_two.0[1].1, found.0[1].1, "counted alike");
        let central = CentralStorageStrategy::logical(2).expect("logical devices");
        assert!(run(Some(central.strategy()), Some(own()), weighted).1 == of_two.1);
    }
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    let history = run(Some(servers.strategy()), Some(own()), false).0;
    assert!(
        history.iter().all(|epoch| epoch.1[0].is_some()),
        "{history:?}"
    );
}

#[test]
fn a_run_goes_on_from_a_checkpoint_with_what_was_measured() {
    let folder = TempDir::new().expect("a folder");
    let new = || {
        let args = plain_args().loss(own()).metrics([accuracy(), distance()]);
        model(None, args.optimizer(recipe()))
    };
    let saving = fit().checkpoint(folder.path().to_str().expect("UTF-8"));
    let whole = new();
    let expected = whole.fit(&sentences(21), saving.every(4).keep_last(9));
    let expected = values(&expected.expect("it trains"));
    let from = folder.path().join("step-4");
    let going = fit().resume_from(from.to_str().expect("UTF-8"));
    let other = new();
    let found = other.fit(&sentences(21), going).expect("it goes on");
    assert_eq!(values(&found), expected);
    assert!(weights(&other) == weights(&whole));
}

#[test]
fn early_stopping_knows_which_values_are_good() {
    let best = |metric: Metric| {
        let args = plain_args().loss(own()).metrics([metric]);
        let model = model(None, args.optimizer(recipe()));
        let stop = EarlyStopping::new().monitor("val_rising");
        let data = sentences(12);
        let args = fit().epochs(3).early_stopping(stop).validation_data(&data);
        model.fit(&data, args).expect("it trains").best_epoch
    };
    // A number that rises with every call.
    let calls = AtomicU32::new(0);
    let rising = Metric::mean_of("rising", move |_, _| {
        f64::from(calls.fetch_add(1, Ordering::Relaxed))
    });
    assert_eq!(best(rising), Some(2));
    assert_eq!(best(rising.lower_is_better()), Some(0));
}

/// An epoch whose value is undefined is not better than any other, and counts as one without anything better.
#[test]
fn early_stopping_counts_epochs_that_are_undefined() {
    let run = |metric: Metric, patience: u64| {
        let args = plain_args().loss(own()).metrics([metric]);
        let model = model(None, args.optimizer(recipe()));
        let stop = EarlyStopping::new().monitor("val_fades").patience(patience);
        let data = sentences(12);
        let args = fit().epochs(6).early_stopping(stop).validation_data(&data);
        model.fit(&data, args).expect("it trains")
    };
    for (patience, epochs) in [(1, 2), (2, 2), (3, 3)] {
        let never = run(Metric::mean_of("fades", |_, _| f64::NAN), patience);
        let found = (never.epochs.len(), never.best_epoch);
        assert_eq!(found, (epochs, None), "{never}");
        assert!(never.stopped_early && !never.restored_best, "{never}");
    }
    // An epoch asks it of 12 examples, and its validation of 12 more.
    let calls = AtomicU32::new(0);
    let later = run(
        Metric::mean_of("fades", move |_, _| {
            match calls.fetch_add(1, Ordering::Relaxed) {
                ..36 => 1.0,
                _ => f64::NAN,
            }
        }),
        2,
    );
    assert_eq!(
        (later.epochs.len(), later.best_epoch),
        (3, Some(0)),
        "{later}"
    );
    assert!(later.stopped_early && later.restored_best, "{later}");
}

/// One that fails where `compile!` has not looked is an error of the run, and of a metric a warning.
#[test]
fn a_function_that_fails_on_the_way_is_said() {
    let data = sentences(8);
    for strategy in [None, mirrored()] {
        let calls = AtomicU32::new(0);
        let late = Loss::of_classes("late", move |outputs, _| {
            assert!(calls.fetch_add(1, Ordering::Relaxed) < 4, "too often");
            outputs.sum_dim(1).squeeze_dim(1)
        });
        let model = model(strategy, plain_args().loss(late));
        let problem = model.fit(&data, fit()).expect_err("it fails");
        let shown = format!("{problem:?}");
        assert!(
            problem.code == "SC0103" && shown.contains("too often"),
            "{shown}"
        );
    }
    let metric = Metric::mean_of("third", |_, label| match label {
        Label::Class(2) => panic!("no third class"),
        _ => 1.0,
    });
    let model = model(None, plain_args().metrics([metric, accuracy()]));
    let (history, notices) = heard(&["SC0103"], || model.fit(&data, fit()));
    let history = history.expect("it trains");
    assert!(
        history
            .epochs
            .iter()
            .all(|it| it.metrics[0].value.is_none())
    );
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(format!("{notices:?}").contains("no third class"));
}

#[test]
fn answers_and_vectors_are_trained_by_functions() {
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let questions = Dataset::from_questions([
        ("w5", "w10 w11 w80 w12", "w80"),
        ("w5", "w13 w81 w14", "w81"),
    ]);
    let answerer = BertForQuestionAnswering::from_pretrained(path).expect("the fixture loads");
    let args = CompileArgs::new().optimizer(AdamW::new(0.01)).loss(own());
    answerer.compile(args).expect("valid arguments");
    let data = questions.expect("they are in it");
    let history = answerer.fit(&data, fit().epochs(8)).expect("it trains");
    assert!(history.epochs[7].loss < history.epochs[0].loss / 2.0);

    // Hadsell et al. 2006: pairs that belong together are drawn near, others are pushed away up to a margin.
    let contrastive = Loss::of_numbers("contrastive", |cosines, labels| {
        let distances = cosines.neg().add_scalar(1.0);
        let apart = distances.clone().neg().add_scalar(0.5).clamp_min(0.0);
        let together = labels.clone() * distances.powi_scalar(2);
        (together + labels.neg().add_scalar(1.0) * apart.powi_scalar(2)).div_scalar(2.0)
    });
    let encoder = BertForSentenceEmbedding::from_pretrained(path).expect("the fixture loads");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(contrastive);
    encoder.compile(args).expect("valid arguments");
    let pair = |first: &str, second: &str, together: f32| {
        let example = stratoscope_data::Example::new(first).with_pair(second);
        example.with_label(Label::Value(together))
    };
    let pairs = [
        pair("w10 w11", "w12 w13", 1.0),
        pair("w10 w11", "w40 w41", 0.0),
    ];
    let pairs = Dataset::from_examples(pairs, Vec::new(), "pairs");
    encoder.fit(&pairs, fit().epochs(20)).expect("it trains");
    let vectors = encoder
        .embed(["w10 w11", "w12 w13", "w40 w41"])
        .expect("vectors");
    let cosines = vectors.similarity(&vectors).expect("as long as each other");
    assert!(cosines[0][1] > 0.9 && cosines[0][2] < 0.7, "{cosines:?}");
}

#[test]
fn what_cannot_be_trained_or_measured_with_is_refused_by_compile() {
    let refused = |args: CompileArgs, said: &str| {
        let model = load(&tiny_bert(0.0));
        let problem = model.compile(args).expect_err(said);
        let shown = format!("{problem:?}");
        assert!(problem.code == "SC0103" && shown.contains(said), "{shown}");
    };
    let mean = Loss::of_classes("mean", |outputs, _| outputs.mean());
    refused(plain_args().loss(mean), "it adds up or averages");
    let constant = Loss::of_classes("constant", |_, classes| classes.float());
    refused(
        plain_args().loss(constant),
        "does not depend on the outputs",
    );
    let broken = Loss::of_classes("broken", |_, _| panic!("not yet"));
    refused(plain_args().loss(broken), "it panicked: not yet");
    let metric = Metric::mean_of("tenth", |outputs, _| f64::from(outputs[9]));
    refused(
        plain_args().metrics([metric]),
        "it panicked: index out of bounds",
    );

    let code = |loss: Loss| {
        let model = load(&tiny_bert(0.0));
        let problem = model.compile(plain_args().loss(loss));
        problem.expect_err("of numbers, for classes").code
    };
    assert_eq!(
        code(Loss::of_numbers("far", |outputs, labels| outputs - labels)),
        "SC0309"
    );
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let one = LoadOptions::new().num_labels(1).new_head();
    let one = BertForSequenceClassification::from_pretrained_with(path, &one);
    let one = one.expect("the fixture loads");
    let problem = one
        .compile(plain_args().loss(own()))
        .expect_err("one output");
    assert_eq!(problem.code, "SC0305");
    let answerer = BertForQuestionAnswering::from_pretrained(path).expect("the fixture loads");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(cross_entropy());
    let problem = answerer.compile(args.metrics([distance()]));
    let problem = problem.expect_err("a metric of classes");
    assert!(problem.code == "SC0103" && format!("{problem:?}").contains("Metric::mean_of"));

    // Names that stand for something else, or for another metric.
    for name in ["accuracy", "loss", "val_gap", "", "a,b", "two\nlines"] {
        let metric = Metric::mean_of(name, |_, _| 0.0);
        refused(
            plain_args().metrics([metric]),
            "a metric with a name of its own",
        );
    }
    refused(
        plain_args().metrics([distance(), distance()]),
        "two metrics have this name",
    );

    // A function does not travel to other processes; what it measures does not have to.
    let team = workers(2);
    let scope = scope::enter(&team.strategy()).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    let problem = model.compile(plain_args().loss(own()));
    let problem = problem.expect_err("the workers do not have it");
    assert!(
        format!("{problem:?}").contains("cannot be sent to worker processes"),
        "{problem:?}"
    );
    model
        .compile(plain_args().metrics([distance()]))
        .expect("valid arguments");
    drop(scope);
    let history = model
        .fit(&sentences(8), fit().epochs(1))
        .expect("it trains");
    assert!(values(&history)[0].1[0].is_some(), "{history:?}");
}
