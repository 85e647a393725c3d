//! `use_ema` and `amsgrad` through whole runs, against the averages of the weights that a test computes from
//! the weights after each step.

use stratoscope_data::Dataset;
use stratoscope_models::{
    Adam, AdamW, BertForSequenceClassification, FitArgs, IntoOptimizer, SGD, memory_plan,
};
use stratoscope_strategy::{MirroredStrategy, ParameterServerStrategy, scope};

use crate::support::{
    assert_near, assert_near_weights, contradicted, cross_entropy, largest_difference, load,
    plain_args, sentences, tiny_bert, weights,
};

const BATCH: usize = 4;

fn in_order() -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(BATCH)
        .shuffle(false)
        .verbose(false)
}

fn compiled(optimizer: impl IntoOptimizer) -> BertForSequenceClassification {
    let model = load(&tiny_bert(0.0));
    let args = plain_args().loss(cross_entropy()).optimizer(optimizer);
    model.compile(args).expect("valid arguments");
    model
}

/// The weights after each step of a run over `data`, one batch a step.
fn after_each_step(optimizer: SGD, data: &Dataset) -> Vec<Vec<f32>> {
    let model = compiled(optimizer);
    let steps = data.len() / BATCH;
    (0..steps)
        .map(|step| {
            let batch = data.skip(step * BATCH).take(BATCH);
            model.fit(&batch, in_order()).expect("it trains");
            all(&model)
        })
        .collect()
}

fn all(model: &BertForSequenceClassification) -> Vec<f32> {
    weights(model).into_iter().flat_map(|(_, it)| it).collect()
}

/// Keras's average of these weights: it begins as the first of them.
fn average(weights: &[Vec<f32>], momentum: f64) -> Vec<f32> {
    let mut average: Vec<f64> = weights[0].iter().copied().map(f64::from).collect();
    for later in &weights[1..] {
        for (average, &weight) in average.iter_mut().zip(later) {
            *average = momentum * *average + (1.0 - momentum) * f64::from(weight);
        }
    }
    average.into_iter().map(|it| it as f32).collect()
}

#[test]
fn fit_leaves_the_average_of_the_weights() {
    let data = sentences(6 * BATCH);
    let weights = after_each_step(SGD::new(0.5), &data);
    let expected = average(&weights, 0.75);
    let model = compiled(SGD::new(0.5).use_ema(true).ema_momentum(0.75));
    let history = model.fit(&data, in_order()).expect("it trains");
    assert!(history.averaged_weights, "{history}");
    assert!(history.to_plain().contains("moving averages"), "{history}");
    assert!(largest_difference(&all(&model), &expected) < 1e-5);
    let last = weights.last().expect("six steps");
    assert!(
        largest_difference(last, &expected) > 1e-3,
        "training had moved on"
    );
    let plain = compiled(SGD::new(0.5));
    let history = plain.fit(&data, in_order()).expect("it trains");
    assert!(!history.averaged_weights && all(&plain) == *last);
}

/// Overwritten after steps 2 and 4, the weights go on from there.
#[test]
fn weights_are_overwritten_as_often_as_requested() {
    let data = sentences(5 * BATCH);
    let batch = |step: usize| data.skip(step * BATCH).take(BATCH);
    let ema = |momentum| SGD::new(0.5).use_ema(true).ema_momentum(momentum);
    // Momentum 1: after the first step the average stays. So steps 2 and 4 are undone, and so is the end.
    let first = compiled(SGD::new(0.5));
    first.fit(&batch(0), in_order()).expect("it trains");
    let model = compiled(ema(1.0).ema_overwrite_frequency(2));
    model.fit(&data, in_order()).expect("it trains");
    assert_eq!(all(&model), all(&first));
    // By hand nothing ends, so that only the steps that the optimizer names overwrite.
    let by_hand = compiled(ema(1.0).ema_overwrite_frequency(2));
    let step = |index| {
        let gradients = by_hand.gradients(&batch(index)).expect("a gradient");
        by_hand.apply(gradients).expect("a step");
        largest_difference(&all(&by_hand), &all(&first))
    };
    let moved: Vec<bool> = (0..4).map(|index| step(index) > 1e-5).collect();
    assert_eq!(moved, [false, false, true, false]);
}

/// A model that knows the validation data is taught the contrary: the first epoch is the best.
#[test]
fn the_best_epoch_wins_over_the_average() {
    let (data, known) = (sentences(12), contradicted(&sentences(12)));
    let model = compiled(AdamW::new(3e-3));
    model.fit(&known, in_order().epochs(80)).expect("it trains");
    let optimizer = AdamW::new(3e-3).use_ema(true).ema_momentum(0.5);
    let args = plain_args().loss(cross_entropy()).optimizer(optimizer);
    model.compile(args).expect("valid arguments");
    let args = in_order()
        .epochs(20)
        .validation_data(&known)
        .early_stopping(2);
    let history = model.fit(&data, args).expect("it trains");
    assert!(
        history.restored_best && !history.averaged_weights,
        "{history}"
    );
    assert_eq!((history.best_epoch, history.epochs.len()), (Some(0), 3));
    let loss = |epoch: usize| {
        let validation = history.epochs[epoch].validation.as_ref();
        validation.expect("validated").loss
    };
    assert!(loss(2) > 1.01 * loss(0), "{history}");
    let now = model
        .evaluate(&known, stratoscope_models::EvaluateArgs::new())
        .expect("it is compiled");
    assert_near(now.loss, loss(0));
}

/// Replicas that make the same updates have the same averages; servers have theirs.
#[test]
fn averages_are_those_of_one_device() {
    let data = sentences(4 * BATCH);
    let optimizer = || {
        // With so large an epsilon steps are proportional to gradients.
        let momentum = AdamW::new(1e-3).epsilon(0.1).ema_momentum(0.5);
        momentum.use_ema(true).amsgrad(true)
    };
    let alone = compiled(optimizer());
    alone.fit(&data, in_order()).expect("it trains");
    let mirrored = MirroredStrategy::logical(2).expect("two devices");
    let model = {
        let _scope = scope::enter(&mirrored).expect("no scope is active");
        compiled(optimizer())
    };
    let history = model.fit(&data, in_order()).expect("it trains");
    assert!(history.averaged_weights);
    assert_near_weights(&weights(&model), &weights(&alone));
    assert!(model.placement().expect("a report").copies_are_equal());
    drop((model, mirrored));
    let servers = ParameterServerStrategy::logical(2, 2).expect("four devices");
    let model = {
        let _scope = scope::enter(&servers).expect("no scope is active");
        compiled(SGD::new(0.5).use_ema(true).ema_momentum(0.5))
    };
    let history = model.fit(&data, in_order()).expect("it trains");
    assert!(
        history.averaged_weights && history.counters.pushes == 8,
        "{history}"
    );
}

#[test]
fn placement_and_plan_count_what_is_kept() {
    let model = compiled(Adam::new(1e-3).amsgrad(true).use_ema(true));
    let bytes = 4 * model.num_parameters() as u64;
    let plan = memory_plan(&model, 8, 16);
    let parts = ["weights", "gradients", "moments", "average"].map(|part| plan.of(part));
    assert_eq!(parts, [bytes, bytes, 3 * bytes, bytes]);
    let text = plan.to_plain();
    assert!(
        text.contains("Adam m, Adam v, largest v, per trained weight"),
        "{text}"
    );
    let names = |model: &BertForSequenceClassification| {
        let report = model.placement().expect("a report");
        let slots = report.slots.iter();
        let names: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
        (names, report.device_totals(0).slots)
    };
    let all = ["gradients", "Adam m", "Adam v", "largest v", "average"];
    assert_eq!(
        names(&model),
        (all.map(str::to_owned).to_vec(), vec![bytes; 5])
    );
    model.fit(&sentences(8), in_order()).expect("it trains");
    assert_eq!(
        names(&model),
        (all.map(str::to_owned).to_vec(), vec![bytes; 5])
    );
    let plan = memory_plan(&model, 8, 16);
    assert_eq!(plan.to_come(), plan.step(), "the rest is held");
    let plain = compiled(SGD::new(0.1).use_ema(true));
    assert_eq!(names(&plain).0, ["gradients", "average"]);
}

#[test]
fn replicas_that_step_alone_have_no_average() {
    let strategy = MirroredStrategy::logical(2).expect("two devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.0));
    let args = plain_args().optimizer(SGD::new(0.1).use_ema(true));
    let finding = model.compile(args.sync_every(4)).expect_err("two averages");
    assert_eq!(finding.code, "SC0103");
    assert!(
        finding.message.contains("sync_every"),
        "{}",
        finding.message
    );
}

/// AMSGrad through the model: with β₁ = 0 and β₂ = 0 the second moment is the last squared gradient, so
/// Adam's steps are ±rate, and AMSGrad's shrink where a gradient was larger before.
#[test]
fn amsgrad_divides_by_what_was_largest() {
    let model = |amsgrad| compiled(Adam::new(1e-3).beta_1(0.0).beta_2(0.0).amsgrad(amsgrad));
    let data = sentences(BATCH);
    let steps = |model: &BertForSequenceClassification| {
        let gradients = model.gradients(&data).expect("a gradient");
        model.apply(gradients.clone() * 1.0).expect("a step");
        let before = all(model);
        // The same gradient, a quarter as large.
        model.apply(gradients / 4.0).expect("a step");
        largest_difference(&before, &all(model))
    };
    assert!((steps(&model(false)) - 1e-3).abs() < 1e-5);
    assert!((steps(&model(true)) - 0.25e-3).abs() < 1e-5);
}
