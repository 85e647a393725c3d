//! Looking into a run: each number against one that was computed in another way, and a run that was looked at against
//! one that was not.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset, Example, Label, make_classification, make_regression};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, BinaryCrossentropy, CompileArgs, Dense, EvaluateArgs,
    FitArgs, MeanSquaredError, Model, ModelOf, Network, Outputs, Run, SGD, Sequential, accuracy,
    features, set_global_policy, tap,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, Origin, ParameterServerStrategy, scope,
};

use super::support::{assert_near, cross_entropy, load, plain_args, sentences, tiny_bert, weights};

fn args() -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(8)
        .epochs(2)
        .shuffle(false)
        .verbose(false)
}

fn bert(dropout: f64) -> BertForSequenceClassification {
    load(&tiny_bert(dropout))
}

/// A run of the tiny BERT on 24 sentences, 3 steps an epoch.
fn run(dropout: f64, compile: CompileArgs) -> (BertForSequenceClassification, Run) {
    let model = bert(dropout);
    model.compile(compile).expect("valid settings");
    let run = model.start(&sentences(24), args()).expect("good data");
    (model, run)
}

#[test]
fn gradients_are_those_that_a_loop_by_hand_computes() {
    let (model, run) = run(0.1, plain_args());
    // The masks of a loop by hand are those of seed 0 and its first batch.
    let by_hand = model.gradients(&sentences(24).take(8)).expect("good data");
    let found = run.gradients().expect("no device fails");
    assert_eq!(found.len(), by_hand.norms().len());
    for (name, norm) in by_hand.norms() {
        assert_near(found[&*name].norm, norm);
        assert_eq!(found[&*name].non_finite(), 0);
    }
    assert_near(found.total().norm, by_hand.norm());
    assert_eq!(found.title, "gradients of the coming step 1");
    // A part of the network has the norm over its variables.
    let layer: f64 = found
        .iter()
        .filter(|row| row.name.contains("encoder.layer.1."))
        .map(|row| row.norm.powi(2))
        .sum();
    assert_near(found["encoder.layer.1"].norm, layer.sqrt());
    // And the step records the same norm.
    run.step(1).expect("a step");
    let report = run.report().expect("it is free");
    let recorded = report.recent.last().expect("a step").gradient_norm;
    assert_near(recorded, found.total().norm);
}

#[test]
fn gradients_are_the_slopes_of_the_loss() {
    // A model of one weight and one bias, whose gradient is worked out by hand.
    let model = Sequential([Dense(1).input_shape(1)]).expect("valid");
    model
        .compile(
            CompileArgs::new()
                .optimizer(SGD::new(0.5))
                .loss(MeanSquaredError),
        )
        .expect("valid");
    let data = Dataset::from_features([[1.0_f32], [2.0], [3.0]]).expect("rows");
    let data = data.map(|example| {
        let x = example.features[0];
        example.with_label(Label::Value(2.0 * x))
    });
    let run = model.start(&data, args()).expect("good data");
    let weight = f64::from(
        weights(&model)
            .iter()
            .find(|(name, _)| name.contains("weight"))
            .expect("one")
            .1[0],
    );
    // loss = mean (w·x − 2x)², so ∂/∂w = mean 2x(w·x − 2x) and ∂/∂b = mean 2(w·x − 2x), with b = 0.
    let slope = |of: fn(f64) -> f64| {
        [1.0, 2.0, 3.0]
            .map(|x| 2.0 * of(x) * (weight - 2.0) * x)
            .iter()
            .sum::<f64>()
            / 3.0
    };
    let found = run.gradients().expect("no device fails");
    assert_near(found["dense.weight"].min, slope(|x| x));
    assert_near(found["dense.bias"].max, slope(|_| 1.0));
    let updates = run.updates().expect("no device fails");
    assert_near(updates["dense.weight"].mean, -0.5 * slope(|x| x));
    assert_near(
        updates["dense.weight"].ratio().expect("has weights"),
        (0.5 * slope(|x| x) / weight).abs(),
    );
    let batch = run.batch().expect("no device fails");
    assert_eq!(batch.len(), 3);
    for (example, x) in batch.examples.iter().zip([1.0, 2.0, 3.0]) {
        assert_near(example.loss, ((weight - 2.0) * x).powi(2));
        assert_eq!((example.class, example.target), (None, Some(2.0 * x)));
        assert_eq!(example.features, [x as f32]);
        assert!(example.probabilities.is_empty() && example.probability().is_none());
    }
    let outputs = run.activations("*").expect("a layer");
    assert_near(outputs["dense"].max, (3.0 * weight).max(weight));
    assert_near(outputs["outputs"].min, (3.0 * weight).min(weight));
    assert!(run.data_map().expect("it is free").examples.is_empty());
}

#[test]
fn updates_are_what_the_step_adds() {
    let check = |compile: CompileArgs| {
        let (model, run) = run(0.1, compile);
        for _ in 0..3 {
            let before = weights(&model);
            let updates = run.updates().expect("no device fails");
            run.step(1).expect("a step");
            for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
                let found = &updates[&**name];
                let added: Vec<f32> = after
                    .iter()
                    .zip(before)
                    .map(|(after, before)| after - before)
                    .collect();
                let largest = added.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                assert_eq!(found.max, f64::from(largest), "{name}");
                let norm = added
                    .iter()
                    .map(|x| f64::from(*x).powi(2))
                    .sum::<f64>()
                    .sqrt();
                assert_near(found.norm, norm);
            }
        }
    };
    check(plain_args().optimizer(AdamW::new(1e-2).global_clipnorm(0.1)));
    check(plain_args().optimizer(SGD::new(0.1).momentum(0.9)));
}

#[test]
fn the_batch_has_the_loss_that_training_sees() {
    let (_model, run) = run(0.1, plain_args().gradient_accumulation_steps(2));
    for expected in [16, 8] {
        let batch = run.batch().expect("no device fails");
        assert_eq!(batch.len(), expected);
        run.step(1).expect("a step");
        let history = run.history().expect("it is free");
        assert_near(batch.loss, history.steps.last().expect("a step").loss);
    }
    run.until(1).expect("nothing to do");
    let (_model, run) = self::run(0.0, plain_args());
    let batch = run.batch().expect("no device fails");
    let first = &batch.examples[0];
    assert_eq!((first.row, first.label.as_deref()), (0, Some("red")));
    assert_eq!(first.pieces[0].text, "[CLS]");
    assert!(
        first.text.starts_with('w') && !first.text.contains("[CLS]"),
        "{}",
        first.text
    );
    assert!((first.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    // −ln p(label)
    assert_near(first.loss, -first.probability().expect("has a label").ln());
    // All are padded to the longest.
    let lengths: Vec<usize> = batch.examples.iter().map(|it| it.mask().len()).collect();
    assert!(lengths.iter().all(|it| *it == lengths[0]) && first.mask().contains(&0));
    assert!(batch.to_html().contains("w1") && batch.to_plain().contains("[CLS]"));
}

/// What a run ends on.
fn ended(
    model: &BertForSequenceClassification,
    compile: CompileArgs,
    looks: bool,
) -> (Vec<(String, Vec<f32>)>, Vec<u64>) {
    model.compile(compile).expect("valid settings");
    let run = model
        .start(&sentences(23), args().shuffle(true))
        .expect("good data");
    for step in 0.. {
        if looks {
            run.batch().expect("a batch");
            run.gradients().expect("gradients");
            run.updates().expect("updates");
            run.weights().expect("weights");
            run.activations("*").expect("activations");
            run.attention(0, 0, 0).expect("attention");
            run.worst(2).expect("examples");
            run.data_map().expect("a map");
        }
        let stop = run.step(1).expect("a step");
        if run.report().expect("free").position.step == run.report().expect("free").position.steps
            || step > 20
        {
            drop(stop);
            break;
        }
    }
    let history = run.finish().expect("it ends");
    let losses = history
        .steps
        .iter()
        .map(|step| step.loss.to_bits())
        .collect();
    (weights(model), losses)
}

#[test]
fn looking_changes_no_bit_of_what_follows() {
    let check = |strategy: Option<stratoscope_strategy::Strategy>,
                 compile: &dyn Fn() -> CompileArgs| {
        let placed = || match &strategy {
            None => bert(0.1),
            Some(strategy) => {
                let _scope = scope::enter(strategy).expect("no scope is open");
                bert(0.1)
            }
        };
        let (looked, unseen) = (placed(), placed());
        let found = ended(&looked, compile(), true);
        assert_eq!(found, ended(&unseen, compile(), false));
        let totals = |model: &BertForSequenceClassification| {
            let report = model.placement().expect("it can be read");
            report
                .to_plain()
                .lines()
                .filter(|line| line.contains("all-reduce") || line.contains("push"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(totals(&looked).len(), totals(&unseen).len());
    };
    let mirrored = || MirroredStrategy::logical(2).expect("devices").strategy();
    check(None, &plain_args);
    check(None, &|| {
        plain_args()
            .gradient_accumulation_steps(2)
            .optimizer(AdamW::new(1e-3).use_ema(true))
    });
    check(Some(mirrored()), &plain_args);
    check(Some(mirrored()), &|| plain_args().sync_every(2));
    check(
        Some(
            CentralStorageStrategy::logical(2)
                .expect("devices")
                .strategy(),
        ),
        &plain_args,
    );
    check(
        Some(
            ParameterServerStrategy::logical(2, 2)
                .expect("devices")
                .strategy(),
        ),
        &plain_args,
    );
}

#[test]
fn replicas_have_columns_where_they_differ() {
    let strategy = MirroredStrategy::logical(2).expect("devices");
    let model = {
        let _scope = scope::enter(&strategy).expect("no scope is open");
        bert(0.0)
    };
    model.compile(plain_args()).expect("valid");
    let run = model.start(&sentences(16), args()).expect("good data");
    let gradients = run.gradients().expect("no device fails");
    let own: Vec<f64> = gradients
        .total()
        .by_replica
        .iter()
        .map(|it| it.norm)
        .collect();
    let half = |skip: usize| {
        model
            .gradients(&sentences(16).skip(skip).take(4))
            .expect("good data")
            .norm()
    };
    // Each replica has one half of the batch of 8: the halves computed by both together.
    assert_eq!(own.len(), 2);
    assert_near(own[0], half(0));
    assert_near(own[1], half(4));
    assert!(
        run.weights().expect("free").total().by_replica.is_empty(),
        "copies are equal"
    );
    drop(run);
    model.compile(plain_args().sync_every(3)).expect("valid");
    let run = model.start(&sentences(16), args()).expect("good data");
    run.step(1).expect("a step");
    let weights = run.weights().expect("free");
    assert_eq!(weights.total().by_replica.len(), 2);
    let row = &weights["classifier.weight"];
    assert_ne!(
        row.by_replica[0].norm.to_bits(),
        row.by_replica[1].norm.to_bits()
    );
    assert!(run.updates().expect("updates").to_html().contains("cpu:1"));
}

#[test]
fn activations_are_found_by_pattern() {
    let (_model, run) = run(0.1, plain_args());
    let all = run.activations("*").expect("activations");
    let names = all.names();
    for name in [
        "bert.embeddings",
        "bert.encoder.layer.0.attention.self.query",
        "bert.encoder.layer.1.attention.self.probabilities",
        "bert.encoder.layer.1.intermediate",
        "bert.encoder.layer.1.output",
        "bert.pooler",
        "classifier",
        "outputs",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let of_one = run.activations("encoder.layer.1.*").expect("activations");
    assert!(
        of_one
            .names()
            .iter()
            .all(|name| name.starts_with("bert.encoder.layer.1."))
    );
    assert!(of_one.len() > 5, "{of_one}");
    // A probability is one of a row that adds up to 1: the mean is 1 / positions.
    let row = &all["layer.0.attention.self.probabilities"];
    assert_near(row.mean, 1.0 / row.shape[3] as f64);
    assert!(row.min >= 0.0 && row.max <= 1.0);
    // The logits are the outputs.
    assert_eq!(all["classifier"].norm, all["outputs"].norm);
    let problem = run
        .activations("encoder.layer.7.*")
        .expect_err("there is no such layer");
    assert_eq!(problem.code, "SC0105");
    assert!(
        format!("{problem:?}").contains("bert.embeddings"),
        "{problem:?}"
    );
}

#[test]
fn attention_adds_up_to_one_and_leaves_padding_out() {
    let (_model, run) = run(0.1, plain_args());
    let batch = run.batch().expect("a batch");
    for example in [0, 5] {
        let map = run.attention(1, 1, example).expect("a head");
        let pieces = batch.examples[example]
            .pieces
            .iter()
            .filter(|it| it.attended)
            .count();
        assert_eq!(map.pieces.len(), pieces);
        assert_eq!(map.row, batch.examples[example].row);
        for row in &map.probabilities {
            assert_eq!(row.len(), pieces);
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
        }
        assert!(map.svg().contains("[CLS]") && map.to_html().contains("numbers"));
    }
    for (layer, head, example, words) in [
        (9, 0, 0, "an encoder layer, 0 to 1"),
        (0, 99, 0, "a head, 0 to"),
        (0, 0, 99, "0 to 7"),
    ] {
        let problem = run
            .attention(layer, head, example)
            .expect_err("it does not exist");
        assert_eq!(problem.code, "SC0103");
        assert!(problem.message.contains(words), "{}", problem.message);
    }
    assert_eq!(
        run.attention(-1, 0, 0).expect_err("negative").code,
        "SC0103"
    );
}

#[test]
fn the_worst_example_is_the_one_with_the_highest_loss_alone() {
    let (model, run) = run(0.1, plain_args());
    run.step(2).expect("two steps");
    let data = sentences(24);
    let alone = |row: usize| {
        let one = data.skip(row).take(1);
        model
            .evaluate(&one, EvaluateArgs::new().verbose(false))
            .expect("good data")
            .loss
    };
    let mut losses: Vec<(usize, f64)> = (0..24).map(|row| (row, alone(row))).collect();
    losses.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (worst, best) = (run.worst(5).expect("free"), run.best(3).expect("free"));
    assert_eq!((worst.evaluated, worst.total), (24, 24));
    for (found, (_, loss)) in worst.examples.iter().zip(&losses) {
        assert_near(found.loss, *loss);
        assert_near(alone(found.row), *loss);
    }
    for (found, (_, loss)) in best.examples.iter().zip(losses.iter().rev()) {
        assert_near(found.loss, *loss);
    }
    assert_eq!(
        (
            worst.examples.len(),
            run.worst(100).expect("free").examples.len()
        ),
        (5, 24)
    );
    assert!(worst.to_html().contains("highest loss") && best.to_plain().contains("lowest"));
    assert_eq!(run.worst(0).expect_err("none").code, "SC0103");
}

#[test]
fn planted_labels_are_suspected() {
    let data = make_classification(200, 6, 2, 1).expect("rows");
    let planted = [3, 50, 77, 120, 199];
    let mut wrong = data.clone();
    for row in planted {
        let class = wrong.examples[row].class().expect("has a class");
        wrong.examples[row] = wrong.examples[row]
            .clone()
            .with_label(Label::Class(1 - class));
    }
    let model = Sequential([Dense(8).activation("relu").input_shape(6), Dense(2)]).expect("valid");
    model
        .compile(
            CompileArgs::new()
                .optimizer(AdamW::new(0.01))
                .loss(cross_entropy())
                .metrics([accuracy()]),
        )
        .expect("valid");
    let run = model
        .start(
            &wrong,
            FitArgs::new().batch_size(16).epochs(8).verbose(false),
        )
        .expect("good data");
    run.epoch().expect("an epoch");
    let one = run.data_map().expect("free");
    assert_eq!((one.epochs, one.examples.len()), (1, 200));
    assert!(one.examples.iter().all(|it| it.variability == 0.0));
    run.finish().expect("it ends");
    let map = run.data_map().expect("a run that is over");
    assert_eq!((map.epochs, map.examples.len()), (8, 200));
    let suspects: Vec<usize> = map.suspects().iter().map(|it| it.row).collect();
    let found = planted.iter().filter(|row| suspects.contains(row)).count();
    assert!(found >= 4, "{suspects:?}");
    // Hard examples of the data itself may be among them, but not many.
    assert!(suspects.len() <= 15, "{suspects:?}");
    assert!(
        map.examples
            .iter()
            .all(|it| (0.0..=1.0).contains(&it.confidence) && it.variability <= 0.5)
    );
    assert!(map.to_html().contains("evidence of the training set"));
}

#[test]
fn an_unfinished_run_of_every_head_can_be_looked_at() {
    // One output that decides between two.
    let model = Sequential([Dense(1).input_shape(4)]).expect("valid");
    let loss = BinaryCrossentropy { from_logits: true };
    model
        .compile(CompileArgs::new().optimizer(SGD::new(0.1)).loss(loss))
        .expect("valid");
    let data = make_classification(20, 4, 2, 0).expect("rows");
    let run = model.start(&data, args()).expect("good data");
    let batch = run.batch().expect("a batch");
    let example = &batch.examples[0];
    assert_eq!(example.probabilities.len(), 2);
    assert_near(example.loss, -example.probability().expect("a label").ln());
    run.step(1).expect("a step");
    assert_eq!(run.data_map().expect("free").examples.len(), 8);
    assert_eq!(
        run.attention(0, 0, 0).expect_err("no attention").code,
        "SC0103"
    );
    assert!(run.activations("dense").expect("a layer")["dense"].elements == 8);
    // A regression, to its end: nothing is left to look at, and everything says so.
    let model = Sequential([Dense(3).activation("relu"), Dense(1)]).expect("valid");
    model
        .compile(
            CompileArgs::new()
                .optimizer(SGD::new(0.01))
                .loss(MeanSquaredError),
        )
        .expect("valid");
    let run = model
        .start(&make_regression(16, 4, 0).expect("rows"), args())
        .expect("good data");
    run.finish().expect("it ends");
    let (batch, gradients) = (run.batch().expect("empty"), run.gradients().expect("empty"));
    assert!(batch.is_empty() && batch.to_plain().contains("the run is over"));
    assert!(gradients.is_empty() && gradients.to_html().contains("the run is over"));
    assert!(
        run.updates().expect("empty").is_empty() && run.activations("*").expect("empty").is_empty()
    );
    assert_eq!(run.weights().expect("free").len(), 4);
    assert_eq!(run.worst(2).expect("free").examples.len(), 2);
    assert!(
        run.data_map()
            .expect("free")
            .to_plain()
            .contains("predicts a number")
    );
    assert_eq!(run.attention(0, 0, 0).expect_err("over").code, "SC0103");
}

/// A network of one's own: one layer, whose output it hands out, and a loss that one of its variables does not reach.
#[derive(Module, Debug)]
struct Own {
    hidden: Linear,
    unused: Linear,
    #[module(skip)]
    factor: f32,
}

impl Network for Own {
    type Files = Outputs;

    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        tap("hidden", self.hidden.forward(features(batch, device))).mul_scalar(self.factor)
    }
}

fn own(factor: f32) -> ModelOf<Own> {
    let device = scope::device().expect("a device");
    let network = Own {
        hidden: LinearConfig::new(4, 2).init(&device),
        unused: LinearConfig::new(4, 2).init(&device),
        factor,
    };
    let model =
        Model::with_files(network, Outputs::new("Own", 2), Origin::current()).expect("placed");
    model
        .compile(
            CompileArgs::new()
                .optimizer(SGD::new(0.1))
                .loss(cross_entropy()),
        )
        .expect("valid");
    model
}

#[test]
fn networks_of_ones_own_hand_out_what_they_tap() {
    let data = make_classification(20, 4, 2, 0).expect("rows");
    let run = own(1.0).start(&data, args()).expect("good data");
    let found = run.activations("*").expect("activations");
    assert_eq!(found.names(), ["hidden", "outputs"]);
    assert_eq!(found["hidden"].norm, found["outputs"].norm);
    let gradients = run.gradients().expect("gradients");
    assert!(
        gradients
            .notes
            .iter()
            .any(|note| note.contains("no gradient reaches `unused.weight`")),
        "{gradients}"
    );
    assert!(run.batch().expect("a batch").examples[0].pieces.is_empty());
    assert!(run.batch().expect("a batch").to_html().contains("<details"));
}

#[test]
fn what_is_not_finite_is_counted_and_shown() {
    let data = make_classification(20, 4, 2, 0).expect("rows");
    let run = own(f32::INFINITY).start(&data, args()).expect("good data");
    let batch = run.batch().expect("a batch");
    assert!(!batch.loss.is_finite());
    let gradients = run.gradients().expect("gradients");
    assert!(gradients["hidden.weight"].non_finite() > 0);
    assert_eq!(gradients.non_finite().count(), 2);
    let updates = run.updates().expect("updates");
    assert!(
        updates
            .notes
            .iter()
            .any(|note| note.contains("will not be made")),
        "{updates}"
    );
    assert!(run.activations("outputs").expect("outputs")["outputs"].infinities > 0);
    let worst = run.worst(3).expect("examples");
    assert!(!worst.examples[0].loss.is_finite());
    for html in [
        batch.to_html(),
        gradients.to_html(),
        updates.to_html(),
        worst.to_html(),
    ] {
        assert!(!html.contains("<svg"), "{html}");
    }
    assert!(run.step(1).is_err());
}

#[test]
fn an_overflow_under_a_scaled_loss_will_be_skipped() {
    set_global_policy("mixed_float16").expect("a policy");
    let (_model, run) = run(0.0, plain_args());
    set_global_policy("float32").expect("a policy");
    let before = run.gradients().expect("gradients");
    run.step(1).expect("a step");
    // Unscaled, as the optimizer gets them.
    assert!(before.total().norm < 100.0, "{before}");
    assert_eq!(run.batch().expect("a batch").len(), 8);
}

#[test]
fn a_confusion_matrix_counts_what_was_predicted() {
    let (model, run) = run(0.0, plain_args());
    run.finish().expect("it ends");
    let data = sentences(24);
    let predictions = model.predict(&data).expect("texts");
    let by_prediction = predictions.confusion_matrix(&data).expect("labels");
    let evaluated = model
        .evaluate(&data, EvaluateArgs::new().verbose(false))
        .expect("good data");
    let by_evaluation = evaluated.confusion_matrix().expect("classes");
    assert_eq!(by_prediction.counts, by_evaluation.counts);
    assert_eq!(by_prediction.label_names, by_evaluation.label_names);
    assert_eq!(by_evaluation.examples(), 24);
    assert_near(
        by_evaluation.accuracy().expect("examples"),
        evaluated.metric("accuracy").expect("measured"),
    );
    assert_eq!(
        predictions
            .confusion_matrix(&data.take(3))
            .expect_err("too short")
            .code,
        "SC0103"
    );
    let texts = Dataset::from_examples(vec![Example::new("w1"); 24], vec![], "no labels");
    assert_eq!(
        predictions
            .confusion_matrix(&texts)
            .expect_err("no labels")
            .code,
        "SC0103"
    );
}

/// Labels are found by their names; by their numbers only where there are no names.
#[test]
fn a_label_that_the_model_does_not_know_is_no_class() {
    let (model, run) = run(0.0, plain_args());
    run.finish().expect("it ends");
    let data = sentences(24);
    let predictions = model.predict(&data).expect("texts");
    let expected = predictions.confusion_matrix(&data).expect("labels");
    // In another order.
    let order = ["red", "blue", "green"].map(str::to_owned);
    let other = data.clone().with_label_names(&order).expect("the same");
    let found = predictions.confusion_matrix(&other).expect("labels");
    assert_eq!(found.counts, expected.counts);
    // Without names.
    let named = |names: [&str; 3]| {
        let mut data = data.clone();
        data.label_names = names.map(str::to_owned).to_vec();
        data
    };
    for names in [["LABEL_0", "LABEL_1", "LABEL_2"], ["1", "2", "3"]] {
        let found = predictions.confusion_matrix(&named(names));
        assert_eq!(found.expect("labels").counts, expected.counts);
        assert!(predictions.assess(&named(names)).is_ok());
    }
    let unknown = named(["red", "green", "pink"]);
    let refused = [
        predictions.confusion_matrix(&unknown).err(),
        predictions.assess(&unknown).err(),
        predictions.difference(&predictions, &unknown).err(),
    ];
    for refused in refused {
        let refused = refused.expect("it knows no pink");
        assert_eq!(refused.code, "SC0103");
        assert!(format!("{refused:?}").contains("pink"), "{refused:?}");
    }
}

/// The first data of a model that has no width yet may be that of a loop by hand.
#[test]
fn a_gradient_by_hand_makes_the_variables() {
    let model = Sequential([Dense(4).seed(1), Dense(1).seed(2)]).expect("valid");
    let args = CompileArgs::new().optimizer(SGD::new(0.1));
    model.compile(args.loss(MeanSquaredError)).expect("valid");
    let data = make_regression(8, 3, 3).expect("rows");
    let found = model.gradients(&data).expect("good data");
    assert_eq!(found.norms().len(), 4);
    assert!(found.norm() > 0.0);
    let text = Dataset::from_labelled([("a text", "a label")]);
    let refused = model.gradients(&text).expect_err("it takes numbers");
    assert_eq!(refused.code, "SC0411");
}
