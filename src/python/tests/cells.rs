//! Python cells with what becomes of them: `tests/articles.md` has cells of the shapes that articles on TensorFlow show,
//! `tests/cells.md` many others, `tests/usual.md` the single statements of most notebooks. A cell is followed by its translation and by what is found, left out or to be given. With
//! `UPDATE_CELLS=1` the files are written anew; the difference is to be read.

use std::fmt::Write;
use std::path::PathBuf;

use stratoscope_diagnostics::Place;
use stratoscope_python::{Answer, Known, answer};

/// One cell of a file.
struct Case {
    name: String,
    python: String,
    rust: String,
    found: String,
}

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(file)
}

/// The text before the first cell, and the cells.
fn read(file: &str) -> (String, Vec<Case>) {
    let text = std::fs::read_to_string(path(file)).expect("the file is there");
    let mut sections = text.split("\n## ");
    let head = sections.next().unwrap_or_default().to_owned();
    let block = |section: &str, language: &str| {
        let start = format!("```{language}\n");
        let rest = section.split_once(&start).map_or("", |(_, rest)| rest);
        rest.split_once("\n```")
            .map_or("", |(block, _)| block)
            .to_owned()
    };
    let cases = sections.map(|section| Case {
        name: section.lines().next().unwrap_or_default().to_owned(),
        python: block(section, "python"),
        rust: block(section, "rust"),
        found: block(section, "text"),
    });
    (head, cases.collect())
}

fn answered(python: &str) -> Answer {
    answer(python, &Known::default()).expect("it is Python")
}

/// What is found, left out, different or to be given, a line each.
fn found(python: &str, answer: &Answer) -> String {
    let mut text = String::new();
    for finding in &answer.translation.findings {
        let label = finding.labels.first().expect("a finding has a place");
        let Place::Span(span) = label.place else {
            panic!("{}: not in the text", finding.code);
        };
        let first = python[span.start..span.end]
            .lines()
            .next()
            .unwrap_or_default();
        let line = 1 + python[..span.start].matches('\n').count();
        let _ = writeln!(
            text,
            "{} in line {line}, `{first}`: {}",
            finding.code, finding.message
        );
    }
    for left in &answer.translation.left {
        let _ = writeln!(text, "left out, line {}: {}", left.lines.0, left.why);
    }
    for free in &answer.translation.free {
        let _ = writeln!(text, "to be given: {}", free.name);
    }
    text.trim_end().to_owned()
}

fn check(file: &str, at_least: usize) {
    let (head, cases) = read(file);
    assert!(cases.len() >= at_least, "{file} has {} cells", cases.len());
    let mut text = head;
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = answered(&case.python);
        let (rust, found) = (answer.cell(), found(&case.python, &answer));
        if rust != case.rust || found != case.found {
            wrong.push(format!("## {}\n{rust}\n---\n{found}", case.name));
        }
        let _ = write!(
            text,
            "\n## {}\n```python\n{}\n```\n```rust\n{rust}\n```\n```text\n{found}\n```\n",
            case.name, case.python
        );
    }
    if std::env::var_os("UPDATE_CELLS").is_some() {
        std::fs::write(path(file), text).expect("the file can be written");
        return;
    }
    assert!(wrong.is_empty(), "{file}:\n{}", wrong.join("\n\n"));
}

#[test]
fn the_shapes_of_the_articles_are_translated() {
    check("articles.md", 12);
}

#[test]
fn cells_are_translated() {
    check("cells.md", 60);
}

#[test]
fn usual_single_statements_are_translated() {
    check("usual.md", 30);
}

#[test]
fn cells_of_the_trainer_and_of_pytorch_are_translated() {
    check("trainer.md", 60);
}

#[test]
fn every_line_of_a_cell_is_under_a_line_of_python() {
    for file in ["articles.md", "cells.md", "trainer.md", "usual.md"] {
        for case in read(file).1 {
            let answer = answered(&case.python);
            let count = case.python.lines().count();
            for line in &answer.translation.lines {
                if let Some((first, last)) = line.python {
                    assert!(
                        1 <= first && first <= last && last <= count,
                        "{}: {line:?}",
                        case.name
                    );
                }
            }
            let card = &answer.diagnostics[0];
            assert_eq!(card.code, "SC1013", "{}", case.name);
            assert!(card.figure.is_some() == answer.has_cell(), "{}", case.name);
        }
    }
}

/// The words of a cell without comments, sorted: what does not depend on order and layout.
fn words(cell: &str) -> Vec<String> {
    let code = cell
        .lines()
        .map(|line| match line.trim_start().starts_with("//") {
            true => "",
            false => line.split(" // ").next().unwrap_or_default(),
        });
    let code: Vec<&str> = code.collect();
    let mut words: Vec<String> = code
        .join(" ")
        .split(|it: char| !it.is_alphanumeric() && it != '_' && it != '.')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.sort();
    words
}

/// The codes of what is found, sorted.
fn codes(answer: &Answer) -> Vec<String> {
    let findings = answer.translation.findings.iter();
    let mut codes: Vec<String> = findings.map(|found| found.code.clone()).collect();
    codes.sort();
    codes
}

/// A cell that says the same in another way has the same translation.
fn same(name: &str, python: &str, changed: &str, renamed: impl Fn(&str) -> String) {
    let (before, after) = (answered(python), answered(changed));
    assert_eq!(
        words(&renamed(&before.cell())),
        words(&after.cell()),
        "{name}:\n{changed}"
    );
    assert_eq!(codes(&before), codes(&after), "{name}:\n{changed}");
    assert_eq!(
        before.translation.left.len(),
        after.translation.left.len(),
        "{name}:\n{changed}"
    );
}

/// Replaces a whole word.
fn rename(text: &str, from: &str, to: &str) -> String {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let mut renamed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + from.len()..].chars().next();
        // A name behind a point is an attribute, one before `=` in brackets an argument: neither is renamed.
        let is_argument = after == Some('=')
            && renamed.matches('(').count() + rest[..at].matches('(').count()
                > renamed.matches(')').count() + rest[..at].matches(')').count();
        renamed += &rest[..at];
        let is_name = !is_part(before) && !is_part(after) && before != Some('.') && !is_argument;
        renamed += if is_name { to } else { from };
        rest = &rest[at + from.len()..];
    }
    renamed + rest
}

#[test]
fn other_names_comments_and_lines_change_nothing() {
    for file in ["articles.md", "cells.md", "trainer.md", "usual.md"] {
        for Case { name, python, .. } in read(file).1 {
            // Texts over several lines hold no comments.
            if !python.contains("\"\"\"") {
                let commented = python.replace('\n', "  # a note\n");
                same(&name, &python, &commented, str::to_owned);
            }
            let spaced = format!(
                "\"\"\"What the cell does.\n\nIn some lines: model.fit(x)\"\"\"\n\n\n{python}\n\n"
            );
            same(&name, &python, &spaced, str::to_owned);
            if !python.contains("\"\"\"")
                && !python.contains("'model")
                && !python.contains("\"model")
                && !python.contains("Model compiled")
            {
                let renamed = rename(&python, "model", "the_model_7");
                same(&name, &python, &renamed, |cell| {
                    rename(cell, "model", "the_model_7")
                });
            }
        }
    }
}

#[test]
fn the_order_of_named_arguments_changes_nothing() {
    let orders = [
        "model.compile(optimizer='adam', loss='mse', metrics=['mae'])",
        "model.compile(metrics=['mae'], loss='mse', optimizer='adam')",
        "model.compile('adam', metrics=['mae'], loss='mse')",
        "model.compile(\n    loss='mse',  # the loss\n\n    metrics=[\n        'mae',\n    ],\n    optimizer=\"adam\",\n)",
    ];
    for other in &orders[1..] {
        same(other, orders[0], other, str::to_owned);
        assert_eq!(answered(orders[0]).cell(), answered(other).cell());
    }
    let fits = [
        "model.fit(train, epochs=3, batch_size=8, validation_data=dev, shuffle=False)",
        "model.fit(train, shuffle=False, validation_data=dev, batch_size=8, epochs=3)",
        "model.fit(batch_size=8, x=train, epochs=3, shuffle=False, validation_data=dev)",
    ];
    for other in &fits[1..] {
        same(other, fits[0], other, str::to_owned);
    }
}
