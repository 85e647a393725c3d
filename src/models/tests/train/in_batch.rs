//! Sentence embeddings that learn from texts that belong together, with the other examples of a batch as negatives: the numbers of
//! sentence-transformers, replicas, streams, and what is refused.

use std::fs;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use stratoscope_data::{Columns, Dataset, Example, Label, Stream};
use stratoscope_diagnostics::Diagnostic;
use stratoscope_models::events::Observer;
use stratoscope_models::{
    AdamW, BertForSentenceEmbedding, CompileArgs, EvaluateArgs, FitArgs, IntoLoss, Loss,
    MeanSquaredError, MultipleNegativesRanking, MultipleNegativesSymmetricRanking, RunContext, SGD,
    TripletMargin, auto, pearson,
};
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, PipelineStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{fixtures, load, tiny_bert};

/// What sentence-transformers computes (`tests/parity/tiny-bert/in-batch/make.py`).
#[derive(Deserialize)]
struct Reference {
    examples: Vec<[String; 3]>,
    cases: std::collections::BTreeMap<String, Vec<Case>>,
}

#[derive(Deserialize)]
struct Case {
    texts: usize,
    loss: f64,
    gradient_norms: std::collections::BTreeMap<String, f64>,
    trace: Vec<f64>,
}

fn reference() -> Reference {
    let path = fixtures().join("in-batch/case.json");
    let text = fs::read_to_string(path).expect("the fixture's file");
    serde_json::from_str(&text).expect("as it was written")
}

impl Reference {
    /// The first examples with two or three texts.
    fn data(&self, texts: usize) -> Dataset {
        let rows = self.examples.iter().cloned();
        match texts {
            2 => Dataset::from_pairs(rows.map(|[first, second, _]| (first, second))),
            _ => Dataset::from_triplets(rows.map(|[first, second, third]| (first, second, third)))
                .expect("some"),
        }
    }
}

fn loss_named(name: &str) -> Loss {
    match name {
        "MultipleNegativesRanking" => MultipleNegativesRanking { scale: 20.0 }.into_loss(),
        "MultipleNegativesSymmetricRanking" => {
            MultipleNegativesSymmetricRanking { scale: 20.0 }.into_loss()
        }
        _ => TripletMargin { margin: 0.5 }.into_loss(),
    }
    .expect("a loss")
}

fn model(folder: &TempDir) -> BertForSentenceEmbedding {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForSentenceEmbedding::from_pretrained(path).expect("the fixture loads")
}

fn compiled(loss: impl IntoLoss) -> BertForSentenceEmbedding {
    let model = model(&tiny_bert(0.0));
    let optimizer = AdamW::new(2e-3).weight_decay(0.0);
    let args = CompileArgs::new().optimizer(optimizer).loss(loss);
    model.compile(args).expect("valid arguments");
    model
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).shuffle(false).verbose(false)
}

#[track_caller]
fn near(what: &str, found: f64, expected: f64, allowed: f64) {
    assert!(
        (found - expected).abs() <= allowed,
        "{what}: {found}, not {expected}"
    );
}

#[test]
fn losses_gradients_and_a_trace_are_those_of_sentence_transformers() {
    let reference = reference();
    for (name, cases) in &reference.cases {
        for case in cases {
            let what = format!("{name} of {} texts", case.texts);
            let (data, model) = (reference.data(case.texts), compiled(loss_named(name)));
            let gradients = model
                .evaluation_gradients(&data.take(6))
                .expect("of one batch");
            near(
                &format!("loss of {what}"),
                gradients.loss(),
                case.loss,
                1e-5,
            );
            let norms = gradients.norms();
            assert!(norms.len() >= case.gradient_norms.len(), "{what}");
            for (variable, found) in norms {
                let own = variable.trim_start_matches("bert.");
                let expected = case.gradient_norms.get(&format!("bert.{own}"));
                let expected = expected.copied().unwrap_or(0.0);
                let allowed = 1e-6 + 1e-4 * expected;
                near(&format!("{variable} of {what}"), found, expected, allowed);
            }
            let history = model.fit(&data, quiet()).expect("it trains");
            assert_eq!(history.steps.len(), case.trace.len());
            for (step, expected) in history.steps.iter().zip(&case.trace) {
                near(&format!("trace of {what}"), step.loss, *expected, 1e-5);
            }
        }
    }
}

fn scoped(strategy: &Strategy, loss: &str, folder: &TempDir) -> BertForSentenceEmbedding {
    let _scope = scope::enter(strategy).expect("a scope");
    let model = model(folder);
    let args = CompileArgs::new().optimizer(SGD::new(0.05));
    let args = args.loss(loss_named(loss));
    model.compile(args).expect("valid arguments");
    model
}

/// The negatives of an example are the whole batch, on however many replicas it is computed.
#[test]
fn replicas_use_the_negatives_of_the_whole_batch() {
    let reference = reference();
    let strategies: [Strategy; 3] = [
        OneDeviceStrategy::new(cpu(0)).expect("one").strategy(),
        MirroredStrategy::logical(2).expect("two").strategy(),
        MirroredStrategy::logical(3).expect("three").strategy(),
    ];
    for (name, texts) in [
        ("MultipleNegativesRanking", 2),
        ("MultipleNegativesSymmetricRanking", 3),
        ("TripletMargin", 3),
    ] {
        // A last batch of two, and weights of examples.
        let data = reference.data(texts).take(18).map(|example| Example {
            weight: if example.row % 3 == 0 { 0.5 } else { 1.0 },
            ..example
        });
        let [one, two, three] = [0, 1, 2].map(|at| {
            let model = scoped(&strategies[at], name, &tiny_bert(0.0));
            let gradients = model.gradients(&data.take(7)).expect("of one batch");
            let args = quiet().validation_data(&data);
            let history = model.fit(&data, args).expect("it trains");
            let evaluated = model
                .evaluate(&data, EvaluateArgs::new().batch_size(5).verbose(false))
                .expect("it is evaluated");
            let mut numbers = vec![gradients.loss(), gradients.norm(), evaluated.loss];
            numbers.extend(history.steps.iter().map(|step| step.loss));
            let validation = history.epochs[0].validation.as_ref();
            numbers.push(validation.expect("it was validated").loss);
            numbers
        });
        for others in [&two, &three] {
            for (one, other) in one.iter().zip(others) {
                near(name, *other, *one, 2e-5);
            }
        }
    }
}

/// Both passes have the dropout masks of the step: the same batch twice has the same loss, another one has not.
#[test]
fn replicas_train_with_dropout_to_the_same_bits() {
    let reference = reference();
    let two = MirroredStrategy::logical(2).expect("two").strategy();
    let bits = |seed: u64| {
        let model = scoped(&two, "MultipleNegativesRanking", &tiny_bert(0.2));
        let args = quiet().seed(seed).epochs(2);
        let history = model.fit(&reference.data(2), args).expect("it trains");
        let losses = history.steps.iter().map(|step| step.loss.to_bits());
        losses.collect::<Vec<_>>()
    };
    assert_eq!(bits(3), bits(3));
    assert_ne!(bits(3), bits(4));
    // Each replica shows the losses that the step has.
    let model = scoped(&two, "MultipleNegativesRanking", &tiny_bert(0.2));
    let run = model
        .start(&reference.data(2), quiet().seed(3))
        .expect("a run");
    let view = run.batch().expect("the coming batch");
    run.step(1).expect("a step");
    let history = run.history().expect("a record");
    near("the batch", view.loss, history.steps[0].loss, 1e-6);
    assert_eq!(view.examples.len(), 4);
    let shown = &view.examples[0];
    assert!(
        shown.text.contains(" / ") && shown.outputs.len() == 1,
        "{shown:?}"
    );
    assert!((-1.0..=1.0).contains(&shown.outputs[0]), "{shown:?}");
}

#[test]
fn pairs_teach_what_belongs_together_and_streams_do_too() {
    let reference = reference();
    let data = reference.data(2);
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pairs.tsv");
    let row = |example: &Example| {
        let pair = example.pair.as_deref().unwrap_or_default();
        format!("{}\t{pair}\n", example.text)
    };
    let rows: String = data.examples.iter().map(row).collect();
    fs::write(&path, format!("first\tsecond\n{rows}")).expect("room");
    let columns = Columns::new().text("first").pair("second").unlabelled();
    let held = Dataset::tsv_with(&path, &columns).expect("pairs");
    let stream = Stream::tsv_with(&path, &columns).expect("pairs");
    let losses = |history: stratoscope_models::History| -> Vec<u64> {
        history
            .steps
            .iter()
            .map(|step| step.loss.to_bits())
            .collect()
    };
    let args = || quiet().epochs(12);
    let loss = || MultipleNegativesRanking { scale: 20.0 };
    let of_held = compiled(loss()).fit(&held, args()).expect("it trains");
    let first = of_held.epochs[0].loss;
    let last = of_held.epochs.last().expect("an epoch").loss;
    assert!(last < 0.8 * first, "from {first} to {last}");
    let of_stream = compiled(loss()).fit(&stream, args()).expect("it trains");
    assert_eq!(losses(of_held), losses(of_stream));
}

/// Keeps the notices.
#[derive(Default)]
struct Notices(Mutex<Vec<Diagnostic>>);

impl Observer for Notices {
    fn notice(&self, diagnostic: Diagnostic) {
        self.0.lock().expect("no panic").push(diagnostic);
    }
}

#[test]
fn texts_that_are_in_several_pairs_have_a_warning() {
    let context = RunContext::new();
    let seen = Arc::new(Notices::default());
    context.observe(Arc::clone(&seen) as Arc<dyn Observer>);
    let _entered = context.enter();
    let pairs = [
        ("w10", "w40"),
        ("w11", "w41"),
        ("w12", "w40"),
        ("w13", "w43"),
    ];
    let model = compiled("multiple_negatives_ranking");
    let found = |seen: &Notices| {
        let all = seen.0.lock().expect("no panic");
        let own = all.iter().filter(|it| it.code == "SC0434");
        own.map(|it| format!("{} {it:?}", it.message))
            .collect::<Vec<_>>()
    };
    model
        .fit(
            &Dataset::from_pairs([pairs[0], pairs[1], pairs[3]]),
            quiet(),
        )
        .expect("it trains");
    assert!(found(&seen).is_empty());
    model
        .fit(&Dataset::from_pairs(pairs), quiet())
        .expect("it trains");
    let shown = found(&seen);
    let message = "2 examples of 4 share a text with another one";
    assert!(shown.len() == 1 && shown[0].contains(message), "{shown:?}");
    assert!(shown[0].contains("in rows 0 and 2"), "{shown:?}");
}

#[test]
fn what_is_refused_has_its_words() {
    let ranking = || MultipleNegativesRanking { scale: 20.0 };
    let args = || CompileArgs::new().optimizer(AdamW::new(1e-4));
    #[track_caller]
    fn check(problem: &Diagnostic, code: &str, words: &str) {
        let text = format!("{problem} {problem:?}");
        assert!(problem.code == code && text.contains(words), "{text}");
    }
    // The model.
    let classifier = load(&tiny_bert(0.0));
    let problem = classifier
        .compile(args().loss(ranking()))
        .expect_err("no vectors");
    check(&problem, "SC0103", "BertForSentenceEmbedding");
    let encoder = model(&tiny_bert(0.0));
    let problem = encoder.compile(args().loss(ranking()).metrics([pearson()]));
    check(
        &problem.expect_err("no labels"),
        "SC0103",
        "no label to compare",
    );
    let problem = encoder.compile(args().loss(MultipleNegativesRanking { scale: 0.0 }));
    check(&problem.expect_err("no scale"), "SC0103", "above 0");
    let stages = PipelineStrategy::logical(2).expect("two").strategy();
    let in_stages = {
        let _scope = scope::enter(&stages).expect("a scope");
        let encoder = model(&tiny_bert(0.0));
        encoder.compile(args().loss(ranking()))
    };
    check(
        &in_stages.expect_err("micro-batches"),
        "SC0103",
        "micro-batches",
    );
    // The data.
    let encoder = compiled(ranking());
    let refused = |data: Dataset| encoder.fit(&data, quiet()).expect_err("refused");
    check(
        &refused(Dataset::from_texts(["w10", "w11"])),
        "SC0431",
        "pairs of texts",
    );
    let labelled = |labels: [f32; 2]| {
        let pair = |(at, label)| {
            let example = Example::new(format!("w1{at}")).with_pair(format!("w4{at}"));
            example.with_label(Label::Value(label))
        };
        Dataset::from_examples(
            labels.into_iter().enumerate().map(pair),
            Vec::new(),
            "pairs",
        )
    };
    check(&refused(labelled([1.0, 0.0])), "SC0103", "different labels");
    encoder
        .fit(&labelled([1.0, 1.0]), quiet())
        .expect("all belong together");
    let mixed = Dataset::from_examples(
        [
            Example::new("w10").with_pair("w11"),
            Example::new("w12").with_choices(["w13", "w14"]),
        ],
        Vec::new(),
        "rows",
    );
    check(&refused(mixed), "SC0103", "3 texts in row 1");
    let triplets = compiled(TripletMargin { margin: 0.5 });
    let pairs = reference().data(2);
    let problem = triplets.fit(&pairs, quiet()).expect_err("no third text");
    check(&problem, "SC0431", "from_triplets");
    // The batches.
    let problem = encoder
        .fit(&pairs, quiet().batch_size(1))
        .expect_err("no negative");
    check(&problem, "SC0103", "every loss is 0");
    encoder
        .fit(&reference().data(3).take(2), quiet().batch_size(1))
        .expect("each has a negative of its own");
    let problem = encoder.fit(&pairs, quiet().batch_size(auto(4)));
    check(&problem.expect_err("parts"), "SC0103", "in parts");
    let problem = encoder.fit(&pairs, quiet().class_weight([1.0, 2.0]));
    assert!(problem.is_err());
    // The other loss of these models keeps its data.
    let scored = compiled(MeanSquaredError);
    let problem = scored.fit(&pairs, quiet()).expect_err("no similarity");
    assert_eq!(problem.code, "SC0313");
}
