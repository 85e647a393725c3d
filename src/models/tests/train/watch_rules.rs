//! What a run tells of itself: silent failures, each provoked, and silence where nothing is wrong.

use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::{LoadOptions, Mode, NamedParameter, named_parameters};
use stratoscope_data::{Batch, Dataset, Example, Label};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, BinaryCrossentropy, CategoricalCrossentropy, CompileArgs,
    CosineDecay, EvaluateArgs, ExponentialDecay, FitArgs, Gradients, IntoOptimizer, Model, ModelOf,
    Network, PolynomialDecay, SGD, accuracy, f1, half_precision, memory_plan, pin, warmup_linear,
};
use stratoscope_strategy::{MirroredStrategy, Origin, cpu, scope};

use crate::support::{
    self, IdFiles, assert_near, assert_near_weights, cross_entropy, fixtures, id_data, id_files,
    largest_difference, load, plain_args, sentences, tiny_bert, weights,
};

/// The codes that these tests are about: what other parts of `fit!` tell is not.
const OURS: &[&str] = &[
    "SC0110", "SC0302", "SC0303", "SC0304", "SC0501", "SC0502", "SC0503", "SC0506", "SC0507",
    "SC0508", "SC0509", "SC0510", "SC0511", "SC0512", "SC0513", "SC0514", "SC0517", "SC0601",
    "SC0602", "SC0203",
];

/// The notices while `work` runs.
fn heard<T>(work: impl FnOnce() -> T) -> (T, Vec<Diagnostic>) {
    support::heard(OURS, work)
}

fn codes(heard: &[Diagnostic]) -> Vec<&str> {
    heard.iter().map(|finding| finding.code.as_str()).collect()
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).verbose(false)
}

fn compiled(optimizer: impl IntoOptimizer) -> BertForSequenceClassification {
    let model = load(&tiny_bert(0.1));
    model
        .compile(plain_args().optimizer(optimizer))
        .expect("valid arguments");
    model
}

#[test]
fn the_recipe_is_not_interrupted() {
    let recipe = || AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0);
    let (data, dev) = (sentences(64), sentences(12));
    let (_, finding) = heard(|| {
        let strategy = MirroredStrategy::logical(2).expect("two logical devices");
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = compiled(recipe());
        let args = quiet().epochs(2).batch_size(32).validation_data(&dev);
        let history = model.fit(&data, args).expect("it trains");
        model.predict(["w12 w15"]).expect("an answer");
        assert!(
            history
                .executions
                .iter()
                .all(|record| record.gradient_norm.is_some_and(|norm| norm > 0.0))
        );
    });
    assert_eq!(codes(&finding), [] as [&str; 0], "{finding:?}");
}

#[test]
fn findings_about_an_optimizer_at_compile() {
    let check = |optimizer: &dyn Fn() -> Result<stratoscope_models::Optimizer>, codes_: &[&str]| {
        let (_, finding) = heard(|| compiled(optimizer().expect("valid")));
        assert_eq!(codes(&finding), codes_, "{finding:?}");
        finding
    };
    check(&|| AdamW::new(5e-5).into_optimizer(), &[]);
    check(&|| AdamW::new(9.9e-4).into_optimizer(), &[]);
    check(&|| SGD::new(0.1).into_optimizer(), &[]);
    let finding = check(&|| "adam".into_optimizer(), &["SC0501"]);
    assert!(finding[0].message.contains("20 to 50 times"), "{finding:?}");
    check(
        &|| AdamW::new(warmup_linear(2e-3, 0.1)).into_optimizer(),
        &["SC0501"],
    );
    check(&|| AdamW::new(1e-9).into_optimizer(), &["SC0501"]);
    check(
        &|| AdamW::new(5e-5).clipnorm(1.0).into_optimizer(),
        &["SC0508"],
    );
    let all = AdamW::new(5e-5).decay_all_parameters(true);
    let finding = check(&|| all.clone().into_optimizer(), &["SC0507"]);
    assert!(
        finding[0]
            .message
            .starts_with("weight decay 0.01 also applies to "),
        "{finding:?}"
    );
    let biases = AdamW::new(5e-5).exclude_from_weight_decay(["bias"]);
    check(&|| biases.clone().into_optimizer(), &["SC0507"]);
    let both = AdamW::new(5e-5).exclude_from_weight_decay(["bias", "LayerNorm"]);
    check(&|| both.clone().into_optimizer(), &[]);

    // A head alone may learn fast.
    let (_, finding) = heard(|| {
        let model = load(&tiny_bert(0.1));
        model.freeze("bert").expect("the body");
        model.compile(plain_args()).expect("valid arguments");
    });
    assert_eq!(codes(&finding), [] as [&str; 0]);
}

#[test]
fn a_schedule_is_laid_over_the_run() {
    let run = |schedule: stratoscope_models::Schedule| {
        let model = compiled(AdamW::new(schedule));
        let (_, finding) = heard(|| {
            model
                .fit(&sentences(16), quiet().epochs(3))
                .expect("it trains")
        });
        finding
            .into_iter()
            .map(|finding| (finding.code, finding.message))
            .collect::<Vec<_>>()
    };
    use stratoscope_models::IntoSchedule;
    // 12 optimizer steps.
    let staircase = ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true);
    let [(code, message)] = &run(staircase.into_schedule())[..] else {
        panic!("one warning")
    };
    assert_eq!(code, "SC0502");
    assert!(message.ends_with("3.000e-5 at all 12 steps"), "{message}");
    let rises = run(PolynomialDecay::new(2e-5, 11).into_schedule());
    assert_eq!(rises[0].0, "SC0502");
    assert!(rises[0].1.contains("rises"), "{rises:?}");
    let slow = run(CosineDecay::new(5e-5, 90).warmup_steps(100).into_schedule());
    assert_eq!(slow[0].0, "SC0503");
    assert_eq!(run(5e-5.into_schedule()), []);
}

#[test]
fn dropout_that_is_off_and_batches_that_do_not_divide() {
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let (_, finding) = heard(|| model.fit(&sentences(8), quiet()).expect("it trains"));
    assert_eq!(codes(&finding), ["SC0509"]);

    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = compiled(AdamW::new(5e-5));
    let fit = |rows, batch_size| {
        let args = quiet().batch_size(batch_size);
        let (_, finding) = heard(|| model.fit(&sentences(rows), args).expect("it trains"));
        finding
    };
    assert_eq!(codes(&fit(36, 18)), [] as [&str; 0]);
    let uneven = fit(23, 18);
    assert_eq!(codes(&uneven), ["SC0512"]);
    assert_eq!(
        uneven[0].message,
        "the last batch is divided 3 + 2 over the replicas: each counts by its number of examples"
    );
    let small = fit(32, 16);
    assert_eq!(codes(&small), ["SC0513"]);
    assert_eq!(
        small[0].message,
        "the batch of 16 is shared: each of 2 replicas gets 8"
    );
}

#[test]
fn frozen_variables_stay_and_are_reported() {
    let model = load(&tiny_bert(0.1));
    assert_eq!(
        model.freeze("brt").expect_err("no such variable").code,
        "SC0103"
    );
    let frozen = model.freeze("bert").expect("the body");
    model.compile(plain_args()).expect("valid arguments");
    let before = weights(&model);
    let (_, finding) = heard(|| model.fit(&sentences(8), quiet()).expect("the head trains"));
    assert_eq!(codes(&finding), [] as [&str; 0]);
    let mut same = 0;
    for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
        let moved = largest_difference(before, &after) > 0.0;
        assert_eq!(moved, name.starts_with("classifier"), "{name}");
        same += usize::from(!moved);
    }
    assert_eq!(same, frozen);

    model.unfreeze("bert.pooler").expect("a layer");
    let before = weights(&model);
    let (_, finding) = heard(|| model.fit(&sentences(8), quiet()).expect("it trains"));
    assert_eq!(codes(&finding), ["SC0110"]);
    let moved = |name: &str| {
        let after = weights(&model);
        let pair = before.iter().zip(&after).find(|(pair, _)| pair.0 == name);
        pair.is_some_and(|(before, after)| largest_difference(&before.1, &after.1) > 0.0)
    };
    assert!(moved("bert.pooler.dense.weight") && !moved("bert.embeddings.LayerNorm.bias"));

    model.freeze("").expect("everything");
    let finding = model
        .fit(&sentences(8), quiet())
        .expect_err("nothing to train");
    assert_eq!(finding.code, "SC0111", "{finding}");
    model
        .evaluate(&sentences(8), EvaluateArgs::new().verbose(false))
        .expect("evaluating needs no gradients");
}

#[test]
fn a_new_head_is_reported_until_it_has_learned() {
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let options = LoadOptions::new().num_labels(4).new_head();
    let model = BertForSequenceClassification::from_pretrained_with(path, &options);
    let model = model.expect("a new head");
    let predict = || heard(|| model.predict(["w12 w15"]).expect("an answer")).1;
    let finding = predict();
    assert_eq!(codes(&finding), ["SC0510"]);
    assert!(
        finding[0]
            .message
            .contains("is new: predictions are random"),
        "{finding:?}"
    );
    let args = plain_args().optimizer(AdamW::new(5e-5));
    model.compile(args).expect("valid arguments");
    model.fit(&sentences(8), quiet()).expect("it trains");
    assert_eq!(codes(&predict()), [] as [&str; 0]);
    // The head of the fixture itself comes from the checkpoint.
    let trained = load(&folder);
    let (_, finding) = heard(|| trained.predict(["w12"]).expect("an answer"));
    assert_eq!(codes(&finding), [] as [&str; 0]);
}

#[test]
fn one_answer_for_everything_is_reported_once() {
    let model = load(&tiny_bert(0.1));
    let args = plain_args().optimizer(SGD::new(0.5));
    model.compile(args).expect("valid arguments");
    // One text for all labels: nothing tells them apart, and most are of one class.
    let label = |row: usize| ["red", "red", "red", "green", "red", "blue"][row % 6];
    let data = Dataset::from_labelled((0..24).map(|row| ("w12 w15", label(row))));
    let fit = || model.fit(&data, quiet().epochs(3).validation_data(&data));
    let (history, finding) = heard(fit);
    let history = history.expect("it trains");
    let last = &history.epochs[2]
        .validation
        .as_ref()
        .expect("validated")
        .predictions;
    assert!(last.predictions.contains(&24), "{last:?}");
    assert_eq!(codes(&finding), ["SC0517"], "{finding:?}");
    assert!(
        finding[0]
            .message
            .starts_with("all 24 validation predictions are")
    );
}

/// Probabilities instead of logits, from large inputs: so gradients are large, too.
#[derive(Module, Debug)]
struct EndsInSoftmax {
    scores: Param<Tensor<2>>,
}

impl Network for EndsInSoftmax {
    type Files = IdFiles;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let rows = batch.ids.chunks(batch.seq).map(|row| 1e3 * row[0] as f32);
        let first: Vec<f32> = rows.collect();
        let first = Tensor::<1>::from_floats(first.as_slice(), device);
        let scores: Tensor<2> = first.reshape([batch.size(), 1]).matmul(self.scores.val());
        softmax(scores, 1)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(self)
    }
}

fn own_network(scores: [[f32; 3]; 1]) -> ModelOf<EndsInSoftmax> {
    let device = scope::device().expect("a device");
    let network = EndsInSoftmax {
        scores: Param::from_tensor(Tensor::from_floats(scores, &device)),
    };
    Model::with_files(network, id_files(), Origin::current()).expect("the device takes it")
}

fn ids(count: usize) -> Dataset {
    id_data(
        (0..count)
            .map(|row| (format!("{}:0 6:0", 5 + row), row % 3))
            .collect(),
    )
}

#[test]
fn probabilities_under_a_loss_of_logits() {
    let model = own_network([[5e-5, -5e-5, 1e-5]]);
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.1))
        .loss(cross_entropy());
    model.compile(args).expect("valid arguments");
    let (_, finding) = heard(|| model.fit(&ids(8), quiet().epochs(2)).expect("it trains"));
    assert_eq!(codes(&finding), ["SC0303"]);
}

#[test]
fn what_is_not_finite_is_named() {
    let compile = |model: &Model, rate| {
        let args = CompileArgs::new()
            .optimizer(SGD::new(rate))
            .loss(cross_entropy());
        model.compile(args).expect("valid arguments");
    };
    // A weight that was NaN before: the loss shows it, the weight is named.
    let model = own_network([[0.5, f32::NAN, 0.1]]);
    compile(&model, 0.1);
    let finding = model.fit(&ids(8), quiet()).expect_err("it is non-finite");
    assert_eq!(finding.code, "SC0505");
    assert_eq!(
        finding.message,
        "the loss is NaN at step 0; first in `scores`"
    );
    // A step that makes one infinite: loss and gradient were fine.
    let model = own_network([[5e-6, -5e-6, 1e-6]]);
    compile(&model, 3.4e38);
    let finding = model.fit(&ids(60), quiet()).expect_err("too large a step");
    assert_eq!(finding.code, "SC0505");
    assert!(finding.message.contains("weight is"), "{finding}");
    assert!(
        finding.message.ends_with("at step 1; first in `scores`"),
        "{finding}"
    );
    assert!(
        finding.labels[0].text.ends_with("after the update"),
        "{finding:?}"
    );
}

/// In a later step, whose weights are known to be finite as long as every change of them is.
#[test]
fn a_later_step_that_makes_weights_infinite_is_named() {
    let model = own_network([[5e-6, -5e-6, 1e-6]]);
    let args = CompileArgs::new()
        .optimizer(SGD::new(1e-6))
        .loss(cross_entropy());
    model.compile(args).expect("valid arguments");
    let run = model.start(&ids(120), quiet()).expect("it begins");
    run.step(2).expect("small steps");
    run.set_learning_rate(pin(3.4e38)).expect("a finite rate");
    let finding = run.step(1).expect_err("too large a step");
    assert_eq!(finding.code, "SC0505");
    assert!(finding.message.contains("weight is"), "{finding}");
    assert!(finding.message.contains("at step 3"), "{finding}");
}

#[test]
fn a_loop_by_hand_is_the_loop_of_fit() {
    let data = sentences(16);
    let model = || {
        let model = load(&tiny_bert(0.0));
        let args = plain_args().optimizer(SGD::new(0.5).global_clipnorm(0.01));
        model.compile(args).expect("valid arguments");
        model
    };
    let parts: Vec<Dataset> = (0..4).map(|part| data.skip(4 * part).take(4)).collect();
    let (fitted, by_hand) = (model(), model());
    let args = FitArgs::new().batch_size(16).shuffle(false).verbose(false);
    let history = fitted.fit(&data, args).expect("it trains");
    let ((), finding) = heard(|| {
        let mut sum = Gradients::zeros();
        for part in &parts {
            sum += by_hand.gradients(part).expect("a gradient");
        }
        let applied = by_hand.apply(sum / 4.0).expect("a step");
        let norm = history.executions[0].gradient_norm.expect("a step");
        assert_near(applied.norm, norm);
        assert!(applied.factor < 1.0 && applied.to_string().contains("clipped to 1.0000e-2"));
    });
    assert_eq!(codes(&finding), [] as [&str; 0]);
    assert_near_weights(&weights(&by_hand), &weights(&fitted));
}

/// The article's loop: the accumulator is made anew for every micro-batch.
#[test]
fn an_accumulator_that_is_reset_is_reported_by_its_effect() {
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().optimizer(SGD::new(1e-6)))
        .expect("valid arguments");
    let one = model.gradients(&sentences(4)).expect("a gradient");
    let times = |factor: f64| one.clone() * factor;
    let scale = |applied: Gradients| applied.norm() / one.norm();
    let mut sum = Gradients::zeros();
    for factor in [1.0, 10.0, 100.0, 1000.0] {
        sum += times(factor);
    }
    assert_near(scale(sum / 4.0), 277.75);
    let mut last = Gradients::zeros();
    for factor in [1.0, 10.0, 100.0, 1000.0] {
        last = times(factor);
    }
    assert_near(scale(last / 4.0), 250.0);
    model.apply(one).expect("a step");

    let apply = |keep: bool, divisor: f64| {
        let mut sum = Gradients::zeros();
        for part in 0..4 {
            let gradients = model.gradients(&sentences(8 + part)).expect("a gradient");
            sum = if keep { sum + gradients } else { gradients };
        }
        heard(|| model.apply(sum / divisor).expect("a step")).1
    };
    // Only looked at: no loop loses it.
    let looked = model.evaluation_gradients(&sentences(8));
    looked.expect("a gradient");
    assert_eq!(codes(&apply(true, 4.0)), [] as [&str; 0]);
    let lost = apply(false, 4.0);
    assert_eq!(codes(&lost), ["SC0506"]);
    assert_eq!(lost[0].message, "3 of 4 micro-batches were discarded");
    let undivided = apply(true, 1.0);
    assert_eq!(codes(&undivided), ["SC0506"]);
    assert!(
        undivided[0].message.ends_with("4 times too large"),
        "{undivided:?}"
    );

    let without = model
        .evaluation_gradients(&sentences(4))
        .expect("a gradient");
    let (_, finding) = heard(|| model.apply(without).expect("a step"));
    assert_eq!(codes(&finding), ["SC0509"]);
}

#[test]
fn a_loop_by_hand_that_does_not_use_the_strategy() {
    let look = |model: &BertForSequenceClassification, calls: usize| {
        let work = || (0..calls).for_each(|_| model.with_network(|_| ()));
        heard(work).1
    };
    let alone = compiled(AdamW::new(5e-5));
    assert_eq!(codes(&look(&alone, 8)), [] as [&str; 0], "one device");

    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = compiled(AdamW::new(5e-5));
    assert_eq!(codes(&look(&model, 3)), [] as [&str; 0], "no loop");
    // Every replica has its share of this.
    model.gradients(&sentences(4)).expect("a gradient");
    assert_eq!(codes(&look(&model, 3)), [] as [&str; 0], "counted anew");
    let messages = look(&model, 5);
    assert_eq!(codes(&messages), ["SC0203"]);
    assert_eq!(
        messages[0].message,
        "the loop runs on replica 0 alone: 1 other replica did nothing"
    );
}

#[test]
fn gradients_of_the_replicas_are_averaged() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = compiled(AdamW::new(5e-5));
    let apply = |parts: usize, divisor: f64| {
        let work = || {
            let mut sum = Gradients::zeros();
            for _ in 0..parts {
                sum += model.gradients(&sentences(8)).expect("a gradient");
            }
            model.apply(sum / divisor).expect("a step")
        };
        heard(work).1
    };
    assert_eq!(codes(&apply(2, 2.0)), [] as [&str; 0], "their mean");
    let summed = apply(2, 1.0);
    assert_eq!(codes(&summed), ["SC0514"]);
    assert_eq!(
        summed[0].message,
        "gradients are summed over 2 replicas and not divided: the step is 2 times too large"
    );
    assert_eq!(codes(&apply(3, 1.0)), ["SC0506"], "micro-batches");
}

#[test]
fn replicas_and_one_device_have_the_same_gradient() {
    let norm = |data: &Dataset| {
        let model = load(&tiny_bert(0.0));
        model
            .compile(plain_args().optimizer(SGD::new(0.1)))
            .expect("valid");
        let gradients = model.gradients(data).expect("a gradient");
        let applied = model.apply(gradients.clone()).expect("a step");
        let copies = model.placement().expect("readable").to_plain();
        assert!(!copies.contains("differ"), "{copies}");
        (gradients.norm(), gradients.loss(), applied.norm)
    };
    let data = sentences(5);
    let one = norm(&data);
    let strategy = MirroredStrategy::on([cpu(0), cpu(0)]);
    let strategy = strategy
        .or_else(|_| MirroredStrategy::logical(2))
        .expect("two devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let two = norm(&data);
    assert_near(two.0, one.0);
    assert_near(two.1, one.1);
    assert_near(one.2, one.0);
}

/// Two classes by one logit.
#[test]
fn a_binary_loss_on_one_output() {
    let folder = tiny_bert(0.0);
    for file in ["config.json", "model.safetensors"] {
        let source = fixtures().join("regression").join(file);
        std::fs::copy(source, folder.path().join(file)).expect("the fixture's file");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForSequenceClassification::from_pretrained(path, 1).expect("it loads");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(2e-3))
        .loss(BinaryCrossentropy { from_logits: true })
        .metrics([accuracy(), f1()]);
    model.compile(args).expect("one logit");
    let example = |row: usize| {
        let text = format!("w{} w{}", 10 + 40 * (row % 2), 11 + 40 * (row % 2));
        Example::new(text).with_label(Label::Value((row % 2) as f32))
    };
    let data = Dataset::from_examples((0..12).map(example), Vec::new(), "twelve rows");
    let history = model
        .fit(&data, quiet().epochs(30).batch_size(12))
        .expect("it trains");
    let last = history.epochs.last().expect("epochs");
    assert!(last.loss < history.epochs[0].loss, "{history}");
    let measured = model.evaluate(&data, EvaluateArgs::new().verbose(false));
    let measured = measured.expect("it is compiled");
    assert_eq!(measured.metrics[0].value, Some(1.0), "{history}");
    assert_eq!(measured.predictions.predictions, [6, 6]);
    let bad = Example::new("w10").with_label(Label::Value(2.0));
    let data = Dataset::from_examples([bad], Vec::new(), "one row");
    let finding = model.fit(&data, quiet()).expect_err("2 is no label");
    assert_eq!(finding.code, "SC0301", "{finding}");
}

#[test]
fn one_hot_rows_train_as_class_numbers_do() {
    let losses = |args: CompileArgs| {
        let model = load(&tiny_bert(0.0));
        model.compile(args).expect("valid arguments");
        let history = model
            .fit(&sentences(12), quiet().epochs(2))
            .expect("it trains");
        let losses: Vec<f64> = history
            .executions
            .iter()
            .map(|record| record.loss)
            .collect();
        losses
    };
    let sparse = losses(plain_args());
    let dense = losses(plain_args().loss(CategoricalCrossentropy { from_logits: true }));
    for (sparse, dense) in sparse.iter().zip(&dense) {
        assert_near(*sparse, *dense);
    }
    let smooth = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.2);
    assert_ne!(losses(plain_args().loss(smooth)), dense);
}

#[test]
fn the_plan_of_memory_is_made_of_shapes() {
    let model = load(&tiny_bert(0.1));
    let bytes = 4 * model.num_parameters() as u64;
    let plan = memory_plan(&model, 8, 16);
    let parts = ["weights", "gradients", "moments"].map(|part| plan.of(part));
    assert_eq!(parts, [bytes, bytes, 2 * bytes]);
    let activations = plan.of("activations");
    assert_eq!(
        memory_plan(&model, 16, 16).of("activations"),
        2 * activations
    );
    // On the CPU no probabilities are kept, which would grow with the square of the length.
    assert_eq!(
        memory_plan(&model, 8, 32).of("activations"),
        2 * activations
    );
    assert!(plan.fits() || plan.free.is_none(), "{plan}");
    model.freeze("bert").expect("the body");
    model
        .compile(plain_args().optimizer(SGD::new(0.1)))
        .expect("valid arguments");
    let plan = memory_plan(&model, 8, 16);
    assert_eq!(plan.of("moments"), 0);
    assert!(plan.of("gradients") < bytes / 10, "{plan}");
    // Nobody has so much.
    let huge = memory_plan(&model, 1_000_000_000, 64);
    assert!(huge.free.is_none() || !huge.fits(), "{huge}");
    assert!(
        huge.largest_batch()
            .is_none_or(|batch| batch < 1_000_000_000)
    );
}

#[test]
fn half_precision_counts_what_would_be_lost() {
    let model = load(&tiny_bert(0.1));
    model
        .compile(plain_args().optimizer(AdamW::new(5e-5)))
        .expect("valid arguments");
    let gradients = model.gradients(&sentences(8)).expect("a gradient");
    let (found, _) = heard(|| half_precision(&gradients).expect("a note at most"));
    assert!(
        found.elements > 1000 && found.zero_in_bf16 <= found.zero_in_f16,
        "{found}"
    );
    let tiny = gradients / 1e7;
    let (found, finding) = heard(|| half_precision(&tiny).expect("a note at most"));
    assert!(found.share(found.zero_in_f16) > 0.5, "{found}");
    assert!(found.zero_when_scaled < found.zero_in_f16);
    assert_eq!(codes(&finding), ["SC0511"]);
}
