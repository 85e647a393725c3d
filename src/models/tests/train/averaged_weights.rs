//! Models whose weights are means: the values, labels and strategies, and what is refused.

use stratoscope_models::{BertForSequenceClassification, Dense, FitArgs, Model, SGD, Sequential};
use stratoscope_strategy::{AsStrategy, MirroredStrategy, scope};
use tempfile::TempDir;

use crate::support::{load, plain_args, sentences, tiny_bert};

fn values(model: &Model) -> Vec<(String, Vec<f32>)> {
    let values = model.variables().into_iter();
    values
        .map(|(name, data)| (name, data.iter().collect()))
        .collect()
}

fn trained(seed: u64) -> BertForSequenceClassification {
    let model = load(&tiny_bert(0.1));
    model.compile(plain_args()).expect("valid arguments");
    let args = FitArgs::new().batch_size(8).seed(seed).verbose(false);
    model.fit(&sentences(32), args).expect("it trains");
    model
}

#[test]
fn a_weight_is_the_mean_of_those_of_the_models() {
    let models: Vec<_> = (0..3).map(trained).collect();
    let mean: BertForSequenceClassification = Model::average(&models).expect("built alike");
    let each: Vec<_> = models.iter().map(|model| values(model)).collect();
    for (at, (name, found)) in values(&mean).into_iter().enumerate() {
        for (element, found) in found.into_iter().enumerate() {
            let of = |model: &Vec<(String, Vec<f32>)>| f64::from(model[at].1[element]);
            // As numpy: `np.mean([a, b, c], axis=0, dtype=np.float64).astype(np.float32)`.
            let expected = (of(&each[0]) + of(&each[1]) + of(&each[2])) / 3.0;
            assert_eq!(found, expected as f32, "{name} {element}");
        }
    }
    assert_eq!(mean.label_names(), models[0].label_names());
    assert_eq!(values(&models[0]), each[0], "the models do not change");
    // It is a model like others: compiled, trained, saved, loaded.
    mean.compile(plain_args()).expect("valid arguments");
    let folder = TempDir::new().expect("a folder");
    mean.save_pretrained(folder.path()).expect("room");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let loaded = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
    assert_eq!(values(&loaded), values(&mean));
    let args = FitArgs::new().batch_size(8).verbose(false);
    mean.fit(&sentences(16), args).expect("it trains");
    assert_ne!(values(&loaded), values(&mean));
    assert_eq!(
        values(&models[0]),
        each[0],
        "the mean has memory of its own"
    );
}

#[test]
fn one_model_is_its_own_mean_and_a_strategy_is_kept() {
    let strategy = MirroredStrategy::logical(2).expect("two").strategy();
    let model = {
        let _scope = scope::enter(&strategy).expect("a scope");
        load(&tiny_bert(0.0))
    };
    model
        .compile(plain_args().optimizer(SGD::new(0.01)))
        .expect("valid");
    let other = trained(1);
    let alone: BertForSequenceClassification = Model::average([&model]).expect("one");
    assert_eq!(values(&alone), values(&model));
    let mean: BertForSequenceClassification =
        Model::average([&model, &other]).expect("built alike");
    assert_eq!(mean.strategy().as_ref(), Some(&strategy));
    let twice: Vec<Vec<f32>> = [&model, &other]
        .map(|it| values(it).swap_remove(0).1)
        .into_iter()
        .collect();
    let expected = (f64::from(twice[0][0]) + f64::from(twice[1][0])) / 2.0;
    assert_eq!(values(&mean)[0].1[0], expected as f32);
    // On both devices.
    mean.compile(plain_args().optimizer(SGD::new(0.01)))
        .expect("valid");
    let args = FitArgs::new().batch_size(8).verbose(false);
    mean.fit(&sentences(16), args).expect("it trains");
    let copies = mean.placement().expect("a report").to_plain();
    assert!(
        copies.contains("cpu:0") && copies.contains("cpu:1"),
        "{copies}"
    );
}

#[test]
fn models_that_are_built_otherwise_are_refused() {
    let layers = |units: usize| {
        let layers = [Dense(units).input_shape(6).seed(1), Dense(3).seed(2)];
        Sequential(layers).expect("two layers")
    };
    let built = |units: usize| {
        let model = layers(units);
        model.build((None, 6)).expect("it is built");
        model
    };
    let refused = |models: &[&Model], words: &str| {
        let handles: Vec<Model> = models.iter().map(|&it| it.clone()).collect();
        let problem = Model::average(&handles).expect_err("refused");
        let text = format!("{problem} {problem:?}");
        assert!(problem.code == "SC0103" && text.contains(words), "{text}");
    };
    refused(&[], "at least one model");
    refused(&[&built(4), &built(5)], "model 1 with");
    let bert = trained(0);
    refused(&[&built(4), &bert], "variables");
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let labels = ["a", "b", "c"];
    let renamed = BertForSequenceClassification::from_pretrained_labels(path, labels);
    let renamed = renamed.expect("the fixture loads");
    refused(&[&bert, &renamed], "the labels");
    let waiting = Sequential([Dense(4), Dense(3)]).expect("two layers");
    refused(&[&waiting], "not built");
    let mean = Model::average(&[built(4), built(4)]).expect("built alike");
    assert_eq!(values(&mean), values(&built(4)));
}
