//! The learning-rate finder: its ramp, that the model keeps its bits, where it stops, and what is refused.

use stratoscope_data::Dataset;
use stratoscope_models::report::rate_curve::RampEnd;
use stratoscope_models::{
    BertForSequenceClassification, CompileArgs, FitArgs, RateRange, SGD, warmup_linear,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, scope};

use crate::support::{cross_entropy, load, plain_args, sentences, tiny_bert};

fn bits(model: &BertForSequenceClassification) -> Vec<(String, Vec<u32>)> {
    let values = model.variables().into_iter();
    let each = values.map(|(name, data)| (name, data.iter::<f32>().map(f32::to_bits).collect()));
    each.collect()
}

fn losses(model: &BertForSequenceClassification, data: &Dataset) -> Vec<u64> {
    let args = FitArgs::new().batch_size(8).seed(2).verbose(false);
    let history = model.fit(data, args).expect("it trains");
    history
        .steps
        .iter()
        .map(|step| step.loss.to_bits())
        .collect()
}

#[test]
fn the_rates_grow_and_the_model_keeps_its_bits() {
    let data = sentences(40);
    let untouched = load(&tiny_bert(0.1));
    let model = load(&tiny_bert(0.1));
    for model in [&untouched, &model] {
        model.compile(plain_args()).expect("valid arguments");
        losses(model, &data);
    }
    let before = bits(&model);
    let range = RateRange::new()
        .start(1e-6)
        .end(1e-2)
        .steps(21)
        .batch_size(8)
        .seed(5);
    let curve = model
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    assert_eq!((curve.points.len(), curve.end), (21, RampEnd::Complete));
    for (step, point) in curve.points.iter().enumerate() {
        let expected = 1e-6 * 1e4_f64.powf(step as f64 / 20.0);
        assert!(
            (point.rate / expected - 1.0).abs() < 1e-9,
            "{point:?} {expected}"
        );
    }
    assert!(curve.optimizer.starts_with("AdamW::new(1e-3)"), "{curve}");
    assert_eq!(bits(&model), before);
    // The next run is that of a model for which nobody looked.
    assert_eq!(losses(&model, &data), losses(&untouched, &data));
    assert_eq!(bits(&model), bits(&untouched));
    let again = model
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    let other = untouched
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    assert_eq!(again, other);
    assert_ne!(again, curve, "from other weights");
}

/// The steps are those of a run with the schedule.
#[test]
fn the_losses_are_those_of_training_with_the_ramp() {
    let data = sentences(64);
    let model = load(&tiny_bert(0.0));
    let args = || CompileArgs::new().loss(cross_entropy());
    model
        .compile(args().optimizer(SGD::new(warmup_linear(0.1, 0.2))))
        .expect("valid");
    let range = RateRange::new()
        .start(0.01)
        .end(0.16)
        .steps(10)
        .batch_size(8);
    let curve = model
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    let run = model
        .start(&data, FitArgs::new().batch_size(8).epochs(2).verbose(false))
        .expect("a run");
    for point in &curve.points {
        run.set_learning_rate(point.rate).expect("a rate");
        run.step(1).expect("a step");
    }
    let history = run.history().expect("a record");
    for (step, point) in history.steps.iter().zip(&curve.points) {
        assert!((step.loss - point.loss).abs() < 1e-6, "{step:?} {point:?}");
    }
    let mirrored = MirroredStrategy::logical(2).expect("two").strategy();
    let model = {
        let _scope = scope::enter(&mirrored).expect("a scope");
        let model = load(&tiny_bert(0.0));
        model
            .compile(args().optimizer(SGD::new(0.1)))
            .expect("valid");
        model
    };
    let of_two = model
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    for (one, two) in curve.points.iter().zip(&of_two.points) {
        assert!((one.loss - two.loss).abs() < 1e-4, "{one:?} {two:?}");
    }
}

#[test]
fn a_ramp_that_diverges_ends_early() {
    let data = sentences(48);
    let model = load(&tiny_bert(0.0));
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(cross_entropy());
    model.compile(args).expect("valid arguments");
    let range = RateRange::new()
        .start(1e-3)
        .end(1e6)
        .steps(60)
        .batch_size(8);
    let curve = model
        .find_learning_rate_with(&data, &range)
        .expect("a curve");
    assert_ne!(curve.end, RampEnd::Complete, "{curve}");
    assert!(curve.points.len() < 60);
    let rate = curve.suggestion().expect("the loss has fallen");
    assert!((1e-3..1.0).contains(&rate), "{curve}");
    assert!(curve.to_string().contains("suggested"), "{curve}");
}

#[test]
fn what_is_refused_names_the_argument() {
    let data = sentences(12);
    let model = load(&tiny_bert(0.0));
    let problem = model
        .find_learning_rate(&data, 4)
        .expect_err("not compiled");
    assert_eq!(problem.code, "SC0112");
    model.compile(plain_args()).expect("valid arguments");
    let range = RateRange::new;
    for (range, argument) in [
        (range().start(0.0), "start"),
        (range().start(f64::NAN), "start"),
        (range().start(1e-3).end(1e-4), "end"),
        (range().end(f64::INFINITY), "end"),
        (range().steps(3), "steps"),
        (range().steps(1_000_000), "steps"),
        (range().batch_size(0), "batch_size"),
        (range().seed(-1), "seed"),
    ] {
        let problem = model
            .find_learning_rate_with(&data, &range)
            .expect_err("refused");
        let text = format!("{problem} {problem:?}");
        assert!(
            problem.code == "SC0103" && text.contains(argument),
            "{text}"
        );
    }
    let problem = model
        .find_learning_rate(&data.take(0), 4)
        .expect_err("no rows");
    assert_eq!(problem.code, "SC0914");
    let run = model
        .start(&data, FitArgs::new().verbose(false))
        .expect("a run");
    let problem = model.find_learning_rate(&data, 4).expect_err("in use");
    assert_eq!(problem.code, "SC0121");
    drop(run);
}
