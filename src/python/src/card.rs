//! The card of a Python cell: SC1013 with both programs side by side, then a card for each mistake that the rules know.

use std::collections::BTreeSet;

use stratoscope_diagnostics::rules::PythonCell;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Figure, Place, Rule, Severity};
use stratoscope_render::html::{CODE_FONT, escape, prose};
use stratoscope_render::text;

use crate::translate::pointer;
use crate::{Line, Translation};

/// More differences than these are not listed.
const MOST_NOTES: usize = 12;

/// The diagnostics of a Python cell; the first one is about the cell as a whole.
pub(crate) fn diagnostics(source: &str, translation: &Translation) -> Vec<Diagnostic> {
    let span = first_statement(source);
    let facts = PythonCell {
        line: source[span.start..span.end].to_owned(),
        place: Place::Span(span),
        forms: Vec::new(),
    };
    let mut card = facts.diagnostic();
    card.fixes.clear();
    if translation.is_torch {
        let mut diagnostics = vec![card.fix(pointer().to_owned())];
        diagnostics.extend(translation.findings.iter().cloned());
        return diagnostics;
    }
    let has_cell = translation.lines.iter().any(|line| !line.is_comment);
    card.why = vec![match has_cell {
        true => "calls and arguments have Keras's names, the language is Rust; the same program as a cell of this notebook \
                 is below"
            .to_owned(),
        false => "calls and arguments have Keras's names, the language is Rust: `let` binds a variable, `{ … }` is a \
                  block, `;` ends a statement, `?` returns an error"
            .to_owned(),
    }];
    for left in &translation.left {
        let place = match left.lines {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        };
        let python = text::excerpt(&left.python, 50);
        card = card.evidence(
            "not translated",
            format!("{place}, `{python}`: {}", left.why),
        );
    }
    for note in translation.notes.iter().take(MOST_NOTES) {
        card = card.evidence(
            "different here",
            format!("line {}: {}", note.line, note.text),
        );
    }
    for free in translation.free.iter().filter(|free| !free.is_given) {
        let what = match free.what.as_str() {
            "" => "a value".to_owned(),
            what => what.to_owned(),
        };
        card = card.evidence("to be given", format!("`{}`: {what}", free.name));
    }
    card = card.fix(match has_cell {
        true => "run the cell below, or copy it from here".to_owned(),
        false => "write the cell in Rust; `%help` and Tab show what is available".to_owned(),
    });
    if has_cell {
        card = card.figure(figure(source, &translation.lines));
    }
    let mut diagnostics = vec![card];
    diagnostics.extend(translation.findings.iter().cloned());
    diagnostics
}

/// The card of a cell whose translation was put below: nothing has failed.
pub(crate) fn as_note(diagnostics: &mut [Diagnostic]) {
    if let Some(first) = diagnostics.first_mut() {
        first.severity = Severity::Note;
    }
}

/// The first line that is no comment.
fn first_statement(source: &str) -> CellSpan {
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let code = line.trim();
        if !code.is_empty() && !code.starts_with('#') {
            let indent = line.len() - line.trim_start().len();
            return CellSpan {
                start: start + indent,
                end: start + indent + code.len(),
            };
        }
        start += line.len();
    }
    CellSpan {
        start: 0,
        end: source.len(),
    }
}

/// Lines of Python with the lines of the cell that stand for them.
struct Row {
    python: Option<(usize, usize)>,
    rust: Vec<String>,
}

fn rows(lines: &[Line]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        let text = "    ".repeat(line.depth) + &line.text;
        match (line.python, rows.last_mut()) {
            (Some(python), Some(last)) if last.python == Some(python) => last.rust.push(text),
            (None, Some(last)) => last.rust.push(text),
            (python, _) => rows.push(Row {
                python,
                rust: vec![text],
            }),
        }
    }
    rows
}

/// Both programs side by side.
fn figure(source: &str, lines: &[Line]) -> Figure {
    const CELL: &str =
        "padding:3px 10px 3px 0;vertical-align:top;text-align:left;border-top:1px solid #88888866";
    let code = format!(
        "{CODE_FONT};display:block;background:none;padding:0;white-space:pre-wrap;overflow-wrap:anywhere"
    );
    let python: Vec<&str> = source.lines().collect();
    let (mut html, mut plain) = (String::new(), String::new());
    let mut shown = BTreeSet::new();
    for row in rows(lines) {
        // A line is shown once, where several lines of the cell stand for it.
        let (first, last) = row.python.unwrap_or((1, 0));
        let numbered: Vec<String> = (first..=last)
            .filter(|line| shown.insert(*line))
            .filter_map(|line| Some(format!("{line:>3}  {}", python.get(line - 1)?)))
            .collect();
        html += &format!(
            "<tr><td style=\"{CELL}\"><code style=\"{code};opacity:0.75\">{}</code></td>\
             <td style=\"{CELL}\"><code style=\"{code}\">{}</code></td></tr>",
            escape(&numbered.join("\n")),
            escape(&row.rust.join("\n"))
        );
        for line in numbered.iter().filter(|line| line.len() > 5) {
            plain += &format!("{}\n", text::visible_line(line));
        }
        for line in &row.rust {
            plain += &format!("   → {}\n", text::visible_line(line));
        }
    }
    Figure {
        html: format!(
            "<table style=\"border-collapse:collapse;table-layout:fixed;width:100%\"><tr><th style=\"{CELL};width:50%\">{}</th>\
             <th style=\"{CELL}\">{}</th></tr>{html}</table>",
            prose("Python"),
            prose("as a cell of this notebook")
        ),
        plain,
    }
}
