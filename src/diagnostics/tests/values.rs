//! Names of other libraries, and what is shown in place of rustc's error: `tests/cells/values.md`. With `UPDATE_CELLS=1` the
//! answers in the file are written; the difference is to be read. `tests/test_values.py` tries them in the kernel.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use stratoscope_diagnostics::check::{CellContext, check_cell, in_our_words, is_rust};
use stratoscope_diagnostics::render::apply;
use stratoscope_diagnostics::{Diagnostic, Place, Severity};

/// The variables of the first cell of the file.
const VARIABLES: [(&str, &str); 16] = [
    ("data", "stratoscope::prelude::Dataset"),
    ("dev", "stratoscope::prelude::Device"),
    ("h", "stratoscope::prelude::History"),
    ("n", "i32"),
    ("name", "String"),
    ("net", "stratoscope::prelude::ModelOf<Layers>"),
    ("p", "stratoscope::prelude::Predictions"),
    ("result", "stratoscope::prelude::Evaluation"),
    ("rows", "Vec<Vec<f64>>"),
    ("run", "stratoscope::prelude::Run"),
    ("strategy", "stratoscope::prelude::MirroredStrategy"),
    ("t", "stratoscope::prelude::Tensor<2>"),
    ("text", "&str"),
    ("v", "Vec<f64>"),
    ("w", "Vec<i32>"),
    ("x", "f64"),
];

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cells/values.md")
}

/// A cell with rustc's error about it.
struct Case {
    cell: String,
    /// `rustc E0609 …` and `label …`.
    error: Vec<String>,
    /// All that stands in the file behind its title.
    answer: String,
}

/// The parts of the file: a case, or text between cases.
enum Part {
    Text(String),
    Case(String, Case),
}

fn read(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for section in text.split("\n## ").enumerate() {
        let (index, section) = section;
        if index == 0 {
            parts.push(Part::Text(section.to_owned()));
            continue;
        }
        // A title of a section may follow a case.
        let (body, after) = match section.find("\n# ") {
            Some(at) => section.split_at(at),
            None => (section, ""),
        };
        let (title, body) = body.split_once('\n').expect("a case has lines");
        let cell = body.split_once("```rust\n").expect("a case has a cell").1;
        let cell = cell.split("\n```").next().unwrap_or_default().to_owned();
        let error = body.lines().filter_map(|it| it.strip_prefix("- "));
        let error = error.filter(|it| {
            ["rustc ", "label ", "also "]
                .iter()
                .any(|word| it.starts_with(word))
        });
        let case = Case {
            cell,
            error: error.map(str::to_owned).collect(),
            answer: body.trim().to_owned(),
        };
        parts.push(Part::Case(title.to_owned(), case));
        if !after.is_empty() {
            parts.push(Part::Text(after.trim_start().to_owned()));
        }
    }
    parts
}

/// rustc's error: ``rustc E0609 `layers`: no field `layers` on …``.
fn error_of(case: &Case) -> Diagnostic {
    let line = case.error[0].strip_prefix("rustc ").expect("an error");
    let (code, rest) = line.split_once(" `").expect("a code and a place");
    let (at, message) = rest.split_once("`: ").expect("a place and a message");
    let start = case
        .cell
        .find(at)
        .unwrap_or_else(|| panic!("{at} in {}", case.cell));
    let label = case.error.get(1).and_then(|it| it.strip_prefix("label "));
    let also = case.error.iter().filter_map(|it| it.strip_prefix("also `"));
    let also = also.filter_map(|it| it.split_once("`: "));
    let found = Diagnostic::new(code, Severity::Error, message).label(
        Place::span(start, start + at.len()),
        label.unwrap_or_default(),
    );
    let found = also.fold(found, |found, (at, text)| {
        let start = case.cell.find(at).expect("a place of the cell");
        found.label(Place::span(start, start + at.len()), text)
    });
    match case.cell.split_once(") = ") {
        // The value of a pattern.
        Some((_, value)) if code == "E0308" => {
            let end = case.cell.trim_end_matches(';').len();
            found.label(
                Place::span(end - value.trim_end_matches(';').len(), end),
                "",
            )
        }
        _ => found,
    }
}

fn answered(case: &Case, context: &CellContext) -> String {
    let mut text = String::new();
    // As in the kernel: the compiler is asked about a cell whose text is in order.
    let found = check_cell(&case.cell, context).into_iter().next();
    let found = found.or_else(|| in_our_words(&case.cell, &error_of(case), context));
    let code = found.as_ref().map_or("none", |found| &found.code);
    let _ = writeln!(text, "{code}");
    for line in &case.error {
        let _ = writeln!(text, "- {line}");
    }
    if let Some(found) = &found {
        let _ = writeln!(text, "- {}", found.message);
        for why in &found.why {
            let _ = writeln!(text, "- {why}");
        }
    }
    let _ = write!(text, "```rust\n{}\n```", case.cell);
    let fixed = found.and_then(|found| apply(&case.cell, found.fixes.first()?));
    if let Some(fixed) = fixed {
        assert!(is_rust(&fixed), "{}: {fixed}", case.cell);
        let _ = write!(text, "\n```rust\n{fixed}\n```");
    }
    text
}

#[test]
fn names_of_other_libraries_have_an_answer() {
    let text = std::fs::read_to_string(file()).expect("the file is there");
    let context = CellContext::with_variables(VARIABLES);
    let update = std::env::var_os("UPDATE_CELLS").is_some();
    let (mut written, mut count) = (String::new(), 0);
    for part in read(&text) {
        match part {
            Part::Text(text) => {
                let gap = if written.is_empty() { "" } else { "\n" };
                let _ = writeln!(written, "{gap}{}", text.trim_end());
            }
            Part::Case(title, case) => {
                let answer = answered(&case, &context);
                if !update {
                    assert_eq!(answer, case.answer, "{title}");
                }
                let _ = writeln!(written, "\n## {title}\n{answer}");
                count += 1;
            }
        }
    }
    assert!(count >= 100, "{count} cells");
    if update {
        std::fs::write(file(), written).expect("the file can be written");
    }
}
