//! Keras's usual losses and metrics through whole runs, beside what the answers say by definition, under every
//! kind of strategy.

use stratoscope_data::{Dataset, Example, Label, make_classification, make_regression};
use stratoscope_models::{
    Adam, BinaryCrossentropy, CompileArgs, Dense, EarlyStopping, EvaluateArgs, Evaluation, FitArgs,
    Hinge, Huber, IntoLoss, KlDivergence, LogCosh, MeanAbsoluteError, Metric, SGD, Sequential,
    SquaredHinge, accuracy, auc, keras_auc, mae, mse, precision, recall, rmse, top_k_accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, cpu, scope,
};

use crate::support::{assert_near, cross_entropy};

fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(12)
        .batch_size(8)
        .seed(2)
        .verbose(false)
}

fn evaluate() -> EvaluateArgs {
    EvaluateArgs::new().batch_size(7).verbose(false)
}

/// Rows of four numbers to `units` outputs.
fn compiled<const N: usize>(
    units: usize,
    activation: &str,
    loss: impl IntoLoss,
    metrics: [Metric; N],
) -> Sequential {
    let layers = [
        Dense(8).activation("tanh").seed(1),
        Dense(units).activation(activation).seed(2),
    ];
    let model = Sequential(layers).expect("a valid model");
    let args = CompileArgs::new().optimizer(SGD::new(0.05)).loss(loss);
    model.compile(args.metrics(metrics)).expect("it agrees");
    model
}

/// What `measure` says under each strategy must be what it says on one device, but for rounding.
#[track_caller]
fn everywhere(measure: impl Fn() -> Evaluation) -> Evaluation {
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let alone = {
        let _scope = scope::enter(&one).expect("no scope is active");
        measure()
    };
    let strategies = [
        MirroredStrategy::logical(3)
            .expect("logical devices")
            .strategy(),
        CentralStorageStrategy::logical(2)
            .expect("logical devices")
            .strategy(),
        ParameterServerStrategy::logical(2, 2)
            .expect("logical devices")
            .synchronous()
            .strategy(),
    ];
    for strategy in &strategies {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let found = measure();
        assert_near(found.loss, alone.loss);
        for (found, expected) in found.metrics.iter().zip(&alone.metrics) {
            assert_eq!(found.name, expected.name);
            let values = [found.value, expected.value].map(|it| it.expect("defined"));
            assert_near(values[0], values[1]);
        }
    }
    alone
}

#[track_caller]
fn value(evaluation: &Evaluation, name: &str) -> f64 {
    evaluation.metric(name).expect("it was asked for")
}

#[test]
fn losses_of_numbers_are_their_definitions_of_the_answers() {
    let data = make_regression(40, 4, 0).expect("numbers");
    type Definition = fn(f64) -> f64;
    let huber: Definition = |error| match error.abs() {
        size if size <= 0.5 => 0.5 * size * size,
        size => 0.5 * size - 0.125,
    };
    let losses: [(stratoscope_models::Loss, Definition); 3] = [
        (MeanAbsoluteError.into_loss().expect("a loss"), f64::abs),
        (Huber { delta: 0.5 }.into_loss().expect("a loss"), huber),
        (LogCosh.into_loss().expect("a loss"), |error| {
            error.cosh().ln()
        }),
    ];
    for (loss, definition) in losses {
        let found = everywhere(|| {
            let model = compiled(1, "linear", loss, [mae(), mse(), rmse()]);
            let history = model.fit(&data, fit()).expect("it trains");
            assert!(
                history.epochs[11].loss < history.epochs[0].loss,
                "{history}"
            );
            let answers = model.predict(data.clone()).expect("answers").rows;
            let errors = answers.iter().zip(&data.examples).map(|(row, example)| {
                let Some(Label::Value(label)) = example.label else {
                    unreachable!("labels are numbers");
                };
                row.score - f64::from(label)
            });
            let errors: Vec<f64> = errors.collect();
            let mean = |of: &dyn Fn(f64) -> f64| {
                errors.iter().map(|&error| of(error)).sum::<f64>() / errors.len() as f64
            };
            let found = model.evaluate(&data, evaluate()).expect("it is compiled");
            assert_near(found.loss, mean(&definition));
            assert_near(value(&found, "mae"), mean(&f64::abs));
            assert_near(value(&found, "mse"), mean(&|error| error * error));
            assert_near(value(&found, "rmse"), mean(&|error| error * error).sqrt());
            found
        });
        assert_eq!(found.examples, 40, "{loss}");
    }
}

/// By pairs of a 0 and a 1, as Mann and Whitney count them, of what stands for a score.
fn area(answers: &[(f64, bool)], of_score: fn(f64) -> f64) -> f64 {
    let of = |class: bool| answers.iter().filter(move |(_, label)| *label == class);
    let pairs = of(true).flat_map(|(one, _)| of(false).map(move |(zero, _)| (*one, *zero)));
    let (mut sum, mut count) = (0.0, 0);
    for (one, zero) in pairs {
        count += 1;
        sum += match of_score(one).total_cmp(&of_score(zero)) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    sum / f64::from(count)
}

#[test]
fn two_classes_are_measured_by_what_was_answered() {
    let data = make_classification(60, 4, 2, 3).expect("two classes");
    let metrics = || [accuracy(), precision(), recall(), auc(), keras_auc(), mae()];
    let logits = BinaryCrossentropy { from_logits: true };
    let shares = BinaryCrossentropy { from_logits: false };
    for (activation, loss) in [("linear", logits), ("sigmoid", shares)] {
        everywhere(|| {
            let model = compiled(1, activation, loss, metrics());
            // Few steps, so that some answers are wrong.
            model.fit(&data, fit().epochs(2)).expect("it trains");
            let answers = model.predict(data.clone()).expect("answers").rows;
            let answers: Vec<(f64, bool)> = (answers.iter().zip(&data.examples))
                .map(|(row, example)| (row.probabilities[1], example.class() == Some(1)))
                .collect();
            let count = |test: &dyn Fn(f64, bool) -> bool| {
                answers
                    .iter()
                    .filter(|(it, label)| test(*it, *label))
                    .count() as f64
            };
            let right = count(&|it, label| label && it > 0.5);
            let found = model.evaluate(&data, evaluate()).expect("it is compiled");
            assert_near(value(&found, "precision"), right / count(&|it, _| it > 0.5));
            assert_near(value(&found, "recall"), right / count(&|_, label| label));
            let off: f64 = answers
                .iter()
                .map(|(it, label)| (it - f64::from(u8::from(*label))).abs())
                .sum();
            assert_near(value(&found, "mae"), off / 60.0);
            assert_near(value(&found, "auc"), area(&answers, |score| score));
            assert!(value(&found, "auc") < 1.0, "{found}");
            // Scores that are 1/199 apart are on different sides of some threshold. One on a threshold may fall to
            // either side of it: one of 30 × 30 pairs.
            let by_thresholds = area(&answers, |score| (score * 199.0).ceil());
            assert!((value(&found, "keras_auc") - by_thresholds).abs() < 2.0 / 900.0);
            found
        });
    }
}

#[test]
fn a_hinge_takes_classes_and_signs() {
    let classes = make_classification(60, 4, 2, 3).expect("two classes");
    let signs = classes.map(|example| {
        let sign = if example.class() == Some(1) {
            1.0
        } else {
            -1.0
        };
        example.with_label(Label::Value(sign))
    });
    let signs = Dataset {
        label_names: Vec::new(),
        ..signs
    };
    let train = |loss: stratoscope_models::Loss, data: &Dataset| {
        let model = compiled(1, "linear", loss, [accuracy(), auc(), mse()]);
        let history = model.fit(data, fit()).expect("it trains");
        let found = model.evaluate(data, evaluate()).expect("compiled");
        assert!(value(&found, "accuracy") > 0.8);
        // The probability of class 1 is 1 / (1 + e⁻ˣ) of the margin x.
        let margins = model.predict(data.clone()).expect("answers").rows;
        let squares = margins.iter().zip(&data.examples).map(|(row, example)| {
            let label = match example.label {
                Some(Label::Value(label)) => f64::from(label),
                _ => example.class().expect("a class") as f64,
            };
            let one = row.probabilities[1];
            ((one / (1.0 - one)).ln() - label).powi(2)
        });
        let expected = squares.sum::<f64>() / data.len() as f64;
        let mse = value(&found, "mse");
        assert!((mse - expected).abs() < 1e-3 * expected, "{mse} {expected}");
        let answers = model.predict(data.take(20)).expect("answers");
        let right = answers.rows.iter().zip(&classes.examples);
        let right = right.filter(|(row, example)| row.class == example.class());
        assert!(right.count() > 15, "{answers}");
        history.epochs.iter().map(|it| it.loss).collect::<Vec<_>>()
    };
    for loss in [
        Hinge.into_loss().expect("a loss"),
        SquaredHinge.into_loss().expect("a loss"),
    ] {
        assert_eq!(train(loss, &classes), train(loss, &signs), "{loss}");
    }
    let bad = [Example::new("").with_label(Label::Value(-2.0))];
    let bad = classes.take(3).map(|example| Example {
        label: bad[0].label,
        ..example
    });
    let model = compiled(1, "linear", Hinge, []);
    assert_eq!(model.fit(&bad, fit()).expect_err("no sign").code, "SC0301");
    let head = [Dense(3).input_shape((4,))];
    let head = Sequential(head).expect("a valid model");
    let args = CompileArgs::new().optimizer(Adam::new(0.01)).loss(Hinge);
    let finding = head.compile(args).expect_err("three outputs");
    assert_eq!(finding.code, "SC0306");
    assert!(
        finding.message.starts_with("`Hinge` needs one logit"),
        "{finding}"
    );
}

/// Of one-hot labels the divergence is the cross-entropy, but for what Keras's clamping adds.
#[test]
fn a_divergence_trains_as_the_cross_entropy_does() {
    let data = make_classification(60, 4, 3, 1).expect("three classes");
    let metrics = || [accuracy(), top_k_accuracy(1), top_k_accuracy(2)];
    let entropy = everywhere(|| {
        let model = compiled(3, "linear", cross_entropy(), metrics());
        model.fit(&data, fit()).expect("it trains");
        model.evaluate(&data, evaluate()).expect("it is compiled")
    });
    let logits = compiled(3, "linear", KlDivergence { from_logits: true }, metrics());
    let shares = compiled(3, "softmax", KlDivergence { from_logits: false }, metrics());
    for model in [logits, shares] {
        model.fit(&data, fit()).expect("it trains");
        let found = model.evaluate(&data, evaluate()).expect("it is compiled");
        assert!(
            (found.loss - entropy.loss).abs() < 1e-4 * entropy.loss,
            "{found}"
        );
    }
    let accuracies = ["accuracy", "top_1_accuracy", "top_2_accuracy"];
    let [all, first, two] = accuracies.map(|name| value(&entropy, name));
    assert!(all == first && first < two, "{entropy}");
}

/// A lower error is better, so that patience does not count epochs that make it smaller.
#[test]
fn an_error_is_better_when_it_is_lower() {
    let data = make_regression(40, 4, 0).expect("numbers");
    let model = compiled(1, "linear", "mse", [rmse()]);
    let stopping = EarlyStopping::new().monitor("val_rmse").patience(3);
    let args = fit().validation_data(&data).early_stopping(stopping);
    let history = model.fit(&data, args).expect("it trains");
    let errors: Vec<f64> = history
        .epochs
        .iter()
        .map(|epoch| value(epoch.validation.as_ref().expect("validated"), "rmse"))
        .collect();
    // Were a higher one better, the first epoch would be the best, and the fourth the last.
    assert!(errors.len() > 4 && errors[4] < 0.9 * errors[0], "{history}");
    let best = history.best_epoch.expect("it was validated") as usize;
    assert!(
        errors.iter().all(|&error| error >= errors[best]),
        "{history}"
    );
}
