//! Low-rank adapters in training: what is trained and what it costs, every strategy, resuming, turning back, worker
//! processes' part in `workers.rs`, merging, saving, and what is refused.

use stratoscope_diagnostics::Result;
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForQuestionAnswering, BertForSentenceEmbedding,
    BertForSequenceClassification, BertForTokenClassification, FitArgs, History, Lora, SGD,
    memory_plan,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, ParameterServerStrategy, Partitioner,
    Strategy, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near, assert_near_weights, cross_entropy, grouped, is_full, load, one_gpu, plain_args,
    recipe, sentences, tiny_bert, weights,
};

type Weights = Vec<(String, Vec<f32>)>;

fn lora() -> Lora {
    Lora::new(2).alpha(4.0).dropout(0.1)
}

/// The tiny BERT with adapters, made in the scope of a strategy.
fn adapted(
    strategy: Option<&Strategy>,
    folder: &TempDir,
    lora: Lora,
) -> BertForSequenceClassification {
    let _scope = strategy.map(|it| scope::enter(it).expect("no scope is active"));
    let model = load(folder);
    model.add_lora(lora).expect("adapters");
    model
}

fn fit() -> FitArgs<'static> {
    FitArgs::new()
        .epochs(2)
        .batch_size(4)
        .seed(3)
        .verbose(false)
}

fn trained(
    strategy: Option<&Strategy>,
    sync_every: usize,
    accumulation: usize,
) -> (Weights, History) {
    let model = adapted(strategy, &tiny_bert(0.1), lora());
    let args = grouped(
        plain_args().optimizer(recipe()),
        sync_every,
        accumulation,
        1,
    );
    model.compile(args).expect("valid arguments");
    let history = model.fit(&sentences(13), fit()).expect("it trains");
    let placement = model.placement().expect("the devices answer");
    assert!(placement.copies_are_equal(), "{}", placement.verdict());
    (weights(&model), history)
}

fn is_trained(name: &str) -> bool {
    name.contains("lora_") || name.starts_with("classifier.")
}

#[test]
fn only_adapters_and_head_are_trained_and_cost_anything() {
    let plain = load(&tiny_bert(0.0));
    let before: Weights = weights(&plain);
    let whole = memory_plan(&plain, 4, 16);
    let model = load(&tiny_bert(0.0));
    let receipt = model.add_lora(Lora::new(2)).expect("adapters");
    assert_eq!(receipt.layers.len(), 4);
    let summary = model.summary();
    assert_eq!(summary.trainable(), Some(receipt.trained));
    assert_eq!(model.num_parameters(), receipt.parameters);
    let shown = receipt.to_string();
    assert!(
        shown.starts_with("adapters of rank 2 in 4 layers; "),
        "{shown}"
    );
    let bytes = |plan: &stratoscope_models::MemoryPlan, name: &str| {
        let part = plan.parts.iter().find(|part| part.name == name);
        part.map_or(0, |part| part.bytes)
    };
    let plan = memory_plan(&model, 4, 16);
    // Two moments of four bytes each.
    assert_eq!(bytes(&plan, "moments"), 8 * receipt.trained as u64);
    assert!(bytes(&plan, "gradients") < bytes(&whole, "gradients") / 5);

    let compiled = model.compile(plain_args()).expect("valid arguments");
    let settings: Vec<&str> = compiled
        .settings
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(
        settings.contains(&"adapters") && settings.contains(&"frozen"),
        "{settings:?}"
    );
    model
        .fit(&sentences(13), fit().epochs(1))
        .expect("it trains");
    let report = model.placement().expect("the devices answer");
    for row in report.variables.iter().filter(|row| !row.beside) {
        assert_eq!(row.trainable, is_trained(&row.name), "{}", row.name);
    }
    for (name, values) in weights(&model) {
        let old = before.iter().find(|(known, _)| *known == name);
        let is_same = old.is_some_and(|(_, old)| *old == values);
        // After a step the second matrices are no longer zero.
        assert!(is_same != is_trained(&name), "{name}");
    }
}

#[test]
fn a_run_learns_and_begins_where_the_model_without_adapters_does() {
    let folder = tiny_bert(0.0);
    let (plain, model) = (
        load(&folder),
        adapted(None, &folder, Lora::new(4).targets(["all-linear"])),
    );
    let data = sentences(24);
    let scores = |model: &BertForSequenceClassification| -> Vec<Vec<f64>> {
        let rows = model.predict(data.take(6)).expect("answers").rows;
        rows.into_iter().map(|row| row.probabilities).collect()
    };
    assert_eq!(
        scores(&plain),
        scores(&model),
        "the same bits before the first step"
    );
    let args = plain_args().optimizer(AdamW::new(0.003));
    model.compile(args).expect("valid arguments");
    let history = model.fit(&data, fit().epochs(30)).expect("it trains");
    let losses: Vec<f64> = history.epochs.iter().map(|it| it.loss).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least < 0.8 * losses[0], "{losses:?}");
}

/// Uneven batches: 13 examples in batches of 4; the strategies that add in the same order have the same bits.
#[test]
fn every_strategy_trains_adapters() {
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (expected, history) = trained(Some(&two.strategy()), 1, 1);
    assert_eq!(history.counters.all_reduces, 8);
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 2)
        .expect("logical devices")
        .synchronous();
    let sharded = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    let sharded = sharded
        .synchronous()
        .variable_partitioner(Partitioner::MinSize(64));
    let sharded = sharded.expect("a size");
    for strategy in [central.strategy(), servers.strategy(), sharded.strategy()] {
        let (found, _) = trained(Some(&strategy), 1, 1);
        assert!(found == expected, "{strategy}: the same bits as mirrored");
    }
    for (sync_every, accumulation) in [(2, 1), (1, 2)] {
        let (found, _) = trained(Some(&two.strategy()), sync_every, accumulation);
        let frozen = |weights: &Weights| -> Weights {
            weights
                .iter()
                .filter(|(name, _)| !is_trained(name))
                .cloned()
                .collect()
        };
        assert!(frozen(&found) == frozen(&expected) && found != expected);
    }
    let asynchronous = ParameterServerStrategy::logical(2, 1).expect("logical devices");
    let (_, history) = trained(Some(&asynchronous.strategy()), 1, 1);
    assert_eq!(history.counters.optimizer_steps, 14);
}

/// Two replicas are one device with the whole batch, but for rounding.
#[test]
fn two_replicas_train_as_one_device_does() {
    let run = |strategy: Option<&Strategy>| {
        let model = adapted(strategy, &tiny_bert(0.0), Lora::new(2).alpha(4.0));
        let args = plain_args().optimizer(SGD::new(0.2));
        model.compile(args).expect("valid arguments");
        model.fit(&sentences(13), fit()).expect("it trains");
        weights(&model)
    };
    let two = MirroredStrategy::logical(2)
        .expect("logical devices")
        .strategy();
    assert_near_weights(&run(Some(&two)), &run(None));
}

#[test]
fn a_run_is_resumed_and_turned_back_to_the_bit() {
    let two = MirroredStrategy::logical(2)
        .expect("logical devices")
        .strategy();
    let compiled = || {
        let model = adapted(Some(&two), &tiny_bert(0.1), lora());
        let args = plain_args().optimizer(recipe());
        model.compile(args).expect("valid arguments");
        model
    };
    let (data, folder) = (sentences(16), TempDir::new().expect("a temporary folder"));
    let path = folder.path().to_str().expect("a path in UTF-8");
    let whole = compiled();
    whole.fit(&data, fit()).expect("it trains");

    // Eight steps in all: six are made, two of them once more, and then another process goes on.
    let model = compiled();
    let run = model
        .start(&data, fit().checkpoint(path).every(2))
        .expect("it is ready");
    run.keep_snapshots(1, 8).expect("the run is not over");
    run.step(4).expect("it trains");
    run.rewind(2).expect("it is held");
    run.step(4).expect("it trains");
    drop(run);
    // The folder of the epoch has the adapters alone.
    assert!(
        folder
            .path()
            .join("last/adapter_model.safetensors")
            .is_file()
    );
    let other = compiled();
    other
        .fit(&data, fit().resume_from(path))
        .expect("it goes on");
    assert!(weights(&other) == weights(&whole), "the same bits");

    let without = load(&tiny_bert(0.1));
    let refused = without.compile(plain_args().optimizer(recipe()));
    refused.expect("valid arguments");
    let refused = without.fit(&data, fit().resume_from(path));
    assert_eq!(refused.expect_err("another model").code, "SC0527");
}

/// The variables are the same, but what they compute is not.
#[test]
fn a_run_does_not_go_on_with_other_adapters() {
    let (folder, base) = (TempDir::new().expect("a temporary folder"), tiny_bert(0.1));
    let run = |lora: Lora, change: &dyn Fn(FitArgs<'static>) -> FitArgs<'static>| {
        let model = adapted(None, &base, lora);
        let args = plain_args().optimizer(recipe());
        model.compile(args).expect("valid arguments");
        model.fit(&sentences(13), change(fit()))
    };
    run(lora(), &|args| args.checkpoint(folder.path()).every(3)).expect("it trains");
    for other in [lora().alpha(8.0), lora().dropout(0.0)] {
        let resumed = run(other, &|args| args.resume_from(folder.path()));
        let refused = resumed.expect_err("other adapters");
        assert_eq!(refused.code, "SC0527");
        assert!(format!("{refused:?}").contains("adapters"), "{refused:?}");
    }
    run(lora(), &|args| args.resume_from(folder.path())).expect("it goes on");
}

fn probabilities(model: &BertForSequenceClassification) -> Vec<f64> {
    let rows = model.predict(sentences(7)).expect("answers").rows;
    rows.into_iter().flat_map(|row| row.probabilities).collect()
}

#[test]
fn merged_adapters_are_an_ordinary_checkpoint() {
    let two = MirroredStrategy::logical(2)
        .expect("logical devices")
        .strategy();
    let base = tiny_bert(0.0);
    let model = adapted(Some(&two), &base, lora().targets(["query", "output.dense"]));
    let args = plain_args().optimizer(AdamW::new(0.01));
    model.compile(args).expect("valid arguments");
    model.fit(&sentences(13), fit()).expect("it trains");
    let (root, trained) = (
        TempDir::new().expect("a temporary folder"),
        probabilities(&model),
    );
    let (adapters, whole) = (root.path().join("adapters"), root.path().join("whole"));
    model.save_pretrained(&adapters).expect("room");
    assert!(!adapters.join("model.safetensors").exists());
    let load = |folder: &std::path::Path| {
        let path = folder.to_str().expect("a path in UTF-8");
        BertForSequenceClassification::from_pretrained(path, 3).expect("it loads")
    };
    // The adapters on their base have the very bits, and are trained as before.
    let again = load(&adapters);
    assert_eq!(probabilities(&again), trained);
    assert_eq!(again.label_names(), ["blue", "green", "red"]);
    assert!(weights(&again) == weights(&model));
    assert_eq!(again.summary().trainable(), model.summary().trainable());
    assert_eq!(
        again.add_lora(lora()).expect_err("it has some").code,
        "SC0140"
    );

    model.merge_lora().expect("it has adapters");
    let near = |found: Vec<f64>| {
        let off = found
            .iter()
            .zip(&trained)
            .map(|(found, it)| (found - it).abs());
        assert!(off.fold(0.0, f64::max) <= 1e-5);
    };
    near(probabilities(&model));
    assert_eq!(model.num_parameters(), self::load(&base).num_parameters());
    assert_eq!(model.summary().trainable(), Some(model.num_parameters()));
    assert_eq!(
        model.merge_lora().expect_err("they are merged").code,
        "SC0140"
    );
    model.save_pretrained(&whole).expect("room");
    near(probabilities(&load(&whole)));
    // It is trained as a whole from here on.
    model.compile(plain_args()).expect("valid arguments");
    model
        .fit(&sentences(13), fit().epochs(1))
        .expect("it trains");
}

/// A part of the body that was trained beside the adapters is in their file, also when they are saved once more.
#[test]
fn what_was_trained_beside_the_adapters_is_kept() {
    let (base, root) = (tiny_bert(0.0), TempDir::new().expect("a temporary folder"));
    let model = adapted(None, &base, lora());
    let layer = "bert.encoder.layer.1.output";
    for part in ["bert.pooler", layer] {
        model.unfreeze(part).expect("it is there");
    }
    let args = plain_args().optimizer(AdamW::new(0.01));
    model.compile(args).expect("valid arguments");
    model.fit(&sentences(13), fit()).expect("it trains");
    // It is no longer what the base has.
    model.freeze(layer).expect("it is there");
    let [first, second] = ["first", "second"].map(|name| root.path().join(name));
    let load = |folder: &std::path::Path| {
        let path = folder.to_str().expect("a path in UTF-8");
        BertForSequenceClassification::from_pretrained(path, 3).expect("it loads")
    };
    // What was unfrozen for a look alone has the values of the base, and is not written.
    let looked_at = "bert.encoder.layer.0.output";
    model.unfreeze(looked_at).expect("it is there");
    model.freeze(looked_at).expect("it is there");
    model.save_pretrained(&first).expect("room");
    let config = std::fs::read_to_string(first.join("adapter_config.json")).expect("it is there");
    assert!(
        config.contains(layer) && !config.contains(looked_at),
        "{config}"
    );
    let again = load(&first);
    assert!(weights(&again) == weights(&model));
    model.unfreeze(layer).expect("it is there");
    assert_eq!(again.summary().trainable(), model.summary().trainable());
    again.save_pretrained(&second).expect("room");
    assert!(weights(&load(&second)) == weights(&model));
}

#[test]
fn every_head_takes_adapters() {
    let folder = tiny_bert(0.1);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let count =
        |receipt: Result<stratoscope_models::LoraReceipt>| receipt.expect("adapters").layers.len();
    let tokens = BertForTokenClassification::from_pretrained(path, 3).expect("it loads");
    let answers = BertForQuestionAnswering::from_pretrained(path).expect("it loads");
    let masked = BertForMaskedLM::from_pretrained(path).expect("it loads");
    let vectors = BertForSentenceEmbedding::from_pretrained(path).expect("it loads");
    assert_eq!(count(tokens.add_lora(lora())), 4);
    assert_eq!(count(answers.add_lora(lora())), 4);
    assert_eq!(count(masked.add_lora(lora())), 4);
    assert_eq!(count(vectors.add_lora(lora())), 4);
    // Each head is trained as a whole; the decoder is the word embeddings, which are frozen.
    let trained = |rows: Vec<(String, bool)>, head: &str| {
        for (name, is_trained) in rows {
            let expected = name.contains("lora_") || (!head.is_empty() && name.starts_with(head));
            assert_eq!(is_trained, expected, "{name}");
        }
    };
    macro_rules! rows {
        ($model:ident) => {
            ($model
                .placement()
                .expect("the devices answer")
                .variables
                .iter())
            .map(|row| (row.name.clone(), row.trainable))
            .collect()
        };
    }
    trained(rows!(tokens), "classifier.");
    trained(rows!(answers), "qa_outputs.");
    trained(rows!(masked), "cls.");
    trained(rows!(vectors), "");
    let loss = masked
        .compile(plain_args().loss(cross_entropy()))
        .and_then(|_| masked.fit(&sentences(8), FitArgs::new().batch_size(4).verbose(false)));
    loss.expect("it trains");
    masked.merge_lora().expect("it has adapters");
}

#[test]
fn what_makes_no_adapters_is_refused() {
    let folder = tiny_bert(0.0);
    let model = load(&folder);
    let refused = |lora: Lora, part: &str| {
        let finding = model.add_lora(lora).expect_err(part);
        assert_eq!(finding.code, "SC0103");
        assert!(finding.message.contains(part), "{}", finding.message);
        finding
    };
    refused(Lora::new(0), "rank = 0");
    refused(Lora::new(-3), "rank = -3");
    refused(Lora::new(33), "an integer from 1 to 32");
    refused(Lora::new(2).alpha(0), "alpha = 0");
    refused(Lora::new(2).alpha(f64::NAN), "alpha = NaN");
    refused(Lora::new(2).dropout(1.0), "dropout = 1");
    refused(Lora::new(2).targets(Vec::<String>::new()), "targets = []");
    let misspelt = refused(
        Lora::new(2).targets(["query", "valeu"]),
        "targets = \"valeu\"",
    );
    let first = misspelt.fixes.first().map(|fix| fix.title.clone());
    assert!(
        first.is_some_and(|title| title.contains("`value`")),
        "{:?}",
        misspelt.fixes
    );
    assert_eq!(
        model.summary().trainable(),
        Some(model.num_parameters()),
        "nothing has changed"
    );
    assert_eq!(
        model.merge_lora().expect_err("there are none").code,
        "SC0140"
    );
    model.add_lora(lora()).expect("adapters");
    assert_eq!(
        model.add_lora(lora()).expect_err("it has some").code,
        "SC0140"
    );
    let late = load(&folder);
    late.compile(plain_args()).expect("valid arguments");
    let late = late.add_lora(lora()).expect_err("it is compiled");
    assert_eq!(
        (late.code.as_str(), late.message.as_str()),
        ("SC0140", "adapters are added before `compile!`")
    );
}

/// It needs a GPU; Mesa's software one is enough. With `STRATOSCOPE_FULL_TESTS` only.
#[test]
fn adapters_on_gpu() {
    if !is_full() {
        return;
    }
    let Some(device) = one_gpu() else {
        return;
    };
    let run = |strategy: Option<&Strategy>| {
        let folder = tiny_bert(0.1);
        let model = adapted(strategy, &folder, lora().targets(["query"]));
        let args = plain_args().optimizer(SGD::new(0.1));
        model.compile(args).expect("valid arguments");
        let history = model
            .fit(&sentences(8), fit().epochs(1))
            .expect("it trains");
        let loss = history.epochs[0].loss;
        model.merge_lora().expect("it has adapters");
        (loss, probabilities(&model))
    };
    let (found, expected) = (run(Some(&device)), run(None));
    assert_near(found.0, expected.0);
    for (found, expected) in found.1.iter().zip(&expected.1) {
        assert!((found - expected).abs() <= 1e-4, "{found}, not {expected}");
    }
}
