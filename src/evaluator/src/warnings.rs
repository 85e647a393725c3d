//! rustc's warnings about a cell that compiles. evcxr passes over them, so the crate `compile`
//! leaves them in its state, in rustc's words and places. Those that are about the cell's
//! own lines are shown, each once, muted as other warnings are; those of
//! earlier cells were shown there.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Label, Place, Severity};

use stratoscope_compile::evcxr_contract::SOURCE;
use stratoscope_compile::state::State;

use super::rustc_errors;
use stratoscope_cell_syntax::CellSyntax;
use stratoscope_cell_text::rewrite::Rewritten;
use stratoscope_cell_text::rewrite::unhandled::question_mark;

/// What the text around a cell brings about.
const OURS: [&str; 4] = [
    "redundant_semicolons",
    "unused_braces",
    "unused_parens",
    "unused_qualifications",
];

/// Lints that also fire for a variable of the notebook that the cell shadows.
const UNUSED: [&str; 2] = ["unused_assignments", "unused_variables"];

/// The lint for results that are dropped. rustc proposes `let _ = …;`, which would hide the error for good.
const UNHANDLED: &str = "unused_must_use";

#[derive(Deserialize)]
struct Message {
    message: String,
    code: Option<Code>,
    level: String,
    spans: Vec<Span>,
    children: Value,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    line_end: usize,
    column_start: usize,
    column_end: usize,
    is_primary: bool,
    label: Option<String>,
}

/// The warnings about this cell, taken: the next cell does not get them.
pub fn take(home: &Path, rewritten: &Rewritten, cell: &CellSyntax) -> Vec<Diagnostic> {
    let left = State::take_warnings(home);
    let Ok(source) = fs::read_to_string(stratoscope_compile::home::source(home)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for line in left.lines() {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            continue;
        };
        let warning = message.in_cell(&source, rewritten, cell);
        found.extend(warning.filter(|warning| !found.contains(warning)));
    }
    found
}

impl Message {
    fn in_cell(
        &self,
        source: &str,
        rewritten: &Rewritten,
        cell: &CellSyntax,
    ) -> Option<Diagnostic> {
        let code = &self.code.as_ref()?.code;
        // A variable of the notebook is there for the next cell.
        let name = self.message.split('`').nth(1).unwrap_or_default();
        let is_kept = UNUSED.contains(&&**code) && rewritten.bindings.iter().any(|it| it == name);
        if self.level != "warning" || OURS.contains(&&**code) || is_kept {
            return None;
        }
        let mut warning = Diagnostic::new(code, Severity::Warning, self.message.clone());
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| !span.is_primary);
        for span in spans {
            let place = span.in_cell(source, rewritten);
            match place {
                Some(place) => warning.labels.push(Label {
                    place,
                    text: span.label.clone().unwrap_or_default(),
                }),
                None if span.is_primary => return None,
                None => {}
            }
        }
        let mut warning =
            rustc_errors::with_children(warning, &self.children, rewritten, cell.code());
        if code == UNHANDLED {
            handled(&mut warning, cell);
        }
        (!warning.labels.is_empty()).then_some(warning)
    }
}

/// A `?` in place of rustc's `let _ = …;`: with the edit where it ends the cell, in words in a closure or a function.
fn handled(warning: &mut Diagnostic, cell: &CellSyntax) {
    warning.fixes.retain(|fix| {
        let hides = |text: &str| text.contains("let _ =");
        !hides(&fix.title) && !fix.edits.iter().any(|edit| hides(&edit.replacement))
    });
    if !warning.message.contains("`Result`") && !warning.message.contains("`std::result::Result`") {
        return;
    }
    let title = "write `?` behind it, so that an error is not lost";
    let end = warning.labels.first().map(|label| &label.place);
    let fixed = match end {
        Some(Place::Span(span))
            if question_mark::is_the_cells(cell, span.end.saturating_sub(1)) =>
        {
            warning
                .clone()
                .fix_edit(title, Place::span(span.end, span.end), "?")
        }
        _ => warning
            .clone()
            .fix(format!("{title}, or handle it with `match`")),
    };
    *warning = fixed;
}

impl Span {
    /// The same place in the text of the cell, if its statement stands there.
    fn in_cell(&self, source: &str, rewritten: &Rewritten) -> Option<Place> {
        if self.file_name != SOURCE {
            return None;
        }
        let line = source.lines().nth(self.line_start.checked_sub(1)?)?;
        let begin = begin_of(source, self.line_start, &rewritten.text)?;
        let indent = line.len() - line.trim_start().len();
        // Columns count characters from 1; a span of several lines is shown to the first one's end.
        let byte = |column: usize| {
            let characters = line.char_indices().map(|(at, _)| at);
            characters.chain([line.len()]).nth(column - 1)
        };
        let start = byte(self.column_start)?;
        let end = match self.line_end == self.line_start {
            true => byte(self.column_end)?,
            false => line.len(),
        };
        let start = begin + start.checked_sub(indent)?;
        let end = begin + end.checked_sub(indent)?;
        Some(Place::Span(CellSpan {
            start: rewritten.original_start(start),
            end: rewritten.original_offset(end),
        }))
    }
}

/// Where, in the text that evcxr was given, the line of the source begins that is counted from 1.
/// evcxr puts each statement on a line of its own, the cell's last in the source, so equal ones are
/// counted from the end.
fn begin_of(source: &str, number: usize, given: &str) -> Option<usize> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let text = *lines.get(number - 1)?;
    let from_the_end = lines[number..].iter().filter(|line| **line == text).count();
    let places = given.rmatch_indices(text).map(|(at, _)| at);
    places.filter(|_| !text.is_empty()).nth(from_the_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_result_is_never_to_be_hidden() {
        let warned = |cell: &str, message: &str| {
            let mut warning = Diagnostic::new(UNHANDLED, Severity::Warning, message);
            warning = warning.label(Place::span(0, cell.len() - 1), "");
            let hide = "use `let _ = ...` to ignore the resulting value: `let _ = f();`";
            warning = warning.fix_edit(hide, Place::span(0, 0), "let _ = ");
            handled(&mut warning, &CellSyntax::of(cell));
            warning.fixes
        };
        let fixes = warned("f();", "unused `Result` that must be used");
        assert_eq!(fixes.len(), 1, "{fixes:?}");
        assert_eq!(fixes[0].edits[0].place, Place::span(3, 3));
        assert_eq!(fixes[0].edits[0].replacement, "?");
        let fixes = warned("let g = || f();", "unused `Result` that must be used");
        assert_eq!(fixes.len(), 1, "{fixes:?}");
        assert!(fixes[0].edits.is_empty(), "{fixes:?}");
        assert!(warned("f();", "unused `Map` that must be used").is_empty());
    }

    #[test]
    fn lines_are_found_again() {
        let given = "at(1);let a = 1;\nat(2);f();\nat(3);let b = 2;\nat(4);f();";
        let source = "fn f() {}\nmod x {\n  let a = 1;\nat(2);\n  f();\nlet b = 2;\nf();\n}\n";
        for (number, expected) in [
            (3, Some("let a")),
            (5, Some("f();\nat(3)")),
            (6, Some("let b")),
            (7, Some("f();")),
            (1, None),
            (2, None),
        ] {
            let found = begin_of(source, number, given).map(|at| &given[at..]);
            match expected {
                Some(begin) => assert!(found.is_some_and(|it| it.starts_with(begin)), "{number}"),
                None => assert_eq!(found, None, "{number}"),
            }
        }
        assert_eq!(begin_of(source, 7, given), Some(given.len() - 4));
    }
}
