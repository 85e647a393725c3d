//! The whole way: a model learns, is measured, is saved and loaded, and answers as before.

use stratoscope_models::{
    AdamW, BertForSequenceClassification, EvaluateArgs, FitArgs, accuracy, macro_f1,
};
use stratoscope_strategy::{MirroredStrategy, scope};
use tempfile::TempDir;

use crate::support::{
    assert_near, contradicted, cross_entropy, load, plain_args, sentences, tiny_bert, weights,
};

#[test]
fn a_model_learns_is_saved_and_answers_the_same() {
    let (train, dev) = sentences(120).split(0.25).expect("both parts have some");
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let model = {
        let _scope = scope::enter(&strategy).expect("no scope is active");
        load(&tiny_bert(0.1))
    };
    let args = plain_args().optimizer(AdamW::new(3e-3).global_clipnorm(1.0));
    let receipt = model
        .compile(args.metrics([accuracy(), macro_f1()]))
        .expect("valid arguments");
    assert!(
        receipt
            .to_plain()
            .contains("biases and LayerNorm are not decayed"),
        "{receipt}"
    );
    let planned = receipt.placement.to_plain();
    assert!(planned.contains("planned"), "{planned}");

    let args = FitArgs::new()
        .epochs(12)
        .batch_size(8)
        .validation_data(&dev)
        .verbose(false);
    let history = model.fit(&train, args).expect("it trains");
    let losses: Vec<f64> = history.epochs.iter().map(|record| record.loss).collect();
    assert!(losses[11] < 0.5 * losses[0], "{losses:?}");
    let last = history.epochs[11]
        .validation
        .as_ref()
        .expect("it was validated");
    assert!(last.metric("accuracy") > Some(0.9), "{history}");
    let measured = model
        .evaluate(&dev, EvaluateArgs::new())
        .expect("it is compiled");
    assert_near(measured.loss, last.loss);
    assert_eq!(measured.metrics, last.metrics);
    let placement = model.placement().expect("the devices answer");
    assert!(placement.copies_are_equal());
    assert!(
        !placement.to_plain().contains("planned"),
        "{}",
        placement.to_plain()
    );

    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let again = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
    assert_eq!(again.label_names(), ["blue", "green", "red"]);
    let (before, after) = (model.predict(&dev), again.predict(&dev));
    let (before, after) = (before.expect("answers"), after.expect("answers"));
    assert_eq!(before.labels(), after.labels());
    for (left, right) in before.rows.iter().zip(&after.rows) {
        assert_near(left.score, right.score);
    }
    assert_eq!(again.predict("w12 w15").expect("an answer").len(), 1);
}

/// A model that knows the validation data is taught the contrary: the first epoch is the best.
#[test]
fn early_stopping_goes_back_to_the_best_epoch() {
    let (data, known) = (sentences(12), contradicted(&sentences(12)));
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().optimizer(AdamW::new(3e-3)))
        .expect("valid arguments");
    let args = || FitArgs::new().batch_size(4).verbose(false);
    model.fit(&known, args().epochs(80)).expect("it trains");
    let args = args().epochs(20).validation_data(&known).early_stopping(2);
    let history = model.fit(&data, args).expect("it trains");
    assert!(history.stopped_early && history.restored_best, "{history}");
    assert_eq!((history.best_epoch, history.epochs.len()), (Some(0), 3));
    let loss = |epoch: usize| {
        let validation = history.epochs[epoch].validation.as_ref();
        validation.expect("it was validated").loss
    };
    assert!(loss(2) > 1.01 * loss(0), "{history}");
    let now = model
        .evaluate(&known, EvaluateArgs::new())
        .expect("it is compiled")
        .loss;
    assert_near(now, loss(0));
}

/// The last epoch is not validated: it is not the best one, so that its weights are not those that stay.
#[test]
fn early_stopping_goes_back_over_epochs_without_validation() {
    let (data, known) = (sentences(12), contradicted(&sentences(12)));
    let model = load(&tiny_bert(0.0));
    model
        .compile(plain_args().optimizer(AdamW::new(3e-3)))
        .expect("valid arguments");
    let args = FitArgs::new().batch_size(4).verbose(false).epochs(3);
    let args = args
        .validation_data(&known)
        .validation_freq(2)
        .early_stopping(2);
    let history = model.fit(&data, args).expect("it trains");
    assert!(!history.stopped_early && history.restored_best, "{history}");
    assert_eq!((history.best_epoch, history.epochs.len()), (Some(1), 3));
    let validation = history.epochs[1].validation.as_ref();
    let now = model
        .evaluate(&known, EvaluateArgs::new())
        .expect("it is compiled")
        .loss;
    assert_near(now, validation.expect("it was validated").loss);
}

#[test]
fn validation_split_is_the_end_of_the_data() {
    let model = load(&tiny_bert(0.0));
    model.compile(plain_args()).expect("valid arguments");
    let args = FitArgs::new()
        .batch_size(5)
        .validation_split(0.25)
        .verbose(false);
    let history = model.fit(&sentences(20), args).expect("it trains");
    let validation = history.epochs[0]
        .validation
        .as_ref()
        .expect("a quarter validates");
    assert_eq!((validation.examples, history.counters.batches), (5, 3));
}

/// A second `fit!` goes on with the moments; a second `compile!` begins with new ones.
#[test]
fn moments_live_from_compile_to_compile() {
    let data = sentences(12);
    let args = || FitArgs::new().batch_size(4).shuffle(false).verbose(false);
    let run = |compile_again: bool| {
        let model = load(&tiny_bert(0.0));
        model.compile(plain_args()).expect("valid arguments");
        model.fit(&data, args()).expect("it trains");
        if compile_again {
            model
                .compile(plain_args().loss(cross_entropy()))
                .expect("valid arguments");
        }
        model.fit(&data, args()).expect("it trains");
        weights(&model)
    };
    assert!(run(false) != run(true));
    let twice = load(&tiny_bert(0.0));
    twice.compile(plain_args()).expect("valid arguments");
    twice.fit(&data, args().epochs(2)).expect("it trains");
    // Without shuffling and dropout two runs of an epoch are one run of two.
    assert_eq!(run(false), weights(&twice));
}
