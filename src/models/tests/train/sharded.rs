//! Training with variables cut over parameter servers: the same bits as without, and files that anybody loads.
//! And the state of metrics, of which each replica has its own.

use stratoscope_models::{
    Adafactor, Adam, AdamW, BertForSequenceClassification, CompileArgs, Dense, FitArgs, History,
    IntoOptimizer, Lamb, MeanSquaredError, SGD, Sequential, accuracy, macro_f1, pearson,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, ParameterServerStrategy, Partitioner, PlacementReport,
    VariableKind, scope,
};
use tempfile::TempDir;

use crate::support::{cross_entropy, load, sentences, tiny_bert, weights};

fn servers(count: usize) -> ParameterServerStrategy {
    ParameterServerStrategy::logical(2, count).expect("logical devices")
}

fn sharded(count: usize) -> ParameterServerStrategy {
    let strategy = servers(count).variable_partitioner(Partitioner::MinSize(64));
    strategy.expect("a size above 0")
}

fn compiled(strategy: &impl AsStrategy, args: CompileArgs) -> BertForSequenceClassification {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.1));
    model
        .compile(args.loss(cross_entropy()).metrics([accuracy(), macro_f1()]))
        .expect("valid arguments");
    model
}

fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(4)
        .seed(5)
        .epochs(2)
        .verbose(false)
}

/// Losses and norms of every execution, to the bit.
fn trace(history: &History) -> Vec<(u64, Option<u64>)> {
    let executions = history.executions.iter();
    executions
        .map(|it| (it.loss.to_bits(), it.gradient_norm.map(f64::to_bits)))
        .collect()
}

/// Every kind of clipping and of moments, synchronous and not, with accumulation: 13 examples in batches of 4.
#[test]
fn shards_train_to_the_same_bits() {
    let data = sentences(13);
    let check = |what: &str, optimizer: fn() -> CompileArgs, synchronous: bool| {
        let run = |strategy: ParameterServerStrategy| {
            let strategy = match synchronous {
                true => strategy.synchronous(),
                false => strategy,
            };
            let model = compiled(&strategy, optimizer().gradient_accumulation_steps(2));
            let fit = fit().validation_data(&data);
            let history = model.fit(&data, fit).expect("it trains");
            let cut = strategy.strategy().variable_partitioner().is_some();
            let report = model.placement().expect("the devices answer");
            let kinds = report
                .variables
                .iter()
                .filter(|row| row.kind == VariableKind::Sharded);
            assert_eq!(kinds.count() > 0, cut);
            (weights(&model), trace(&history), history)
        };
        let (expected, expected_trace, whole) = run(servers(3));
        let (found, found_trace, history) = run(sharded(3));
        assert_eq!(found_trace, expected_trace, "{what}, {synchronous}");
        assert!(found == expected, "{what}, {synchronous}: the same bits");
        assert_eq!(history.counters, whole.counters);
        let metrics = |history: &History| {
            let epochs = history.epochs.iter();
            let of = epochs.map(|it| (it.metrics.clone(), it.validation.as_ref().map(|v| v.loss)));
            format!("{:?}", of.collect::<Vec<_>>())
        };
        assert_eq!(metrics(&history), metrics(&whole));
    };
    fn with(optimizer: impl IntoOptimizer) -> CompileArgs {
        CompileArgs::new().optimizer(optimizer)
    }
    let global = || with(AdamW::new(1e-3).global_clipnorm(0.5));
    check("global_clipnorm", global, true);
    let each = || with(AdamW::new(1e-3).clipnorm(0.05));
    let rates = || with(AdamW::new(1e-3).layer_decay(0.5));
    check("layer_decay", rates, true);
    check("clipnorm", each, true);
    check("clipnorm", each, false);
    let velocity = || with(SGD::new(0.1).momentum(0.9).clipvalue(0.01));
    check("momentum", velocity, false);
    let average = || {
        with(
            Adam::new(1e-3)
                .amsgrad(true)
                .use_ema(true)
                .ema_momentum(0.5),
        )
    };
    check("use_ema", average, true);
    check("use_ema", average, false);
}

/// A model with variables, and one that gets them at `fit!`.
#[test]
fn an_optimizer_that_needs_whole_variables_is_refused() {
    let refused = |strategy: ParameterServerStrategy| {
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let bert = load(&tiny_bert(0.1));
        let rows = Sequential([Dense(1).seed(1)]).expect("a layer");
        let lamb = || CompileArgs::new().optimizer(Lamb::new(1e-3));
        let adafactor = || CompileArgs::new().optimizer(Adafactor::new(1e-3));
        [
            bert.compile(lamb().loss(cross_entropy())),
            rows.compile(lamb().loss(MeanSquaredError)),
            bert.compile(adafactor().loss(cross_entropy())),
        ]
    };
    for found in refused(sharded(2)) {
        let found = found.expect_err("the variables are cut");
        assert_eq!(found.code.as_str(), "SC0103");
        assert!(
            found.to_string().contains("variable_partitioner"),
            "{found}"
        );
    }
    for found in refused(servers(2)) {
        found.expect("the variables are whole");
    }
}

/// By hand, where gradients are a value of whole variables.
#[test]
fn a_step_by_hand_reaches_every_shard() {
    let data = sentences(8);
    let run = |strategy: &ParameterServerStrategy| {
        let model = compiled(strategy, CompileArgs::new().optimizer(SGD::new(0.5)));
        let gradients = model.gradients(&data).expect("it computes");
        model.apply(gradients).expect("finite");
        weights(&model)
    };
    assert!(run(&sharded(3)) == run(&servers(3)));
}

/// A weight that is not finite is found on whichever server it is.
#[test]
fn a_non_finite_shard_is_found() {
    let run = |strategy: &ParameterServerStrategy| {
        // As float32 this rate is infinite: the first step spoils every weight.
        let model = compiled(strategy, CompileArgs::new().optimizer(SGD::new(1e39)));
        let finding = model
            .fit(&sentences(4), fit())
            .expect_err("no weight is finite");
        (finding.code.clone(), finding.message.clone())
    };
    let finding = run(&sharded(3));
    assert_eq!(finding.0, "SC0505");
    assert!(finding.1.contains("weight"), "{}", finding.1);
    assert_eq!(finding, run(&servers(3)));
}

#[test]
fn what_is_saved_is_whole() {
    let data = sentences(12);
    let model = compiled(&sharded(2), CompileArgs::new().optimizer(AdamW::new(1e-3)));
    let before = weights(&model);
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("run");
    model
        .fit(&data, fit().checkpoint(path.to_str().expect("UTF-8")))
        .expect("it trains");
    let trained = weights(&model);
    assert!(trained != before);
    let saved = path.join("last");
    let saved = saved.to_str().expect("UTF-8");
    let alone = BertForSequenceClassification::from_pretrained(saved, 3).expect("it loads");
    assert!(weights(&alone) == trained, "on one device");
    let _scope = scope::enter(&sharded(3)).expect("no scope is active");
    let again = BertForSequenceClassification::from_pretrained(saved, 3).expect("it loads");
    assert!(weights(&again) == trained, "over three servers");
}

/// Gradients and moments are where their rows are, together as large as the variable.
#[test]
fn moments_are_where_their_rows_are() {
    let model = compiled(&sharded(2), CompileArgs::new().optimizer(AdamW::new(1e-3)));
    model.fit(&sentences(4), fit()).expect("it trains");
    let report = model.placement().expect("the devices answer");
    let trained = report.variables.iter().filter(|row| row.trainable);
    let bytes: u64 = trained.map(|row| row.bytes).sum();
    for slot in 0..3 {
        let on = |device| report.device_totals(device).slots[slot];
        assert_eq!((on(0), on(1)), (0, 0), "workers keep nothing");
        assert_eq!(on(2) + on(3), bytes);
        assert!(on(2) > 0 && on(3) > 0);
    }
}

fn state_of_metrics(report: &PlacementReport) -> (String, VariableKind, Vec<usize>) {
    let rows: Vec<_> = report.variables.iter().filter(|row| row.beside).collect();
    let [row] = rows.as_slice() else {
        unreachable!("one state for all metrics: {}", rows.len());
    };
    let devices = row.copies.iter().map(|copy| copy.device);
    (row.name.clone(), row.kind, devices.collect())
}

/// Each replica counts apart; what is read is exact, whatever their number.
#[test]
fn metrics_count_on_every_replica() {
    let data = sentences(13);
    let run = |replicas: usize| {
        let strategy = MirroredStrategy::logical(replicas).expect("logical devices");
        let model = compiled(&strategy, CompileArgs::new().optimizer(SGD::new(0.1)));
        let empty = model.placement().expect("the devices answer");
        model.fit(&data, fit()).expect("it trains");
        (empty, model.placement().expect("the devices answer"))
    };
    for replicas in 2..=4 {
        let (empty, report) = run(replicas);
        let (name, kind, devices) = state_of_metrics(&report);
        assert_eq!(name, "metrics.confusion_matrix");
        assert_eq!(
            (kind, devices),
            (VariableKind::OnRead, (0..replicas).collect())
        );
        let row = |report: &PlacementReport| {
            let row = report.variables.iter().find(|row| row.beside);
            row.expect("metrics were given").clone()
        };
        let (before, after) = (row(&empty), row(&report));
        assert!(before.is_equal(), "nothing is counted yet");
        assert!(
            before
                .copies
                .iter()
                .zip(&after.copies)
                .all(|(a, b)| a.checksum != b.checksum)
        );
        assert_eq!((after.bytes, after.shape.as_slice()), (72, &[3, 3][..]));
        assert!(report.copies_are_equal(), "they need not be");
        let all = report.variables.len() - 1;
        let verdict = format!("{all} variables, equal on all {replicas} replicas");
        assert_eq!(report.verdict(), verdict);
        assert!(
            report.to_plain().contains("OnRead (1): "),
            "{}",
            report.to_plain()
        );
    }
}

/// The same validation on 1 and on R replicas: equal to the last bit, classes and numbers.
#[test]
fn metrics_are_equal_on_any_number_of_replicas() {
    let data = sentences(13);
    let classes = |replicas: usize| {
        let strategy = MirroredStrategy::logical(replicas).expect("logical devices");
        let model = compiled(&strategy, CompileArgs::new().optimizer(SGD::new(0.1)));
        let args = stratoscope_models::EvaluateArgs::new()
            .batch_size(5)
            .verbose(false);
        let evaluation = model.evaluate(&data, args).expect("it evaluates");
        assert_eq!(evaluation.predictions.labels.iter().sum::<u64>(), 13);
        format!("{:?} {:?}", evaluation.metrics, evaluation.predictions)
    };
    for replicas in 2..=5 {
        assert_eq!(classes(replicas), classes(1), "{replicas} replicas");
    }
    let numbers = |replicas: usize| {
        let strategy = MirroredStrategy::logical(replicas).expect("logical devices");
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let data = stratoscope_data::make_regression(13, 3, 3).expect("sizes above 0");
        let model = Sequential([Dense(1).seed(1)]).expect("a valid model");
        let args = CompileArgs::new().optimizer(SGD::new(1e-30));
        let args = args.loss(MeanSquaredError).metrics([pearson()]);
        model.compile(args).expect("valid arguments");
        let history = model.fit(&data, fit()).expect("it trains");
        let report = model.placement().expect("the devices answer");
        let (name, kind, _) = state_of_metrics(&report);
        assert_eq!(
            (name.as_str(), kind),
            ("metrics.pairs", VariableKind::OnRead)
        );
        format!("{:?}", history.epochs[1].metrics)
    };
    for replicas in 2..=4 {
        assert_eq!(numbers(replicas), numbers(1), "{replicas} replicas");
    }
}
