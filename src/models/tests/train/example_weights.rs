//! Weights of examples: an example of weight 2 trains like one that is there twice.

use stratoscope_data::{Columns, Dataset, Example, Label, Stream};
use stratoscope_models::{
    BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification,
    BinaryCrossentropy, CompileArgs, EvaluateArgs, FitArgs, IntoLoss, LoadOptions, Loss,
    MeanSquaredError, Model, ModelOf, Network, SGD, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, ParameterServerStrategy, Strategy, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near, assert_near_weights, cross_entropy, load, sentences, tiny_bert, weights,
};
use crate::token_classification::{tagged, tagger};
use crate::workers::workers;

/// Weights of whole numbers, and the data with each example as often as its weight says.
fn both(data: &Dataset) -> (Dataset, Dataset) {
    let of_row = |row: usize| [1, 3, 2, 0][row % 4];
    let weighted = (0..data.len()).map(|row| f64::from(of_row(row)));
    let weighted = data.clone().with_weights(weighted).expect("weights");
    let rows = data.examples.iter().enumerate();
    let rows = rows.flat_map(|(row, example)| vec![example.clone(); of_row(row) as usize]);
    let repeated = Dataset {
        examples: rows.collect(),
        ..data.clone()
    };
    (weighted, repeated)
}

/// Weights, loss of the epoch and of an evaluation after it, of one step with all examples.
fn trained(
    model: &Model,
    (data, loss): (&Dataset, impl IntoLoss),
    of: usize,
) -> (Vec<(String, Vec<f32>)>, f64, f64) {
    // The mean is over examples, whatever they count: that of the repeated ones is of more of them.
    let rate = 0.5 * data.len() as f64 / of as f64;
    let args = CompileArgs::new().optimizer(SGD::new(rate)).loss(loss);
    model.compile(args).expect("valid arguments");
    let fit = FitArgs::new()
        .batch_size(1000)
        .shuffle(false)
        .verbose(false);
    let history = model.fit(data, fit).expect("it trains");
    let args = EvaluateArgs::new().batch_size(7).verbose(false);
    let found = model.evaluate(data, args).expect("it is evaluated");
    let share = data.len() as f64 / of as f64;
    (
        weights(model),
        share * history.epochs[0].loss,
        share * found.loss,
    )
}

#[track_caller]
fn same<N: Network>(new: impl Fn() -> ModelOf<N>, data: &Dataset, loss: Loss) {
    let (weighted, repeated) = both(data);
    let found = trained(&new(), (&weighted, loss), data.len());
    let expected = trained(&new(), (&repeated, loss), data.len());
    assert_near_weights(&found.0, &expected.0);
    assert_near(found.1, expected.1);
    assert_near(found.2, expected.2);
    let plain = trained(&new(), (data, loss), data.len());
    assert!((plain.1 - found.1).abs() > 1e-4, "{} {}", plain.1, found.1);
}

#[test]
fn a_weight_is_how_often_an_example_counts() {
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("a path in UTF-8");
    let sentences = sentences(13);
    same(
        || load(&folder),
        &sentences,
        cross_entropy().into_loss().expect("a loss"),
    );
    let own = Loss::of_classes("square", |outputs, _| {
        outputs.powi_scalar(2).sum_dim(1).squeeze_dim(1)
    });
    same(|| load(&folder), &sentences, own);

    let number = |(row, example): (usize, &Example)| {
        example
            .clone()
            .with_label(Label::Value(row as f32 / 7.0 - 1.0))
    };
    let numbers = sentences.examples.iter().enumerate().map(number);
    let numbers = Dataset::from_examples(numbers, Vec::new(), "numbers");
    let options = LoadOptions::new().num_labels(1).new_head();
    let one = || {
        BertForSequenceClassification::from_pretrained_with(path, &options)
            .expect("the fixture loads")
    };
    same(one, &numbers, MeanSquaredError.into_loss().expect("a loss"));

    let binary = BinaryCrossentropy { from_logits: true };
    let binary = binary.into_loss().expect("a loss");
    let sets = (0..9).map(|row| {
        let labels: Vec<&str> = ["a", "b", "c"].into_iter().take(row % 4).collect();
        (format!("w{} w{}", 10 + row, 40 + row), labels)
    });
    let sets = Dataset::from_label_sets(sets).expect("labels");
    let several = || {
        BertForSequenceClassification::from_pretrained_multi_label(path, ["a", "b", "c"])
            .expect("the fixture loads")
    };
    same(several, &sets, binary);

    let questions = (0..6).map(|row| {
        (
            "w5",
            format!("w{} w80 w{}", 10 + row, 20 + row),
            ["w80", ""][row % 2],
        )
    });
    let questions = Dataset::from_questions(questions).expect("answers");
    let answerer = || BertForQuestionAnswering::from_pretrained(path).expect("the fixture loads");
    same(
        answerer,
        &questions,
        cross_entropy().into_loss().expect("a loss"),
    );
}

/// Of tagged words the mean is over all words of a batch: what a sentence counts is what its words count.
#[test]
fn words_count_what_their_sentence_does() {
    let data = tagged(8);
    let loss = |data: &Dataset| {
        let model: BertForTokenClassification = tagger(&tiny_bert(0.0), data.label_names.len());
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.1))
            .loss(cross_entropy());
        model.compile(args).expect("valid arguments");
        let args = EvaluateArgs::new().batch_size(100).verbose(false);
        model.evaluate(data, args).expect("it is evaluated").loss
    };
    let each: Vec<f64> = (0..8).map(|row| loss(&data.skip(row).take(1))).collect();
    let words = data
        .examples
        .iter()
        .map(|it| it.words().map_or(0, <[_]>::len) as f64);
    let words: Vec<f64> = words.collect();
    let of_rows = [2.0, 0.5, 0.0, 1.0, 3.0, 1.0, 0.25, 4.0];
    let weighted = data.clone().with_weights(of_rows).expect("weights");
    let sum = |of: &dyn Fn(usize) -> f64| (0..8).map(of).sum::<f64>();
    let expected = sum(&|row| of_rows[row] * words[row] * each[row]) / sum(&|row| words[row]);
    assert_near(loss(&weighted), expected);
}

#[test]
fn strategies_and_classes_take_them() {
    let (data, _) = both(&sentences(13));
    let run = |strategy: Option<Strategy>| {
        let _scope = strategy
            .as_ref()
            .map(|it| scope::enter(it).expect("no scope is active"));
        let model = load(&tiny_bert(0.0));
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.5))
            .loss(cross_entropy());
        model
            .compile(args.metrics([accuracy()]))
            .expect("valid arguments");
        let fit = FitArgs::new()
            .batch_size(5)
            .epochs(2)
            .seed(3)
            .verbose(false);
        let history = model.fit(&data, fit.class_weight([1.0, 0.5, 2.0]));
        let epochs = history.expect("it trains").epochs;
        let epochs = epochs.iter().map(|it| (it.loss, it.metrics[0].value));
        (weights(&model), epochs.collect::<Vec<_>>())
    };
    let expected = run(None);
    let check = |strategy: Strategy| {
        let found = run(Some(strategy));
        assert_near_weights(&found.0, &expected.0);
        for (found, expected) in found.1.iter().zip(&expected.1) {
            assert_near(found.0, expected.0);
            assert_eq!(found.1, expected.1);
        }
        found.0
    };
    let mirrored = MirroredStrategy::logical(2).expect("logical devices");
    let mirrored = check(mirrored.strategy());
    let team = workers(2);
    assert!(
        check(team.strategy()) == mirrored,
        "processes: the same bits"
    );
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    assert!(check(central.strategy()) == mirrored);
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    run(Some(servers.strategy()));
}

#[test]
fn a_column_of_weights_is_read_by_data_sets_and_streams() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("weighted.csv");
    let rows = sentences(13);
    let rows = rows.examples.iter().enumerate().map(|(row, example)| {
        let label = example.label_name.as_deref().unwrap_or_default();
        format!("{},{label},{}\n", example.text, [1.0, 0.25, 3.0][row % 3])
    });
    let rows: String = rows.collect();
    std::fs::write(&path, format!("text,label,weight\n{rows}")).expect("room");
    let columns = Columns::new().weight("weight");
    let held = Dataset::csv_with(&path, &columns).expect("weights");
    let stream = Stream::csv_with(&path, &columns).expect("weights");
    assert!(
        stream.to_plain().contains("weighted from 0.25 to 3"),
        "{stream}"
    );
    let losses = |fit: &dyn Fn(&BertForSequenceClassification, FitArgs<'static>) -> f64| {
        let model = load(&tiny_bert(0.1));
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.5))
            .loss(cross_entropy());
        model.compile(args).expect("valid arguments");
        let args = FitArgs::new()
            .batch_size(4)
            .epochs(2)
            .seed(3)
            .verbose(false);
        (fit(&model, args), weights(&model))
    };
    let last = |history: stratoscope_models::History| history.epochs[1].loss;
    let of_held = losses(&|model, args| last(model.fit(&held, args).expect("it trains")));
    let of_stream = losses(&|model, args| last(model.fit(&stream, args).expect("it trains")));
    assert!(of_held == of_stream, "{} {}", of_held.0, of_stream.0);

    // What no function of ours has set is checked, too.
    for wrong in [f32::NAN, -1.0] {
        let mut data = held.clone();
        data.examples[3].weight = wrong;
        let args = FitArgs::new().verbose(false);
        let model = load(&tiny_bert(0.1));
        let compiling = CompileArgs::new()
            .optimizer(SGD::new(0.5))
            .loss(cross_entropy());
        model.compile(compiling).expect("valid arguments");
        let error = model.fit(&data, args).expect_err("it is no weight");
        assert!(
            error.code == "SC0915" && error.message.contains("row 3"),
            "{error}"
        );
    }

    // Another weight is other data.
    let kept = folder.path().join("run");
    let model = load(&tiny_bert(0.1));
    let args = CompileArgs::new()
        .optimizer(SGD::new(0.5))
        .loss(cross_entropy());
    model.compile(args).expect("valid arguments");
    let args = || FitArgs::new().batch_size(4).seed(3).verbose(false);
    let saving = args().checkpoint(kept.to_str().expect("UTF-8")).every(2);
    model.fit(&held, saving).expect("it trains");
    let going = args().resume_from(kept.to_str().expect("UTF-8"));
    let other = held.with_weights(vec![2.0; 13]).expect("weights");
    let error = model.fit(&other, going).expect_err("other weights");
    assert!(format!("{error:?}").contains("training data"), "{error:?}");
}
