//! The card of a Python cell: SC1013 with both programs side by side, then a card for each mistake that the rules know.

use std::collections::{BTreeMap, BTreeSet};

use stratoscope_diagnostics::rules::PythonCell;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Figure, Place, Rule, Severity};
use stratoscope_render::html::{CODE_FONT, escape, prose};
use stratoscope_render::text;

use crate::{Line, Translation};

/// What every card of a Python cell says.
const LANGUAGE: &str = "Here cells are Rust";

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
    let has_cell = translation.lines.iter().any(|line| !line.is_comment);
    let has_nothing = translation.is_nothing();
    card.why = vec![match has_cell {
        true => format!("{LANGUAGE}. The translation is below"),
        false if has_nothing && !source.contains("import ") => {
            format!(
                "{LANGUAGE}, and what these lines set has another way or needs none, as each of them says below"
            )
        }
        false if has_nothing => format!(
            "{LANGUAGE}, and the layers, losses, optimizers, strategies and data sets of Keras's names are there from the start"
        ),
        false => format!(
            "{LANGUAGE}, and no line of this one has a translation: below, each has its reason and what there is instead"
        ),
    }];
    card = with_evidence(card, translation);
    if has_nothing {
        card.severity = Severity::Note;
        let what = if source.contains("import ") {
            "nothing to import"
        } else {
            "nothing to do"
        };
        card.message = format!("{what}: what this cell of Python sets up is not needed here");
        let mut diagnostics = vec![card];
        diagnostics.extend(translation.findings.iter().cloned());
        return diagnostics;
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

/// What is left out, different, without effect and to be given.
fn with_evidence(mut card: Diagnostic, translation: &Translation) -> Diagnostic {
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
    for (place, words) in by_text(
        translation
            .notes
            .iter()
            .map(|it| (it.line, it.text.clone())),
    ) {
        card = card.evidence("different here", format!("{place}: {words}"));
    }
    let idle = translation.idle.iter();
    let idle = idle.map(|it| {
        (
            it.line,
            format!("`{}`: {}", text::excerpt(&it.text, 60), it.why),
        )
    });
    for (place, words) in by_text(idle) {
        card = card.evidence("sets nothing here", format!("{place}, {words}"));
    }
    for free in translation.free.iter().filter(|free| !free.is_given) {
        let what = match free.what.as_str() {
            "" => "a value".to_owned(),
            what => what.to_owned(),
        };
        card = card.evidence("to be given", format!("`{}`: {what}", free.name));
    }
    card
}

/// The card of a cell whose translation was put below: nothing has failed.
pub(crate) fn as_note(diagnostics: &mut [Diagnostic]) {
    if let Some(first) = diagnostics.first_mut() {
        first.severity = Severity::Note;
        if let Some(why) = first.why.first_mut() {
            *why = why.replace("is below", "is in the next cell");
        }
    }
}

/// Lines with the same words, together: `line 3`, `lines 3, 5 and 9`.
fn by_text(lines: impl Iterator<Item = (usize, String)>) -> Vec<(String, String)> {
    let mut grouped: Vec<(Vec<usize>, String)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (line, words) in lines {
        match places.get(&words) {
            Some(at) => grouped[*at].0.push(line),
            None => {
                places.insert(words.clone(), grouped.len());
                grouped.push((vec![line], words));
            }
        }
    }
    let named = grouped.into_iter().map(|(mut lines, words)| {
        lines.dedup();
        let place = match lines.split_last() {
            Some((last, others)) if !others.is_empty() => {
                let others: Vec<String> = others.iter().map(ToString::to_string).collect();
                format!("lines {} and {last}", others.join(", "))
            }
            _ => format!("line {}", lines.first().copied().unwrap_or(1)),
        };
        (place, words)
    });
    named.collect()
}

/// The first line that is no comment, up to a length that can be read.
fn first_statement(source: &str) -> CellSpan {
    const MAX_CHARACTERS: usize = 200;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let code = line.trim();
        if !code.is_empty() && !code.starts_with('#') {
            let indent = line.len() - line.trim_start().len();
            let length = code
                .char_indices()
                .nth(MAX_CHARACTERS)
                .map_or(code.len(), |(at, _)| at);
            return CellSpan {
                start: start + indent,
                end: start + indent + length,
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
