//! The mixed policies through whole runs: what is rounded, what is scaled, what is skipped.

use stratoscope_bert::ops::{Bfloat16, bfloat16_on_cpu};
use stratoscope_models::{
    AdamW, BertForSequenceClassification, Dense, FitArgs, History, SGD, Sequential,
    set_global_policy,
};
use stratoscope_strategy::{MirroredStrategy, scope};

use crate::support::{
    cross_entropy, id_model, largest_difference, load, plain_args, sentences, tiny_bert, weights,
};

fn model(policy: &str) -> BertForSequenceClassification {
    set_global_policy(policy).expect("a policy");
    let model = load(&tiny_bert(0.0));
    set_global_policy("float32").expect("a policy");
    let args = plain_args().loss(cross_entropy());
    let receipt = model.compile(args.optimizer(AdamW::new(1e-3).global_clipnorm(1.0)));
    let receipt = receipt.expect("valid arguments").to_plain();
    let way = match (policy, bfloat16_on_cpu()) {
        ("mixed_bfloat16", Bfloat16::Emulated) | ("mixed_float16", _) => "emulated",
        _ => "native",
    };
    let finding = receipt.contains(&format!("{policy}, {way}"));
    assert_eq!(finding, policy != "float32", "{receipt}");
    model
}

fn run(model: &BertForSequenceClassification, epochs: u64) -> History {
    let args = FitArgs::new().epochs(epochs).batch_size(8).verbose(false);
    model.fit(&sentences(48), args).expect("it trains")
}

fn all(model: &BertForSequenceClassification) -> Vec<f32> {
    weights(model).into_iter().flat_map(|(_, it)| it).collect()
}

#[test]
fn sixteen_bits_train_nearly_as_float32_does() {
    let plain = model("float32");
    let expected = run(&plain, 8);
    assert_eq!(expected.loss_scale, None);
    for (policy, most) in [("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)] {
        let mixed = model(policy);
        let found = run(&mixed, 8);
        assert!(
            found.epochs[7].loss < 0.8 * found.epochs[0].loss,
            "{policy}: {found}"
        );
        let apart: Vec<f64> = (expected.epochs.iter().zip(&found.epochs))
            .map(|(expected, found)| (expected.loss - found.loss).abs())
            .collect();
        assert!(
            apart.iter().all(|&apart| apart < most),
            "{policy}: {apart:?}"
        );
        assert!(
            apart.iter().any(|&apart| apart > 1e-6),
            "{policy}: nothing was rounded"
        );
        // Weights are float32: most of them are no numbers of 16 bits.
        let odd = all(&mixed)
            .iter()
            .filter(|it| it.to_bits() & 0x0fff != 0)
            .count();
        assert!(odd > 1000, "{policy}: {odd}");
        let is_scaled = policy == "mixed_float16";
        assert_eq!(found.loss_scale.is_some(), is_scaled, "{found}");
        assert_eq!(
            found.to_plain().contains("mixed_float16, emulated"),
            is_scaled
        );
    }
}

/// The norm that is shown, and that is clipped by, is that of the loss, not of the scaled one.
#[test]
fn norms_are_those_of_the_loss_itself() {
    let norm = |policy: &str| {
        let history = run(&model(policy), 1);
        history.executions[0].gradient_norm.expect("a step")
    };
    let (plain, mixed) = (norm("float32"), norm("mixed_float16"));
    assert!((plain - mixed).abs() < 0.01 * plain, "{plain} {mixed}");
}

/// So large a loss has no gradient in float16 under any scale above 1: the steps are skipped, the scale is
/// halved each time, and the weights stay. Two replicas decide alike.
#[test]
fn a_step_with_an_infinite_gradient_is_skipped() {
    set_global_policy("mixed_float16").expect("a policy");
    let strategy = MirroredStrategy::logical(2).expect("two devices");
    let model = {
        let _scope = scope::enter(&strategy).expect("no scope is active");
        Sequential([Dense(1).input_shape((1,))]).expect("a layer")
    };
    let args = stratoscope_models::CompileArgs::new()
        .optimizer(SGD::new(1e-6))
        .loss(stratoscope_models::MeanSquaredError);
    model.compile(args).expect("valid arguments");
    // The gradient of (w·1 − 60)² is about −120: times 2¹⁵ it is 3.9 million, and float16 ends at 65 504. Times
    // 2⁹ it is 61 440, so that the first six steps are skipped.
    let rows = vec![[1.0_f32]; 20];
    let data = stratoscope_data::Dataset::from_arrays(rows, vec![60.0_f32; 20]).expect("numbers");
    let before = weights(&model);
    let args = || FitArgs::new().batch_size(2).verbose(false);
    let history = model.fit(&data.take(12), args()).expect("six batches");
    assert_eq!(
        (
            history.counters.skipped_steps,
            history.counters.optimizer_steps
        ),
        (6, 0)
    );
    assert_eq!(history.loss_scale, Some(512.0));
    assert_eq!(weights(&model), before, "nothing was applied");
    assert_eq!(history.counters.all_reduces, 6);
    let text = history.to_plain();
    assert!(text.contains("6 of 6 steps were skipped"), "{text}");
    let history = model.fit(&data.take(8), args()).expect("four batches");
    assert_eq!(
        (
            history.counters.skipped_steps,
            history.counters.optimizer_steps
        ),
        (0, 4)
    );
    assert!(largest_difference(&weights(&model)[0].1, &before[0].1) > 0.0);
}

/// By hand nobody scales: small gradients vanish, which is what SC0511 warns of.
#[test]
fn a_loop_by_hand_loses_what_float16_has_not() {
    let zeros = |policy: &str| {
        let gradients = model(policy).gradients(&sentences(8)).expect("a gradient");
        let found = stratoscope_models::half_precision(&gradients).expect("a note at most");
        found.elements
    };
    let (plain, mixed) = (zeros("float32"), zeros("mixed_float16"));
    assert!(mixed < plain, "{mixed} of {plain} elements are left");
    // bfloat16 rounds some to 0 that were nearly nothing in float32 too.
    assert!(zeros("mixed_bfloat16").abs_diff(plain) < plain / 1000);
}

#[test]
fn a_model_keeps_the_policy_it_was_built_under() {
    let early = load(&tiny_bert(0.0));
    set_global_policy("mixed_float16").expect("a policy");
    let receipt = early
        .compile(plain_args())
        .expect("valid arguments")
        .to_plain();
    assert!(
        receipt.contains("float32: it was built before the policy was"),
        "{receipt}"
    );
    // A network that does not compute with our operations is left alone, and it is said.
    let own = id_model();
    let receipt = own
        .compile(plain_args())
        .expect("valid arguments")
        .to_plain();
    assert!(
        receipt.contains("a network of one's own does not follow"),
        "{receipt}"
    );
}
