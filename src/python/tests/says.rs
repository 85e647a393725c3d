//! What the answer to a Python cell must say: `tests/says.md` has the cells, and below each what must stand in the translated cell
//! (`cell:`), on the card (`card:`), and in neither of them (`not:`).

use stratoscope_diagnostics::check::is_rust;
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_python::{Answer, Known, answer};

/// One cell with what is expected.
struct Case<'a> {
    name: &'a str,
    python: &'a str,
    expected: Vec<(&'a str, &'a str)>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let sections = text.split("\n## ").skip(1);
    sections
        .map(|section| {
            let (name, rest) = section.split_once('\n').expect("a section has a cell");
            let (_, rest) = rest.split_once("```python\n").expect("a cell");
            let (python, rest) = rest.split_once("\n```").expect("the end of the cell");
            let lines = rest.lines().filter_map(|line| line.split_once(": "));
            Case {
                name,
                python,
                expected: lines.collect(),
            }
        })
        .collect()
}

/// What is read on the cards, without the table that has the Python text itself.
fn card(answer: &Answer) -> String {
    let of = |found: &Diagnostic| {
        let mut words = vec![format!("{} {}", found.code, found.message)];
        words.extend(found.why.iter().cloned());
        words.extend(
            found
                .evidence
                .iter()
                .map(|it| format!("{}: {}", it.name, it.value)),
        );
        words.extend(found.labels.iter().map(|it| it.text.clone()));
        words.extend(found.fixes.iter().map(|it| it.title.clone()));
        words.join("\n")
    };
    let cards: Vec<String> = answer.diagnostics.iter().map(of).collect();
    cards.join("\n")
}

#[test]
fn each_cell_is_answered() {
    let cases = cases(include_str!("says.md"));
    assert!(cases.len() >= 80, "{} cells", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let Some(answer) = answer(case.python, &Known::default()) else {
            wrong.push(format!("{}: no Python", case.name));
            continue;
        };
        let (cell, card) = (answer.cell(), card(&answer));
        let code: Vec<&str> = cell
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(str::trim)
            .collect();
        let code = code.join("\n");
        if !is_rust(&cell) {
            wrong.push(format!("{}: no Rust\n{cell}", case.name));
        }
        for (kind, text) in &case.expected {
            let is_right = match *kind {
                "cell" => code.contains(text),
                "card" => card.contains(text),
                "not" => !code.contains(text) && !card.contains(text),
                "is" => match *text {
                    "a note" => {
                        answer.is_nothing() && answer.diagnostics[0].severity == Severity::Note
                    }
                    "left out" => !answer.has_cell() && !answer.is_nothing(),
                    other => panic!("{}: `{other}`", case.name),
                },
                other => panic!("{}: `{other}`", case.name),
            };
            if !is_right {
                wrong.push(format!(
                    "{}: {kind}: {text}\n{cell}\n---\n{card}",
                    case.name
                ));
            }
        }
        assert!(!case.expected.is_empty(), "{}", case.name);
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}
