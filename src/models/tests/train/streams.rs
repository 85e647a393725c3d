//! Training on rows that stay in their files: the bits of a data set in memory, wherever a run is left and taken up again,
//! and what is refused before the first step.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use stratoscope_data::{AutoShardPolicy, Columns, Data, Dataset, Example, IntoData, Stream};
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, CompileArgs,
    EvaluateArgs, FitArgs, History, LoadOptions, MeanSquaredError, accuracy, entity_f1, interrupt,
    on_batch_end, on_train_begin, perplexity,
};
use stratoscope_strategy::{AsStrategy, Strategy};
use tempfile::TempDir;

use crate::multiple_choice::{chooser, prompts};
use crate::support::{
    self, cross_entropy, grouped, heard, load, mirrored, plain_args, recipe, sentences, tiny_bert,
    weights,
};
use crate::token_classification::{tagged, tagger};
use crate::workers::workers;

type Bert = BertForSequenceClassification;

fn write(folder: &TempDir, name: &str, data: &Dataset) -> PathBuf {
    let path = folder.path().join(name);
    let rows = data.examples.iter().map(|example| {
        let label = example.label_name.as_deref().unwrap_or_default();
        format!("{}\t{label}\n", example.text)
    });
    let rows: String = rows.collect();
    fs::write(&path, format!("text\tlabel\n{rows}")).expect("room");
    path
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(4).seed(3).verbose(false)
}

fn model(strategy: Option<Strategy>, accumulation: usize) -> Bert {
    let args = grouped(plain_args().optimizer(recipe()), 1, accumulation, 1);
    support::compiled(strategy, "float32", args)
}

/// Losses of steps, epochs and validations, to the bit.
fn losses(history: &History) -> Vec<u64> {
    let steps = history.steps.iter().map(|step| step.loss);
    let epochs = history.epochs.iter().flat_map(|epoch| {
        let validation = epoch.validation.as_ref().map(|it| it.loss);
        [Some(epoch.loss), validation]
    });
    steps.chain(epochs.flatten()).map(f64::to_bits).collect()
}

/// A file of tagged words.
fn write_words(folder: &TempDir, name: &str, data: &Dataset) -> PathBuf {
    let path = folder.path().join(name);
    let sentence = |example: &Example| -> String {
        let words = example.words().expect("it has words").iter();
        let lines = words.map(|word| {
            let tag = word.tag.and_then(|tag| data.label_names.get(tag));
            let tag = tag.expect("a tag");
            format!("{}\t{tag}\n", &example.text[word.range.clone()])
        });
        lines.collect::<String>() + "\n"
    };
    let rows: String = data.examples.iter().map(sentence).collect();
    fs::write(&path, rows).expect("room");
    path
}

#[test]
fn tagged_words_train_to_the_bits_of_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let train = write_words(&folder, "train.conll", &tagged(30));
    let dev = write_words(&folder, "dev.conll", &tagged(40).skip(30));
    let (held, held_dev) = (Dataset::conll(&train), Dataset::conll(&dev));
    let (held, held_dev) = (held.expect("words"), held_dev.expect("words"));
    let (stream, dev) = (
        Stream::conll(&train).expect("words"),
        Stream::conll(&dev).expect("words"),
    );
    let trained = |data: Data<'_>, validation: Data<'_>| {
        let model = tagger(&tiny_bert(0.1), 4);
        let args = CompileArgs::new()
            .optimizer(AdamW::new(0.01))
            .loss(cross_entropy())
            .metrics([entity_f1(), accuracy()]);
        model.compile(args).expect("valid arguments");
        let args = quiet()
            .epochs(2)
            .class_weight("balanced")
            .validation_data(validation);
        let history = model.fit(data, args).expect("it trains");
        let args = EvaluateArgs::new().verbose(false);
        let found = model.evaluate(validation, args).expect("it is evaluated");
        let metrics: Vec<Option<u64>> = found
            .metrics
            .iter()
            .map(|metric| metric.value.map(f64::to_bits))
            .collect();
        (losses(&history), metrics, weights(&model))
    };
    let expected = trained(held.into_data(), held_dev.into_data());
    let found = trained(stream.into_data(), dev.into_data());
    assert!(found == expected, "{:?} {:?}", found.0, expected.0);

    // A tag without an output, one that the model does not know, and tags that do not begin.
    let refused = |content: &str, tags: usize| {
        let path = folder.path().join("other.conll");
        fs::write(&path, content).expect("room");
        let stream = Stream::conll(&path).expect("words");
        let model = tagger(&tiny_bert(0.0), tags);
        let args = CompileArgs::new().optimizer(AdamW::new(0.01));
        model
            .compile(args.loss(cross_entropy()))
            .expect("valid arguments");
        let (outcome, notices) = heard(&["SC0430"], || model.fit(&stream, quiet()));
        let heard = notices.iter().map(|it| it.code.clone());
        let error = outcome.err().map(|error| error.code.clone());
        heard.chain(error).collect::<Vec<_>>()
    };
    assert_eq!(refused("w10 O\nw40 B-PER\nw41 I-PER\n", 2), ["SC0301"]);
    assert_eq!(refused("w10 O\nw41 I-PER\n", 2), ["SC0430"]);
    let texts = load(&tiny_bert(0.0));
    texts.compile(plain_args()).expect("valid arguments");
    let error = texts
        .fit(&stream, quiet())
        .expect_err("its rows have no class");
    assert_eq!(error.code, "SC0431");
    assert!(
        format!("{error:?}").contains("streamed words with tags"),
        "{error:?}"
    );
}

#[test]
fn prompts_with_choices_train_to_the_bits_of_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, data: &Dataset| {
        let row = |example: &Example| {
            let choices = example.choices().expect("it has choices").join(",");
            format!(
                "{},{choices},{}\n",
                example.text,
                example.class().expect("a label")
            )
        };
        let rows: String = data.examples.iter().map(row).collect();
        let path = folder.path().join(name);
        fs::write(&path, format!("prompt,first,second,third,label\n{rows}")).expect("room");
        path
    };
    let (train, dev) = (
        write("train.csv", &prompts(30)),
        write("dev.csv", &prompts(40).skip(30)),
    );
    let columns = Columns::new()
        .text("prompt")
        .choices(["first", "second", "third"])
        .label("label");
    let trained = |data: Data<'_>, validation: Data<'_>| {
        let model = chooser(&tiny_bert(0.1), 3);
        model.compile(plain_args()).expect("valid arguments");
        let args = quiet().epochs(2).validation_data(validation);
        let history = model.fit(data, args).expect("it trains");
        (losses(&history), weights(&model))
    };
    let held = |path: &PathBuf| Dataset::csv_with(path, &columns).expect("prompts");
    let stream = |path: &PathBuf| Stream::csv_with(path, &columns).expect("prompts");
    let expected = trained(held(&train).into_data(), held(&dev).into_data());
    let found = trained(stream(&train).into_data(), stream(&dev).into_data());
    assert!(found == expected, "{:?} {:?}", found.0, expected.0);

    let refused = |columns: &Columns, outputs: usize| {
        let data = Stream::csv_with(&train, columns).expect("rows");
        let model = chooser(&tiny_bert(0.0), outputs);
        model.compile(plain_args()).expect("valid arguments");
        let error = model.fit(&data, quiet()).expect_err("it is refused");
        (error.code.clone(), format!("{error:?}"))
    };
    let (code, shown) = refused(&columns, 4);
    assert!(
        code == "SC0103" && shown.contains("3 choices in each row"),
        "{shown}"
    );
    let unlabelled = Columns::new()
        .text("prompt")
        .choices(["first", "second", "third"]);
    assert_eq!(refused(&unlabelled.unlabelled(), 3).0, "SC0313");
    assert_eq!(
        refused(&Columns::new().text("prompt").label("label"), 3).0,
        "SC0431"
    );
    let texts = load(&tiny_bert(0.0));
    texts.compile(plain_args()).expect("valid arguments");
    let error = texts
        .fit(&stream(&train), quiet())
        .expect_err("it is refused");
    let shown = format!("{error:?}");
    assert!(
        error.code == "SC0431" && shown.contains("BertForMultipleChoice"),
        "{shown}"
    );
}

#[test]
fn it_trains_to_the_bits_of_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let train = write(&folder, "train.tsv", &sentences(30));
    let dev = write(&folder, "dev.tsv", &sentences(7));
    let (held, held_dev) = (Dataset::tsv(&train), Dataset::tsv(&dev));
    let (held, held_dev) = (held.expect("rows"), held_dev.expect("rows"));
    let (stream, dev) = (
        Stream::tsv(&train).expect("rows"),
        Stream::tsv(&dev).expect("rows"),
    );
    let cases: [(Option<Strategy>, usize); 2] = [(None, 1), (mirrored(), 2)];
    for (strategy, accumulation) in cases {
        let args = || quiet().epochs(2).class_weight("balanced");
        let expected = model(strategy.clone(), accumulation);
        let in_memory = expected.fit(&held, args().validation_data(&held_dev));
        let in_memory = in_memory.expect("it trains");
        let found = model(strategy.clone(), accumulation);
        let words = Rc::new(RefCell::new(None));
        let heard = Rc::clone(&words);
        let callback = on_train_begin(move |run| *heard.borrow_mut() = run.tokens.clone());
        let streamed = found.fit(&stream, args().validation_data(&dev).callbacks(callback));
        let streamed = streamed.expect("it trains");
        assert!(weights(&found) == weights(&expected), "other weights");
        assert_eq!(losses(&streamed), losses(&in_memory));
        assert_eq!(streamed.counters, in_memory.counters);
        let words = words.borrow().clone().expect("it is said");
        assert!(words.contains("train.tsv: 30 examples"), "{words}");
        assert!(words.contains("dev.tsv: 7 examples"), "{words}");
        let args = || EvaluateArgs::new().batch_size(5).verbose(false);
        let evaluate = |args| found.evaluate(&stream, args).expect("rows").loss.to_bits();
        let expected = |args| found.evaluate(&held, args).expect("rows").loss.to_bits();
        assert_eq!(evaluate(args()), expected(args()));
        assert_eq!(evaluate(args().steps(2)), expected(args().steps(2)));
    }
}

/// 1100 rows in windows of 512: 22 batches of an epoch's 37, which begin in one window and end in the next.
fn windows(folder: &TempDir) -> Stream {
    let path = write(folder, "many.tsv", &sentences(1100));
    Stream::tsv(path)
        .expect("rows")
        .shuffle(512)
        .expect("a buffer")
}

#[test]
fn a_run_that_was_left_goes_on_to_the_same_bits() {
    let folder = TempDir::new().expect("a folder");
    let stream = windows(&folder);
    let args = || {
        quiet()
            .batch_size(48)
            .steps_per_epoch(22)
            .epochs(2)
            .max_length(8)
    };
    let whole = model(None, 2);
    let history = whole.fit(&stream, args()).expect("it trains");
    let expected = weights(&whole);

    // Interrupted in the first window and in the third, and taken up.
    let left = model(None, 2);
    for (round, batches) in [5, 17].into_iter().enumerate() {
        let seen = RefCell::new(0);
        let callback = on_batch_end(move |execution| {
            *seen.borrow_mut() += execution.batches;
            if *seen.borrow() == batches {
                interrupt::request();
            }
        });
        let args = args().resume(round > 0).callbacks(callback);
        assert!(left.fit(&stream, args).expect("it trains").interrupted);
    }
    let resumed = left.fit(&stream, args().resume(true)).expect("it goes on");
    assert!(weights(&left) == expected, "interrupted: other weights");
    assert_eq!(losses(&resumed), losses(&history));

    // From a checkpoint, by a model and a stream of their own.
    let kept = folder.path().join("run");
    let first = model(None, 2);
    let saving = args().checkpoint(kept.to_str().expect("UTF-8")).every(9);
    first.fit(&stream, saving).expect("it trains");
    let from = kept.join("step-9");
    let other = model(None, 2);
    let going = args().resume_from(from.to_str().expect("UTF-8"));
    let anew = Stream::tsv(folder.path().join("many.tsv")).expect("rows");
    let anew = anew.shuffle(512).expect("a buffer");
    other.fit(&anew, going).expect("it goes on");
    assert!(
        weights(&other) == expected,
        "from a checkpoint: other weights"
    );

    // Turned back, with batches of another size on the way.
    let driven = model(None, 2);
    let run = driven.start(&stream, args()).expect("it starts");
    run.step(9).expect("it goes on");
    run.set_batch_size(16).expect("a size");
    run.step(3).expect("it goes on");
    run.rewind(4).expect("it is kept");
    run.finish().expect("it goes on");
    assert!(weights(&driven) == expected, "turned back: other weights");

    // Another buffer is another order, and other data.
    let buffer = stream.clone().shuffle(1024).expect("a buffer");
    let going = args().resume_from(from.to_str().expect("UTF-8"));
    let error = model(None, 2).fit(&buffer, going).expect_err("other data");
    assert!(format!("{error:?}").contains("training data"), "{error:?}");
}

#[test]
fn a_masked_language_model_reads_a_text_a_line() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("corpus.txt");
    let text = |row: usize| format!("w{} w{} w30 w31 w32", 20 + row % 12, 40 + row % 9);
    let lines: Vec<String> = (0..40).map(text).collect();
    fs::write(&path, lines.join("\n")).expect("room");
    let trained = |data: stratoscope_data::Data<'_>| {
        let checkpoint = tiny_bert(0.1);
        let checkpoint = checkpoint.path().to_str().expect("UTF-8");
        let model = BertForMaskedLM::from_pretrained(checkpoint).expect("the fixture loads");
        let args = CompileArgs::new().optimizer(AdamW::new(0.01));
        let args = args.loss(cross_entropy()).metrics([perplexity()]);
        model.compile(args).expect("valid arguments");
        let history = model.fit(data, quiet().epochs(2)).expect("it trains");
        (losses(&history), weights(&model))
    };
    let held = Dataset::text(&path).expect("lines");
    let stream = Stream::text(&path).expect("lines");
    assert!(trained((&stream).into_data()) == trained((&held).into_data()));
}

#[test]
fn what_cannot_be_trained_on_is_refused_before_the_first_step() {
    let folder = TempDir::new().expect("a folder");
    let path = write(&folder, "train.tsv", &sentences(30));
    let stream = Stream::tsv(&path).expect("rows");
    let refused = |model: &Bert, stream: &Stream, args: FitArgs<'_>, code: &str, words: &str| {
        let error = model.fit(stream, args).expect_err(words);
        assert_eq!(error.code, code, "{error:?}");
        let shown = format!("{error:?}");
        assert!(shown.contains(words), "{words}: {shown}");
    };
    let compiled = || model(None, 1);
    refused(
        &compiled(),
        &stream,
        quiet().validation_split(0.2),
        "SC0103",
        "validation_data",
    );
    refused(
        &compiled(),
        &stream,
        quiet().max_length(1000),
        "SC0401",
        "1000",
    );
    let texts = Columns::new().unlabelled();
    let unlabelled = Stream::tsv_with(&path, &texts).expect("rows");
    refused(&compiled(), &unlabelled, quiet(), "SC0313", "label");
    fs::write(
        folder.path().join("numbers.csv"),
        "text,score\nw10,0.5\nw20,1.5\n",
    )
    .expect("room");
    let numbers = folder.path().join("numbers.csv");
    let numbers = Stream::csv_with(numbers, &Columns::new().value("score")).expect("rows");
    refused(&compiled(), &numbers, quiet(), "SC0307", "0.5 at row 0");
    let four = Dataset::from_labelled((0..8).map(|row| ("w10 w11", ["a", "b", "c", "d"][row % 4])));
    let four = Stream::tsv(write(&folder, "four.tsv", &four)).expect("rows");
    refused(
        &compiled(),
        &four,
        quiet(),
        "SC0301",
        "the head has 3 outputs",
    );
    // The model knows its classes by name after a run.
    let known = compiled();
    known.fit(&stream, quiet()).expect("it trains");
    let other = Dataset::from_labelled((0..8).map(|row| ("w10 w11", ["red", "pink"][row % 2])));
    let other = Stream::tsv(write(&folder, "other.tsv", &other)).expect("rows");
    refused(&known, &other, quiet(), "SC0913", "pink");
    let fewer = Dataset::from_labelled((0..8).map(|row| ("w10 w11", ["red", "green"][row % 2])));
    let fewer = Stream::tsv(write(&folder, "fewer.tsv", &fewer)).expect("rows");
    known
        .fit(&fewer, quiet())
        .expect("classes are matched by name");

    let checkpoint = tiny_bert(0.0);
    let checkpoint = checkpoint.path().to_str().expect("UTF-8");
    let words = BertForTokenClassification::from_pretrained(checkpoint, 3).expect("it loads");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(cross_entropy());
    words.compile(args).expect("valid arguments");
    assert_eq!(
        words.fit(&stream, quiet()).expect_err("no tags").code,
        "SC0431"
    );

    let run = compiled();
    let run = run.start(&stream, quiet()).expect("it starts");
    run.step(1).expect("a step");
    for error in [
        run.drop_examples([1]).expect_err("rows are not dropped"),
        run.data_map().expect_err("nothing is recorded"),
    ] {
        assert_eq!(error.code, "SC0103");
        assert!(format!("{error:?}").contains("stream"), "{error:?}");
    }
    assert_eq!(run.worst(2).expect("a sample").examples.len(), 2);
    assert_eq!(run.batch().expect("a batch").examples.len(), 4);
    // A file that changes under way ends the run with its name.
    let text = fs::read_to_string(&path).expect("it is there") + "w10\tred\n";
    let long = load(&tiny_bert(0.0));
    long.compile(plain_args()).expect("valid arguments");
    let many = windows(&folder);
    let changing = folder.path().join("many.tsv");
    let callback = on_batch_end(move |_| fs::write(&changing, &text).expect("room"));
    refused(
        &long,
        &many,
        quiet().callbacks(callback),
        "SC0911",
        "has changed",
    );
}

#[test]
fn findings_about_data_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let rows = (0..40).map(|row| match row {
        3 => (" ".to_owned(), "red"),
        row if row % 2 == 0 => (format!("W{row} W{row}"), "red"),
        row => (
            format!("w{} w11 w12", 10 + row),
            ["red", "green"][usize::from(row == 39)],
        ),
    });
    let train = Dataset::from_labelled(rows);
    let path = write(&folder, "train.tsv", &train);
    let dev_path = write(&folder, "dev.tsv", &train.skip(1).take(12));
    let (held, held_dev) = (
        Dataset::tsv(&path).expect("rows"),
        Dataset::tsv(&dev_path).expect("rows"),
    );
    let (stream, dev) = (
        Stream::tsv(&path).expect("rows"),
        Stream::tsv(&dev_path).expect("rows"),
    );
    const CODES: &[&str] = &[
        "SC0403", "SC0407", "SC0409", "SC0701", "SC0702", "SC0703", "SC0707",
    ];
    let args = || quiet().max_length(4).steps_per_epoch(2);
    let said = |fit: &dyn Fn(&Bert) -> stratoscope_diagnostics::Result<History>| {
        let model = model(None, 1);
        let (trained, findings) = heard(CODES, || fit(&model));
        trained.expect("it trains");
        let said = findings
            .iter()
            .map(|it| format!("{} {}", it.code, it.message));
        said.collect::<Vec<_>>()
    };
    let in_memory = said(&|model| model.fit(&held, args().validation_data(&held_dev)));
    assert!(in_memory.len() >= 5, "{in_memory:?}");
    let streamed = said(&|model| model.fit(&stream, args().validation_data(&held_dev)));
    assert_eq!(streamed, in_memory);
    let streamed = said(&|model| model.fit(&held, args().validation_data(&dev)));
    assert_eq!(streamed, in_memory);
    let streamed = said(&|model| model.fit(&stream, args().validation_data(&dev)));
    assert_eq!(streamed, in_memory);
    // The smaller one is the training data, with both classes.
    let small = write(&folder, "small.tsv", &train.skip(29));
    let held_small = Dataset::tsv(&small).expect("rows");
    let in_memory = said(&|model| model.fit(&held_small, args().validation_data(&held)));
    assert!(
        in_memory.iter().any(|it| it.starts_with("SC0701 11 ")),
        "{in_memory:?}"
    );
    let small = Stream::tsv(&small).expect("rows");
    let streamed = said(&|model| model.fit(&small, args().validation_data(&stream)));
    assert_eq!(streamed, in_memory);

    // Classes for numbers are noticed by the first rows.
    let folder = tiny_bert(0.0);
    let path = folder.path().to_str().expect("UTF-8");
    let options = LoadOptions::new().num_labels(1).new_head();
    let one = BertForSequenceClassification::from_pretrained_with(path, &options);
    let one = one.expect("a new head");
    let args = CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(MeanSquaredError);
    one.compile(args).expect("valid arguments");
    let (_, findings) = heard(&["SC0308"], || one.fit(&stream, quiet()));
    assert_eq!(findings.len(), 1, "{findings:?}");
}

/// Of workers each has the rows that it has of a data set in memory, whatever policy divides them.
#[test]
fn workers_divide_a_stream_like_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let all = sentences(18);
    let first = write(&folder, "a.tsv", &all.take(11));
    write(&folder, "b.tsv", &all.skip(11));
    let pattern = folder.path().join("*.tsv");
    let team = workers(2);
    let run = |data: Data<'_>| {
        let model = model(Some(team.strategy()), 1);
        let fit = quiet().epochs(2);
        let (history, _) = heard(&["SC0813"], || match data {
            Data::Held(data) => model.fit(data, fit),
            Data::Streamed(stream) => model.fit(stream, fit),
        });
        let history = history.expect("it trains");
        (losses(&history), weights(&model))
    };
    let mut all = Vec::new();
    for policy in [
        AutoShardPolicy::Data,
        AutoShardPolicy::Off,
        AutoShardPolicy::File,
    ] {
        let held = Dataset::tsv(&pattern).expect("rows").auto_shard(policy);
        let stream = Stream::tsv(&pattern).expect("rows").auto_shard(policy);
        let (found, expected) = (run((&stream).into_data()), run((&held).into_data()));
        assert_eq!(found, expected, "{policy:?}");
        all.push(found);
    }
    assert_ne!(all[0], all[1]);
    assert_ne!(all[0], all[2]);
    let one = Stream::tsv(&first).expect("rows");
    let one = one.auto_shard(AutoShardPolicy::File);
    let refused = model(Some(team.strategy()), 1).fit(&one, quiet());
    let problem = refused.expect_err("one file");
    assert_eq!(problem.code, "SC0803");
    assert!(
        problem.message.contains("1 file over 2 workers"),
        "{problem}"
    );
}
