//! `GradualUnfreezing`: which variables move in which epoch, and that a run that is turned back, interrupted or resumed
//! has the bits of one that was not.

use std::collections::BTreeSet;

use stratoscope_data::make_regression;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Dense, EarlyStopping, FitArgs,
    GradualUnfreezing, MeanSquaredError, SGD, Sequential,
};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, Strategy, scope};
use tempfile::TempDir;

use crate::support::{cross_entropy, load, plain_args, sentences, tiny_bert, weights};

fn model(strategy: Option<&Strategy>) -> BertForSequenceClassification {
    let _scope = strategy.map(|it| scope::enter(it).expect("no scope is active"));
    let model = load(&tiny_bert(0.1));
    let args = plain_args().loss(cross_entropy());
    model
        .compile(args.optimizer(AdamW::new(1e-3)))
        .expect("valid arguments");
    model
}

fn fit(epochs: u64) -> FitArgs<'static> {
    FitArgs::new()
        .batch_size(4)
        .epochs(epochs)
        .seed(5)
        .verbose(false)
        .callbacks(GradualUnfreezing::new())
}

/// Where the variables are that have moved: `head`, `embeddings`, or the number of a layer.
fn moved(before: &[(String, Vec<f32>)], after: &[(String, Vec<f32>)]) -> BTreeSet<String> {
    let pairs = before.iter().zip(after);
    let changed = pairs.filter(|(before, after)| before != after);
    let place = changed.map(|((name, _), _)| match name.split_once("layer.") {
        Some((_, rest)) => rest.split('.').next().expect("a number").to_owned(),
        None if name.contains("embeddings") => "embeddings".to_owned(),
        None => "head".to_owned(),
    });
    place.collect()
}

#[test]
fn a_layer_more_is_trained_in_each_epoch() {
    let data = sentences(8);
    let model = model(None);
    let run = model.start(&data, fit(4)).expect("it starts");
    let mut seen = Vec::new();
    let mut before = weights(&model);
    for _ in 0..4 {
        run.epoch().expect("it steps");
        let after = weights(&model);
        seen.push(
            moved(&before, &after)
                .into_iter()
                .collect::<Vec<_>>()
                .join(" "),
        );
        before = after;
    }
    assert_eq!(seen, ["head", "1 head", "0 1 head", "0 1 embeddings head"]);
    let history = run.finish().expect("it ends");
    let edits: Vec<String> = history.edits.iter().map(ToString::to_string).collect();
    assert_eq!(edits.len(), 4, "{edits:?}");
    assert!(edits[1].contains("encoder layer 1"), "{edits:?}");
    assert!(edits[3].contains("embeddings"), "{edits:?}");
}

#[test]
fn what_was_frozen_before_stays_so_and_the_rest_is_free_afterwards() {
    let data = sentences(8);
    let model = model(None);
    model.freeze("bert.encoder.layer.1").expect("it is there");
    model
        .freeze("bert.embeddings.word_embeddings")
        .expect("it is there");
    let before = weights(&model);
    model.fit(&data, fit(2)).expect("it trains");
    // The layer that is frozen for good is none of those that are released.
    assert_eq!(
        moved(&before, &weights(&model))
            .into_iter()
            .collect::<Vec<_>>(),
        ["0", "head"]
    );
    let before = weights(&model);
    let plain = FitArgs::new().batch_size(4).verbose(false);
    model.fit(&data, plain).expect("it trains");
    let after = weights(&model);
    let found: Vec<_> = moved(&before, &after).into_iter().collect();
    assert_eq!(found, ["0", "embeddings", "head"]);
    let fixed = |all: &[(String, Vec<f32>)]| {
        let is_fixed = |name: &str| name.contains("word_embeddings");
        all.iter().find(|it| is_fixed(&it.0)).cloned()
    };
    assert_eq!(fixed(&before), fixed(&after));
}

/// To each step and on again, of one device and of two replicas.
#[test]
fn turned_back_it_has_the_same_bits() {
    let data = sentences(8);
    let mirrored = MirroredStrategy::logical(2).expect("two").strategy();
    for strategy in [None, Some(&mirrored)] {
        let reference = model(strategy);
        let whole = reference.fit(&data, fit(4)).expect("it trains");
        let expected = weights(&reference);
        let changed = model(strategy);
        let run = changed.start(&data, fit(4)).expect("it starts");
        run.keep_snapshots(3, 1000).expect("a size");
        run.until(7).expect("it steps");
        let late = weights(&changed);
        for step in [6, 5, 4, 3, 2, 1, 0] {
            let rewound = run.rewind(step).expect("it was made");
            assert_eq!((rewound.step, rewound.differs), (step, None), "{rewound}");
            run.until(7).expect("it steps");
            assert!(weights(&changed) == late, "{step}");
        }
        let history = run.finish().expect("it ends");
        assert!(weights(&changed) == expected);
        assert_eq!(history.edits, whole.edits);
    }
}

#[test]
fn a_complete_checkpoint_goes_on_with_the_same_layers() {
    let data = sentences(8);
    let reference = model(None);
    let folder = TempDir::new().expect("a temporary folder");
    let args = fit(4).checkpoint(folder.path()).every(1).keep_last(100);
    reference.fit(&data, args).expect("it trains");
    let expected = weights(&reference);
    let mut resumed = 0;
    let entries = std::fs::read_dir(folder.path()).expect("checkpoints");
    let paths = entries.map(|entry| entry.expect("readable").path());
    for path in paths.filter(|path| path.join("manifest.json").exists()) {
        let model = model(None);
        model
            .fit(&data, fit(4).resume_from(&path))
            .expect("it goes on");
        assert!(weights(&model) == expected, "{}", path.display());
        resumed += 1;
    }
    assert!(resumed >= 7, "{resumed}");
}

/// The weights of the best epoch are of a time when a layer was frozen that is trained now.
#[test]
fn what_was_unfrozen_after_the_best_epoch_is_trained_afterwards() {
    let data = sentences(8);
    let model = model(None);
    let lower = "bert.encoder.layer.0";
    model.freeze(lower).expect("it is there");
    // No loss is better by more than 100: the first epoch stays the best.
    let stopping = EarlyStopping::new().monitor("loss").min_delta(100.0);
    let plain = || FitArgs::new().batch_size(4).verbose(false);
    let args = plain().epochs(3).early_stopping(stopping.patience(3));
    let run = model.start(&data, args).expect("it starts");
    run.epoch().expect("it steps");
    run.unfreeze(lower).expect("it is there");
    let history = run.finish().expect("it ends");
    assert!(history.restored_best && history.best_epoch == Some(0));
    let before = weights(&model);
    model.fit(&data, plain()).expect("it trains");
    let found = moved(&before, &weights(&model));
    let found: Vec<_> = found.into_iter().collect();
    assert_eq!(found, ["0", "1", "embeddings", "head"]);
}

#[test]
fn what_cannot_be_unfrozen_is_refused() {
    let data = sentences(4);
    let check = |model: &BertForSequenceClassification, args: FitArgs<'_>, code: &str| {
        let refused = model.fit(&data, args).expect_err("refused");
        assert_eq!(refused.code.as_str(), code, "{refused}");
    };
    let bert = model(None);
    let never = FitArgs::new().callbacks(GradualUnfreezing::new().every(0));
    check(&bert, never.verbose(false), "SC0103");
    let twice = stratoscope_models::Callbacks::new()
        .and(GradualUnfreezing::new())
        .and(GradualUnfreezing::new());
    check(
        &bert,
        FitArgs::new().callbacks(twice).verbose(false),
        "SC0103",
    );
    bert.freeze("classifier").expect("it is there");
    bert.freeze("bert.pooler").expect("it is there");
    check(&bert, fit(1), "SC0111");
    let rows = Sequential([Dense(1).seed(1)]).expect("a layer");
    let args = CompileArgs::new().loss(MeanSquaredError);
    rows.compile(args.optimizer(SGD::new(0.1))).expect("valid");
    let data = make_regression(8, 3, 0).expect("sizes above 0");
    let refused = rows.fit(&data, fit(1)).expect_err("no encoder layers");
    assert_eq!(refused.code.as_str(), "SC0103");
}
