//! What the text decides of calls that our own API does not take: the card shows the line to write.

use stratoscope_diagnostics::check::{CellContext, check_cell};

/// A notebook with a model, two data sets and lists.
fn context() -> CellContext {
    let variables = [
        ("model", "BertForSequenceClassification"),
        ("train", "Dataset"),
        ("dev", "Dataset"),
        ("texts", "Vec<String>"),
        ("words", "[&str; 2]"),
        ("x", "Vec<[f64; 2]>"),
        ("y", "Vec<i32>"),
    ];
    CellContext::with_variables(variables)
}

/// The codes of a cell's findings, and the title of the first fix.
fn found(cell: &str) -> (Vec<String>, String) {
    let found = check_cell(cell, &context());
    let fix = found.iter().flat_map(|it| &it.fixes).next();
    let title = fix.map(|fix| fix.title.clone()).unwrap_or_default();
    (found.into_iter().map(|it| it.code).collect(), title)
}

#[test]
fn the_first_fix_is_what_was_meant() {
    for (cell, code, fix) in [
        // Texts and their labels in place of a data set.
        (
            "fit!(model, texts, y, epochs = 1)?;",
            "SC0124",
            "Dataset::from_rows(texts, y)?",
        ),
        (
            "fit!(model, &texts, &y)?;",
            "SC0124",
            "Dataset::from_rows(&texts, &y)?",
        ),
        (
            "fit!(model, words, y)?;",
            "SC0124",
            "Dataset::from_rows(words, y)?",
        ),
        (
            "fit!(model, x, y)?;",
            "SC0124",
            "Dataset::from_arrays(x, y)?",
        ),
        (
            "evaluate!(model, texts, y)?;",
            "SC0124",
            "Dataset::from_rows(texts, y)?",
        ),
        (
            "let a = vec![\"a game\", \"a mail server\"];\nlet b = vec![0, 1];\nfit!(model, a, b, epochs = 1)?;",
            "SC0124",
            "Dataset::from_rows(a, b)?",
        ),
        (
            "let a = [[1.0, 2.0], [3.0, 4.0]];\nlet b = vec![0, 1];\nfit!(model, a, b)?;",
            "SC0124",
            "Dataset::from_arrays(a, b)?",
        ),
        // A variable of the notebook that the cell binds again.
        (
            "let texts = [[1.0, 2.0]];\nfit!(model, texts, y)?;",
            "SC0124",
            "Dataset::from_arrays(texts, y)?",
        ),
        // Data that is not trained on.
        ("evaluate!(model)?", "SC0124", "evaluate!(model, dev, …)"),
        ("fit!(model)?;", "SC0124", "fit!(model, train, …)"),
        // Rates.
        (
            "compile!(model, optimizer = AdamW::new(1))?;",
            "SC0103",
            "AdamW::new(5e-5)",
        ),
        (
            "compile!(model, optimizer = Adam::new(-0.1))?;",
            "SC0103",
            "Adam::new(",
        ),
        (
            "compile!(model, optimizer = Adam::new(-1e-3))?;",
            "SC0103",
            "Adam::new(0.001)",
        ),
        (
            "compile!(model, optimizer = SGD::new(1))?;",
            "SC0103",
            "SGD::new(1.0)",
        ),
        (
            "compile!(model, optimizer = SGD::new(-0.1))?;",
            "SC0103",
            "SGD::new(0.1)",
        ),
        // Keras's levels of output.
        (
            "fit!(model, train, verbose = 2)?;",
            "SC0103",
            "verbose = true",
        ),
        (
            "fit!(model, train, verbose = 0)?;",
            "SC0103",
            "verbose = false",
        ),
        // Nothing to answer.
        ("model.predict([])?", "SC0914", "at least one example"),
        ("model.predict(vec![])?", "SC0914", "at least one example"),
        ("model.predict(&[])?", "SC0914", "at least one example"),
    ] {
        let (codes, title) = found(cell);
        assert_eq!(
            codes.first().map(String::as_str),
            Some(code),
            "{cell}: {codes:?}"
        );
        assert!(title.contains(fix), "{cell}: {title}");
    }
}

/// A rate that is too high is not offered, and the card says why.
#[test]
fn a_fix_does_not_contradict_its_reason() {
    for cell in [
        "compile!(model, optimizer = AdamW::new(1))?;",
        "compile!(model, optimizer = Adam::new(-0.1))?;",
        "compile!(model, optimizer = Adam::new(\"0.5\"))?;",
    ] {
        let (_, title) = found(cell);
        let rate = title
            .split(['(', ')'])
            .nth(1)
            .and_then(|it| it.parse::<f64>().ok());
        assert!(rate.is_some_and(|rate| rate < 0.1), "{cell}: {title}");
    }
}

#[test]
fn what_is_taken_has_no_finding() {
    for cell in [
        "fit!(model, train, class_weight = {0: 1.0, 1: 2.0})?;",
        "fit!(model, train, class_weight = {\"red\": 5.0, \"blue\": 1.0,}, epochs = 2)?;",
        "start!(model, train, class_weight = {0: 1, 1: 2})?;",
        "model.predict([[1.0, 2.0]])?",
        "model.predict([\"a\"])?",
        "let d = Dataset::from_rows([\"a\"], [0])?;",
        "let net = Sequential::new([Dense::new(8), Dropout::new(0.5), Dense::new(3)])?;",
        "fit!(model, train, verbose = false)?;",
    ] {
        let (codes, title) = found(cell);
        assert!(codes.is_empty(), "{cell}: {codes:?} {title}");
    }
}
