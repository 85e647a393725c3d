//! Accumulated batches of tagged words and of masked tokens: a step divides by the tokens of all of its batches, so that it
//! is the step of the same rows in one batch. transformers counts them in the same way since 4.46.

use std::fmt::Write;

use stratoscope_data::{Data, Dataset, IntoData, Stream};
use stratoscope_models::{
    CompileArgs, EvaluateArgs, FitArgs, History, Metric, Model, SGD, accuracy,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, CrossDeviceOps, OneDeviceStrategy, ParameterServerStrategy,
    Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::masked_lm::{lm, repeated};
use crate::support::{
    assert_near, assert_near_weights, cross_entropy, sentences, tiny_bert, weights,
};
use crate::token_classification::{tagged, tagger};
use crate::workers::{logical, workers};

type Weights = Vec<(String, Vec<f32>)>;

/// What a run leaves: its weights, the loss of each step and of the epoch.
type Left = (Weights, Vec<f64>, f64);

fn descent(metric: Metric) -> CompileArgs {
    CompileArgs::new()
        .optimizer(SGD::new(0.5))
        .loss(cross_entropy())
        .metrics([metric])
}

fn fit_args(batch_size: usize) -> FitArgs<'static> {
    FitArgs::new().batch_size(batch_size).seed(5).verbose(false)
}

fn left(model: &Model, history: &History) -> Left {
    let steps = history.steps.iter().map(|step| step.loss).collect();
    (weights(model), steps, history.epochs[0].loss)
}

/// Trains a model in steps of `accumulation` batches.
fn trained<'a>(
    model: &Model,
    metric: Metric,
    data: impl IntoData<'a>,
    (batch_size, accumulation): (usize, usize),
) -> History {
    let args = descent(metric).gradient_accumulation_steps(accumulation);
    model.compile(args).expect("valid arguments");
    let data: Data = data.into_data();
    model.fit(data, fit_args(batch_size)).expect("it trains")
}

/// The heads whose labels are not one for each example, trained by a strategy; 13 rows, so that the last step is short.
#[derive(Clone, Copy, Debug)]
enum Task {
    Tags,
    Masks,
}

fn run(task: Task, strategy: &Strategy, batches: (usize, usize)) -> Left {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let folder = tiny_bert(0.0);
    match task {
        Task::Tags => {
            let model = tagger(&folder, 4);
            let history = trained(&model, accuracy(), &tagged(13), batches);
            left(&model, &history)
        }
        Task::Masks => {
            let model = lm(&folder);
            let history = trained(&model, accuracy(), &repeated(13), batches);
            left(&model, &history)
        }
    }
}

#[track_caller]
fn assert_near_runs(found: &Left, expected: &Left) {
    assert_near_weights(&found.0, &expected.0);
    assert_eq!(found.1.len(), expected.1.len());
    for (found, expected) in found.1.iter().zip(&expected.1) {
        assert_near(*found, *expected);
    }
    assert_near(found.2, expected.2);
}

/// Two sentences, of 2 and of 20 words: each word counts once, and not ten times in the short sentence.
#[test]
fn a_word_counts_the_same_in_a_short_and_in_a_long_sentence() {
    let short = (vec!["w45", "w12"], vec!["B-PER", "O"]);
    let long = (0..20).map(|word| format!("w{}", 80 + word % 7));
    let tags = (0..20).map(|word| if word % 3 == 0 { "B-LOC" } else { "O" });
    let long = (long.collect::<Vec<_>>(), tags.collect::<Vec<_>>());
    let long = (long.0.iter().map(String::as_str).collect(), long.1);
    let data = Dataset::from_words([short, long]).expect("a tag for each word");
    let run = |batches: (usize, usize)| {
        let model = tagger(&tiny_bert(0.0), 3);
        let history = trained(&model, accuracy(), &data, batches);
        left(&model, &history)
    };
    let (accumulated, whole) = (run((1, 2)), run((2, 1)));
    assert_near_runs(&accumulated, &whole);

    // By the definition, from the means over the words of each sentence.
    let model = tagger(&tiny_bert(0.0), 3);
    model.compile(descent(accuracy())).expect("valid arguments");
    let mean = |sentence: usize| {
        let args = EvaluateArgs::new().verbose(false);
        let found = model.evaluate(&data.skip(sentence).take(1), args);
        found.expect("it is evaluated").loss
    };
    let (of_short, of_long) = (mean(0), mean(1));
    assert_near(accumulated.2, (2.0 * of_short + 20.0 * of_long) / 22.0);
    let of_means = (of_short + of_long) / 2.0;
    assert!((accumulated.2 - of_means).abs() > 0.01, "{of_means}");
}

// Questions are left out: the loss of a window is over all positions of its batch, padding included, as in transformers.
#[test]
fn steps_of_several_batches_are_those_of_one_batch_on_all_strategies() {
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    let strategies = [
        one.strategy(),
        logical(2).strategy(),
        logical(3).cross_device_ops(CrossDeviceOps::Ring).strategy(),
        central.strategy(),
        servers.synchronous().strategy(),
    ];
    for task in [Task::Tags, Task::Masks] {
        let expected = run(task, &strategies[0], (6, 1));
        for strategy in &strategies {
            for batches in [(2, 3), (3, 2), (1, 6)] {
                println!("{task:?} on {strategy}, {batches:?}");
                assert_near_runs(&run(task, strategy, batches), &expected);
            }
        }
    }
}

#[test]
fn workers_divide_by_the_tokens_of_the_step() {
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    for task in [Task::Tags, Task::Masks] {
        let found = run(task, &workers(2).strategy(), (2, 3));
        assert!(found == run(task, &logical(2).strategy(), (2, 3)), "bits");
        assert_near_runs(&found, &run(task, &one.strategy(), (6, 1)));
    }
}

#[test]
fn an_execution_is_the_mean_over_its_tokens() {
    let losses = |batches: (usize, usize), steps_per_execution: usize| {
        let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
        let _scope = scope::enter(&one).expect("no scope is active");
        let model = tagger(&tiny_bert(0.0), 4);
        let args = descent(accuracy())
            .gradient_accumulation_steps(batches.1)
            .steps_per_execution(steps_per_execution);
        model.compile(args).expect("valid arguments");
        let history = model
            .fit(&tagged(12), fit_args(batches.0))
            .expect("it trains");
        let executions = history.executions.iter().map(|it| it.loss);
        let steps = history.steps.iter().map(|it| it.loss);
        (executions.collect::<Vec<_>>(), steps.collect::<Vec<_>>())
    };
    let (executions, steps) = losses((2, 3), 3);
    assert_eq!(executions, steps);
    // Of a batch alone it is the mean over that batch, as if it were a step by itself.
    let (alone, _) = losses((2, 3), 1);
    let (of_batches, _) = losses((2, 1), 1);
    assert_near(alone[0], of_batches[0]);
    assert_eq!(alone.len(), 6);
}

#[test]
fn a_stream_and_a_run_that_was_turned_back_have_the_same_bits() {
    let data = tagged(13);
    let mut lines = String::new();
    for example in &data.examples {
        for word in example.words().expect("words") {
            let tag = word.tag.expect("a tag");
            let (text, tag) = (&example.text[word.range.clone()], &data.label_names[tag]);
            writeln!(lines, "{text} {tag}").expect("room");
        }
        lines.push('\n');
    }
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("train.conll");
    std::fs::write(&path, lines).expect("room");
    let path = path.to_str().expect("a path in UTF-8");
    let held = Dataset::conll(path).expect("it is read");
    let streamed = Stream::conll(path).expect("it is read");
    let model = || tagger(&tiny_bert(0.1), 4);
    let (of_held, of_stream) = (model(), model());
    let unshuffled = |model: &Model, data: Data<'_>| {
        let args = descent(accuracy()).gradient_accumulation_steps(3);
        model.compile(args).expect("valid arguments");
        let history = model
            .fit(data, fit_args(2).shuffle(false))
            .expect("it trains");
        left(model, &history)
    };
    let expected = unshuffled(&of_held, (&held).into_data());
    assert!(unshuffled(&of_stream, (&streamed).into_data()) == expected);

    let turned = model();
    let args = descent(accuracy()).gradient_accumulation_steps(3);
    turned.compile(args).expect("valid arguments");
    let started = turned
        .start(&held, fit_args(2).shuffle(false))
        .expect("it starts");
    started.step(2).expect("two steps");
    started.rewind(1).expect("a step back");
    let history = started.finish().expect("it trains");
    assert!(left(&turned, &history) == expected);
}

/// Examples have a count that the plan knows: nothing is weighed, and the bits are those of the examples' mean.
#[test]
fn losses_of_examples_are_means_over_examples() {
    let run = |batches: (usize, usize)| {
        let model = crate::support::load(&tiny_bert(0.0));
        let history = trained(&model, accuracy(), &sentences(13), batches);
        left(&model, &history)
    };
    assert_near_runs(&run((2, 3)), &run((6, 1)));
}
