//! `BertForMaskedLM` from texts to filled masks: training, strategies, runs that are turned back, prediction, saving, and what
//! is refused.

use stratoscope_data::{Dataset, Masking};
use stratoscope_models::{
    AdamW, BertForMaskedLM, BertForSequenceClassification, CompileArgs, EvaluateArgs, FitArgs, SGD,
    accuracy, f1, perplexity,
};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy,
    ParameterServerStrategy, Strategy, cpu, scope,
};
use tempfile::TempDir;

use crate::support::{
    assert_near_weights, cross_entropy, load, plain_args, sentences, tiny_bert, weights,
};

/// Texts of one word, repeated: what is hidden is known by what is left.
pub(crate) fn repeated(count: usize) -> Dataset {
    let text = |row: usize| {
        let word = format!("w{}", 20 + row * 5 % 12);
        vec![word; 6 + row % 3].join(" ")
    };
    Dataset::from_texts((0..count).map(text))
}

pub(crate) fn lm(folder: &TempDir) -> BertForMaskedLM {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForMaskedLM::from_pretrained(path).expect("the fixture loads")
}

fn args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(0.01))
        .loss(cross_entropy())
        .metrics([accuracy(), perplexity()])
}

fn quiet() -> FitArgs<'static> {
    FitArgs::new().batch_size(16).seed(3).verbose(false)
}

#[test]
fn it_learns_what_is_hidden_and_fills_it_in() {
    let (train, dev) = (repeated(96), repeated(130).skip(96));
    let model = lm(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let history = model.fit(&train, quiet().epochs(60)).expect("it trains");
    let first = history.epochs.first().expect("an epoch");
    let last = history.epochs.last().expect("an epoch");
    assert!(
        last.loss < 0.4 && last.loss < 0.2 * first.loss,
        "{history:?}"
    );
    let evaluate = |batch_size: usize| {
        let args = EvaluateArgs::new().batch_size(batch_size).verbose(false);
        model.evaluate(&dev, args).expect("it is evaluated")
    };
    let found = evaluate(32);
    let value = |name: &str| {
        let metric = found.metrics.iter().find(|it| it.name == name);
        metric.and_then(|it| it.value).expect("it is measured")
    };
    assert!(value("accuracy") > 0.9, "{found:?}");
    // The loss is the mean over the tokens, and perplexity e to it; what is hidden in evaluation is always the same. So
    // neither depends on the batch size.
    let (one, small) = (evaluate(64), evaluate(5));
    for evaluated in [&found, &one, &small] {
        assert!(
            (value("perplexity").ln() - evaluated.loss).abs() < 1e-4,
            "{found:?} {evaluated:?}"
        );
    }
    for (one, other) in small.metrics.iter().zip(&found.metrics) {
        let values = [one, other].map(|it| it.value.expect("it is measured"));
        assert!((values[0] - values[1]).abs() < 1e-6, "{small:?}");
    }

    let answers = model
        .fill("w22 w22 [MASK] w22 w22 w22")
        .expect("it answers");
    let row = &answers.rows[0];
    assert_eq!(row.label, "w22 w22 w22 w22 w22 w22", "{answers}");
    assert_eq!((row.blanks[0].start, row.blanks[0].end), (8, 14));
    assert_eq!(row.blanks[0].choices.len(), 5);
    let total: f64 = row.blanks[0].choices.iter().map(|(_, score)| score).sum();
    assert!(row.score > 0.5 && total <= 1.0 + 1e-9, "{row:?}");
    let two = [
        "[MASK] w25 w25 w25 w25 w25",
        "w30 [MASK] w30 w30 [MASK] w30",
    ];
    let answers = model.predict(two).expect("it answers");
    assert_eq!(
        answers.labels(),
        ["w25 w25 w25 w25 w25 w25", "w30 w30 w30 w30 w30 w30"]
    );
    assert!(answers.to_html().contains("token at mask 2") && answers.to_plain().contains("[w25]"));

    // What is saved is loaded, head included.
    let folder = TempDir::new().expect("a temporary folder");
    model.save_pretrained(folder.path()).expect("room");
    let config = std::fs::read_to_string(folder.path().join("config.json")).expect("it is written");
    assert!(config.contains("BertForMaskedLM"), "{config}");
    let loaded = lm(&folder);
    assert_eq!(loaded.predict(two).expect("it answers"), answers);
    // A classifier takes the body.
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForSequenceClassification::from_pretrained(path, 2).expect("the body is BERT's");
}

/// Blocks by a real tokenizer have the tokens of the texts, and a run over them fewer steps.
#[test]
fn packed_texts_are_full_blocks() {
    let texts = repeated(96);
    let model = lm(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    let tokenizer = model.tokenizer();
    let blocks = texts.packed(&tokenizer, 32).expect("texts");
    let lengths = |data: &Dataset| -> Vec<usize> {
        let encoded = data.tokenize(&tokenizer, 64).expect("texts");
        let of = |at: usize| encoded.get(at).map_or(0, |row| row.ids.len());
        (0..encoded.len()).map(of).collect()
    };
    let beside = |data: &Dataset| lengths(data).iter().map(|length| length - 2).sum::<usize>();
    assert_eq!(beside(&blocks), beside(&texts));
    let lengths = lengths(&blocks);
    assert!(lengths.iter().all(|&length| length <= 32), "{lengths:?}");
    let full = lengths.iter().rev().skip(1);
    assert!(full.clone().all(|&length| length > 28), "{lengths:?}");
    assert!(!blocks[0].text.starts_with(' '));
    let fit = || quiet().max_length(32);
    let history = model.fit(&blocks, fit()).expect("it trains");
    assert_eq!(history.steps.len(), blocks.len().div_ceil(16));
    assert!(4 * blocks.len() < texts.len(), "{}", blocks.len());
    // Those of an epoch are hidden anew in the next one, as those of texts are.
    let again = model.fit(&blocks, fit().epochs(2)).expect("it trains");
    assert_ne!(again.epochs[0].loss, again.epochs[1].loss);
}

/// Words that no space separates, of more than a byte: a block may begin with any of them.
#[test]
fn texts_without_spaces_are_packed() {
    let model = lm(&tiny_bert(0.0));
    let text = "日本語の文".repeat(9);
    let texts = Dataset::from_texts([text.clone(), "w20-w21-w22-w23".repeat(4)]);
    let blocks = texts.packed(&model.tokenizer(), 12).expect("texts");
    assert!(blocks.len() > 4, "{}", blocks.len());
    let joined: String = blocks.examples.iter().map(|it| it.text.as_str()).collect();
    let all = format!("{text}{}", texts[1].text);
    assert_eq!(joined.replace(' ', ""), all);
}

#[test]
fn strategies_train_the_weights_of_one_device() {
    let run = |strategy: &Strategy| {
        let _scope = scope::enter(strategy).expect("no scope is active");
        let model = lm(&tiny_bert(0.0));
        let args = args().optimizer(SGD::new(0.5));
        model.compile(args).expect("valid arguments");
        let history = model
            .fit(&repeated(13), quiet().batch_size(4))
            .expect("it trains");
        let placement = model.placement().expect("the devices answer");
        assert!(placement.copies_are_equal(), "{}", placement.verdict());
        (weights(&model), history.epochs[0].metrics[0])
    };
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let (expected, measured) = run(&one.strategy());
    let two = MirroredStrategy::logical(2).expect("logical devices");
    let (mirrored, of_two) = run(&two.strategy());
    assert_near_weights(&mirrored, &expected);
    assert_eq!(of_two, measured, "the same tokens are hidden");
    let central = CentralStorageStrategy::logical(2).expect("logical devices");
    let servers = ParameterServerStrategy::logical(2, 2).expect("logical devices");
    for strategy in [central.strategy(), servers.synchronous().strategy()] {
        assert!(
            run(&strategy).0 == mirrored,
            "{strategy}: the same bits as mirrored"
        );
    }
}

#[test]
fn a_run_that_was_turned_back_has_the_bits_of_one_that_was_not() {
    let fit = || quiet().batch_size(4).epochs(3);
    let finished = |turned_back: bool| {
        let model = lm(&tiny_bert(0.1));
        let masking = Masking {
            share: 0.3,
            whole_words: true,
        };
        model.set_masking(masking).expect("a share");
        model.compile(args()).expect("valid arguments");
        let run = model.start(&repeated(20), fit()).expect("it starts");
        run.step(8).expect("eight steps");
        if turned_back {
            run.rewind(3).expect("three steps back");
        }
        let history = run.finish().expect("it trains");
        (
            weights(&model),
            history.epochs.last().map(|it| it.loss.to_bits()),
        )
    };
    assert!(finished(true) == finished(false));
}

/// Other tokens would be hidden.
#[test]
fn a_run_does_not_go_on_with_another_masking() {
    let folder = TempDir::new().expect("a temporary folder");
    let fit = || quiet().batch_size(4).epochs(2);
    let wide = Masking {
        share: 0.3,
        ..Masking::default()
    };
    let of = |masking: Masking| {
        let model = lm(&tiny_bert(0.1));
        model.set_masking(masking).expect("a share");
        model.compile(args()).expect("valid arguments");
        model
    };
    let model = of(Masking::default());
    let saving = fit().checkpoint(folder.path()).every(2);
    model.fit(&repeated(12), saving).expect("it trains");
    let resumed = |masking| of(masking).fit(&repeated(12), fit().resume_from(folder.path()));
    let refused = resumed(wide).expect_err("another masking");
    assert_eq!(refused.code, "SC0527");
    assert!(format!("{refused:?}").contains("masking"), "{refused:?}");
    resumed(Masking::default()).expect("it goes on");
    // Within a process, too.
    let run = model.start(&repeated(12), fit()).expect("it starts");
    run.step(2).expect("two steps");
    drop(run);
    model.set_masking(wide).expect("a share");
    let refused = model.fit(&repeated(12), fit().resume(true));
    assert_eq!(refused.expect_err("another masking").code, "SC0103");
    model.set_masking(Masking::default()).expect("a share");
    let resumed = model.fit(&repeated(12), fit().resume(true));
    resumed.expect("it goes on");
}

#[test]
fn a_run_is_looked_into_like_any_other() {
    let model = lm(&tiny_bert(0.1));
    model.compile(args()).expect("valid arguments");
    let run = model
        .start(&repeated(24), quiet().batch_size(8))
        .expect("it starts");
    run.step(2).expect("two steps");
    let batch = run.batch().expect("a batch");
    assert!(batch.to_html().contains("[MASK]"), "{batch:?}");
    let example = &batch.examples[0];
    let label = example.label.as_deref().expect("a hidden token");
    assert!(
        label.starts_with('w') && !example.predicted.is_empty(),
        "{example:?}"
    );
    assert!(run.gradients().is_ok() && run.report().is_ok() && run.why().is_ok());
    assert!(run.worst(3).is_ok());
    run.finish().expect("it trains");
}

#[test]
fn labels_are_not_used_and_what_cannot_be_is_refused() {
    let model = lm(&tiny_bert(0.0));
    model.compile(args()).expect("valid arguments");
    // Texts of three classes.
    let labelled = sentences(12);
    let args_of_both = quiet().validation_data(&labelled);
    model.fit(&labelled, args_of_both).expect("it trains");
    let problem = model.fill("w20 w21").expect_err("no mask");
    assert_eq!(problem.code, "SC0103");
    assert!(format!("{problem:?}").contains("[MASK]"), "{problem:?}");
    for share in [0.0, -1.0, 1.5, f64::NAN] {
        let masking = Masking {
            share,
            ..Masking::default()
        };
        let problem = model.set_masking(masking).expect_err("no share");
        assert_eq!(problem.code, "SC0103");
    }
    // A decoder with weights of its own.
    let untied = tiny_bert(0.0);
    let path = untied.path().join("config.json");
    let config = std::fs::read_to_string(&path).expect("the fixture's file");
    let field = "\"tie_word_embeddings\": ";
    let config = config.replace(&format!("{field}true"), &format!("{field}false"));
    std::fs::write(&path, config).expect("room");
    let folder = untied.path().to_str().expect("a path in UTF-8");
    let problem = BertForMaskedLM::from_pretrained(folder).expect_err("not tied");
    assert!(
        format!("{problem:?}").contains("tie_word_embeddings"),
        "{problem:?}"
    );
    let weighted = quiet().class_weight([(0, 2.0), (1, 1.0)]);
    let problem = model.fit(&labelled, weighted).expect_err("no classes");
    assert_eq!(problem.code, "SC0103");
    let problem = model
        .compile(args().metrics([f1()]))
        .expect_err("no classes");
    assert!(format!("{problem:?}").contains("perplexity"), "{problem:?}");
    let classifier: BertForSequenceClassification = load(&tiny_bert(0.0));
    let problem = classifier.compile(plain_args().metrics([perplexity()]));
    let problem = problem.expect_err("no hidden tokens");
    assert!(problem.code == "SC0103" && format!("{problem:?}").contains("BertForMaskedLM"));
}
