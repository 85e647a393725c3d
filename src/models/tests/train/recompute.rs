//! `recompute = true`: the same run to the last bit, under each strategy and policy, in all that can be asked of it.

use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, MeanSquaredError,
    Sequential, memory_plan,
};
use stratoscope_strategy::{AsStrategy, CentralStorageStrategy, ParameterServerStrategy, Strategy};

use super::support::{
    compiled, grouped, load, mirrored, plain_args, recipe, sentences, tiny_bert, weights,
};

fn args(recompute: bool) -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(8)
        .epochs(2)
        .recompute(recompute)
        .verbose(false)
}

/// The weights after a run, and its losses.
fn trained(
    strategy: Option<Strategy>,
    policy: &str,
    compile: CompileArgs,
    recompute: bool,
) -> (Vec<(String, Vec<f32>)>, Vec<f64>) {
    let model = compiled(strategy, policy, compile.optimizer(recipe()));
    let history = model
        .fit(&sentences(44), args(recompute))
        .expect("it trains");
    let losses = history.steps.iter().map(|step| step.loss).collect();
    (weights(&model), losses)
}

#[test]
fn a_run_has_the_same_bits_under_each_strategy_and_policy() {
    fn central() -> Option<Strategy> {
        Some(CentralStorageStrategy::logical(2).expect("two").strategy())
    }
    fn servers() -> Option<Strategy> {
        let servers = ParameterServerStrategy::logical(2, 2).expect("four devices");
        Some(servers.strategy())
    }
    type Case = (
        &'static str,
        fn() -> Option<Strategy>,
        &'static str,
        usize,
        usize,
    );
    let cases: [Case; 7] = [
        ("one device", || None, "float32", 1, 1),
        ("accumulation", || None, "float32", 1, 3),
        ("mixed", || None, "mixed_float16", 1, 1),
        ("mirrored", mirrored, "float32", 1, 1),
        ("local SGD", mirrored, "mixed_bfloat16", 2, 1),
        ("central", central, "float32", 1, 1),
        ("servers", servers, "float32", 1, 1),
    ];
    for (name, strategy, policy, sync, accumulation) in cases {
        let run = |recompute| {
            let compile = grouped(plain_args(), sync, accumulation, 1);
            trained(strategy(), policy, compile, recompute)
        };
        let (kept, again) = (run(false), run(true));
        assert!(kept.1.len() >= 4 && kept.1 == again.1, "{name}: {again:?}");
        assert_eq!(kept.0, again.0, "{name}");
    }
}

#[test]
fn frozen_layers_are_neither_recorded_nor_trained() {
    let run = |pattern: &str, recompute| {
        let model = load(&tiny_bert(0.1));
        model.freeze(pattern).expect("it has them");
        model
            .compile(plain_args().optimizer(recipe()))
            .expect("valid");
        model
            .fit(&sentences(24), args(recompute))
            .expect("it trains");
        weights(&model)
    };
    for pattern in ["bert", "bert.embeddings", "bert.encoder.layer.0"] {
        assert_eq!(run(pattern, false), run(pattern, true), "{pattern}");
    }
}

#[test]
fn what_is_looked_at_is_the_same() {
    let begin = |recompute| {
        let model = compiled(None, "float32", plain_args());
        let run = model
            .start(&sentences(24), args(recompute))
            .expect("good data");
        run.step(1).expect("a step");
        run
    };
    let (kept, again) = (begin(false), begin(true));
    let numbers = |run: &stratoscope_models::Run| {
        let gradients = run.gradients().expect("no device fails");
        let updates = run.updates().expect("no device fails");
        let activations = run
            .activations("encoder.layer.1.*")
            .expect("there are some");
        let all = gradients
            .iter()
            .chain(updates.iter())
            .chain(activations.iter());
        all.map(|row| (row.name.clone(), row.norm))
            .collect::<Vec<_>>()
    };
    let (kept_numbers, numbers_again) = (numbers(&kept), numbers(&again));
    assert!(kept_numbers.len() > 80);
    assert_eq!(kept_numbers, numbers_again);
    assert_eq!(
        kept.why().expect("it is replayed").verdict,
        again.why().expect("it is replayed").verdict
    );
}

#[test]
fn other_networks_say_that_they_cannot() {
    let data = stratoscope_data::make_regression(16, 3, 1).expect("sizes");
    let model = Sequential([Dense(4), Dense(1)]).expect("two layers");
    let compile = CompileArgs::new()
        .optimizer(AdamW::new(1e-3))
        .loss(MeanSquaredError);
    model.compile(compile).expect("valid");
    let found = model.fit(&data, args(true)).expect_err("nothing to record");
    assert_eq!(found.code, "SC0605", "{found}");
    assert!(model.fit(&data, args(false)).is_ok());
    assert!(memory_plan(&model, 8, 1).recomputed().is_none());
    let model: BertForSequenceClassification = load(&tiny_bert(0.1));
    let plan = memory_plan(&model, 64, 64);
    let cheaper = plan.recomputed().expect("encoder layers");
    assert!(cheaper.step() < plan.step() && cheaper.total() < plan.total());
    assert!(
        plan.to_plain().contains("with `recompute = true`"),
        "{plan}"
    );
}
