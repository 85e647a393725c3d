//! Cells that are no Rust, explained before rustc reads on past their end: brackets and texts that are never
//! closed, statements without their end, Python. What else is wrong, rustc tells well.

use stratoscope_cell_syntax::{MAX_PARSED_BYTES, Syntax, blank_everywhere};

use super::calls::Found;
use super::scan::{self, Flaw, Scan, closing};
use super::scope::Misplaced;
use super::{
    CellContext, data_frames, ends_early, find, python, python_expressions, shell, with_blocks,
};
use crate::render::apply;
use crate::rules::{NameOfAnotherLibrary, PythonCell, PythonSpelling, UnfinishedCode};
use crate::{Diagnostic, Edit, Fix, Place, Rule};

/// What is wrong with a cell that is no Rust; `None`: rustc tells.
pub(super) fn explain(cell: &Syntax, context: &CellContext) -> Option<Diagnostic> {
    let text = cell.text();
    if text.len() > MAX_PARSED_BYTES {
        return None;
    }
    let code = blank_everywhere(text);
    let seen = scan::scan(&code);
    let expression = || python_expressions::answer(text, &seen.code, context);
    let block = || with_blocks::answer(text, &seen.code);
    let frame = || data_frames::answer(text, &seen.code, context);
    let found = shell::answer(&code).or_else(block).or_else(frame);
    if let Some(found) = found.or_else(expression) {
        return Some(found);
    }
    if let Some(line) = python::first_line(text, &seen) {
        return Some(python_cell(text, line));
    }
    if let Some(found) = spelling(text, &seen, context) {
        return Some(found);
    }
    if let Some(flaw) = seen.flaw {
        return Some(unfinished(text, flaw));
    }
    if !seen.comments.is_empty() || !seen.quoted.is_empty() || !seen.prefixed.is_empty() {
        // More than a spelling: lines of Python without a word that shows it.
        let first = [&seen.comments, &seen.quoted, &seen.prefixed];
        let first = first.into_iter().flatten().map(|span| span.start).min()?;
        let line = text[..first].matches('\n').count();
        return Some(python_cell(text, line));
    }
    misplaced_scope(cell, context)
        .or_else(|| continued(text, &code))
        .or_else(|| ends_early::answer(cell, &code, context))
}

/// SC0130: `run.continue()`, which no method can be called.
fn continued(text: &str, code: &str) -> Option<Diagnostic> {
    const CALL: &str = ".continue()";
    let at = code.find(CALL)?;
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let start = code[..at].trim_end_matches(is_name).len();
    let end = at + CALL.len();
    let is_tried = code[end..].starts_with('?');
    let written = format!(
        "{}.finish(){}",
        &text[start..at],
        if is_tried { "" } else { "?" }
    );
    let facts = NameOfAnotherLibrary {
        given: text[start..end].to_owned(),
        written: Some(written.clone()),
        place: Place::span(start, end),
        reason: "`continue` is a word of Rust and names no method; `finish` lets a run go on, to its end or to a condition of \
                 `break_when`"
            .to_owned(),
        edits: vec![Edit {
            place: Place::span(start, end),
            replacement: written,
        }],
        label: "a word of Rust",
    };
    Some(facts.diagnostic())
}

/// SC0128: a block behind `scope!(…)` is no Rust.
fn misplaced_scope(cell: &Syntax, context: &CellContext) -> Option<Diagnostic> {
    let (tokens, _) = cell.broken()?;
    let found = Found::read(cell.text(), tokens.clone(), false, &context.defined);
    found.scopes.first().map(Misplaced::diagnostic)
}

/// Whether another text is Rust, such as the cell after a fix.
pub(super) fn is_rust(text: &str) -> bool {
    Syntax::of(text).is_rust()
}

fn line_span(text: &str, number: usize) -> Option<(usize, usize)> {
    let start: usize = text.split_inclusive('\n').take(number).map(str::len).sum();
    let line = text.lines().nth(number)?;
    let indent = line.len() - line.trim_start().len();
    Some((start + indent, start + line.trim_end().len()))
}

fn python_cell(text: &str, line: usize) -> Diagnostic {
    let (start, end) = line_span(text, line).unwrap_or((0, text.len()));
    PythonCell {
        line: text[start..end].to_owned(),
        place: Place::span(start, end),
        forms: python::forms(text),
    }
    .diagnostic()
}

/// SC0127, where the cell is Rust but for some spellings.
fn spelling(text: &str, seen: &Scan, context: &CellContext) -> Option<Diagnostic> {
    let found = python::spellings(text, seen);
    let first = found.first()?;
    let edits = found.iter().map(|spelling| Edit {
        place: Place::Span(spelling.span),
        replacement: spelling.rust.clone(),
    });
    let mut fix = Fix {
        kind: crate::FixKind::Change,
        title: format!("write `{}`", first.rust),
        edits: edits.collect(),
    };
    let fixed = apply(text, &fix)?;
    if !is_rust(&fixed) {
        return None;
    }
    // What else is wrong is put right with it, as far as that can be done by edits.
    let done = settled(fixed.clone(), context);
    if done != fixed {
        fix.edits = vec![difference(text, &done)];
    }
    if done != fixed || !seen.prefixed.is_empty() {
        fix.title = format!("write `{}`", changed_line(text, &done));
    }
    let facts = PythonSpelling {
        given: text[first.span.start..first.span.end].to_owned(),
        reason: first.reason.to_owned(),
        places: found
            .iter()
            .filter(|spelling| spelling.span.start < spelling.span.end)
            .map(|spelling| Place::Span(spelling.span))
            .collect(),
        fix,
    };
    Some(facts.diagnostic())
}

/// The text after the first ways out of all that is found in it.
pub(super) fn settled(mut text: String, context: &CellContext) -> String {
    for _ in 0..6 {
        let found = find(&Syntax::of(&text), context);
        let next = found
            .iter()
            .find_map(|found| apply(&text, found.fixes.first()?));
        match next {
            Some(next) if next != text => text = next,
            _ => break,
        }
    }
    text
}

/// One edit that makes `new` of `old`.
pub(super) fn difference(old: &str, new: &str) -> Edit {
    let same = |(a, b): &(char, char)| a == b;
    let head: usize = old
        .chars()
        .zip(new.chars())
        .take_while(same)
        .map(|(it, _)| it.len_utf8())
        .sum();
    let tail: usize = old[head..]
        .chars()
        .rev()
        .zip(new[head..].chars().rev())
        .take_while(same)
        .map(|(it, _)| it.len_utf8())
        .sum();
    Edit {
        place: Place::span(head, old.len() - tail),
        replacement: new[head..new.len() - tail].to_owned(),
    }
}

/// The first line of `new` that is another one in `old`.
fn changed_line(old: &str, new: &str) -> String {
    let mut lines = new.lines().zip(old.lines().chain(std::iter::repeat("")));
    let changed = lines.find(|(new, old)| new != old);
    stratoscope_render::text::excerpt(changed.map_or("", |(new, _)| new.trim()), 76)
}

fn unfinished(text: &str, flaw: Flaw) -> Diagnostic {
    let facts = match flaw {
        Flaw::Text { at } => UnfinishedCode {
            message: "this string is not closed: its second `\"` is missing".to_owned(),
            labels: vec![(Place::span(at, at + 1), "the text begins here".to_owned())],
            fix: inserted(text, at, "\"", &line_ends(text, at)),
        },
        Flaw::Comment { at } => UnfinishedCode {
            message: "this comment is not closed: its `*/` is missing".to_owned(),
            labels: vec![(
                Place::span(at, at + 2),
                "the comment starts here".to_owned(),
            )],
            fix: inserted(
                text,
                at,
                "*/",
                &[line_ends(text, at).pop().unwrap_or(text.len()), text.len()],
            ),
        },
        Flaw::Unopened { at, bracket } => {
            let fix = Fix {
                kind: crate::FixKind::Change,
                title: format!("remove the `{bracket}`"),
                edits: vec![Edit {
                    place: Place::span(at, at + 1),
                    replacement: String::new(),
                }],
            };
            UnfinishedCode {
                message: format!("this `{bracket}` has no opening bracket"),
                labels: vec![(
                    Place::span(at, at + 1),
                    "no bracket is open here".to_owned(),
                )],
                fix: Some(checked(text, fix)),
            }
        }
        Flaw::Unclosed { at, bracket, found } => unclosed(text, at, bracket, found),
    };
    facts.diagnostic()
}

fn unclosed(text: &str, at: usize, bracket: char, found: Option<(usize, char)>) -> UnfinishedCode {
    let wanted = closing(bracket);
    let mut labels = vec![(
        Place::span(at, at + 1),
        "opened here, not closed".to_owned(),
    )];
    let mut ends = Vec::new();
    if let Some((place, other)) = found {
        labels.push((
            Place::span(place, place + 1),
            format!("`{wanted}` is expected before this `{other}`"),
        ));
        ends.push(place);
    }
    ends.extend(line_ends(text, at));
    ends.push(text.trim_end().len());
    let sign = wanted.to_string();
    let mut fix = inserted(text, at, &sign, &ends);
    let is_found = |fix: &Option<Fix>| fix.as_ref().is_some_and(|fix| !fix.edits.is_empty());
    if bracket == '{' && found.is_none() {
        // A block is closed on a line of its own.
        let below = inserted(text, at, "\n}", &[text.trim_end().len()]);
        fix = if is_found(&below) { below } else { fix };
    }
    if let Some((place, other)) = found
        && !is_found(&fix)
    {
        let instead = Fix {
            kind: crate::FixKind::Change,
            title: format!("write `{wanted}` for this `{other}`"),
            edits: vec![Edit {
                place: Place::span(place, place + 1),
                replacement: sign.clone(),
            }],
        };
        let instead = checked(text, instead);
        if !instead.edits.is_empty() {
            fix = Some(instead);
        }
    }
    UnfinishedCode {
        message: format!("this `{bracket}` is not closed: its `{wanted}` is missing"),
        labels,
        fix,
    }
}

/// Places on the line of `at` at which something that was forgotten may end, the likeliest first.
fn line_ends(text: &str, at: usize) -> Vec<usize> {
    let end = text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline);
    let line = text[at..end]
        .split("//")
        .next()
        .unwrap_or_default()
        .trim_end();
    let mut ends = Vec::new();
    for ending in [")?;", ");", "?;", ";", ")", ",", " {"] {
        if let Some(rest) = line.strip_suffix(ending)
            && !rest.is_empty()
        {
            ends.push(at + rest.len());
        }
    }
    ends.push(at + line.len());
    ends
}

/// `sign` at the first of these places at which it makes the cell Rust; in words where none does.
fn inserted(text: &str, after: usize, sign: &str, places: &[usize]) -> Option<Fix> {
    let fix = |place: usize| Fix {
        kind: crate::FixKind::Change,
        title: format!("add the missing `{}`", sign.trim()),
        edits: vec![Edit {
            place: Place::span(place, place),
            replacement: sign.to_owned(),
        }],
    };
    let works = |place: &&usize| {
        **place > after && apply(text, &fix(**place)).is_some_and(|text| is_rust(&text))
    };
    Some(match places.iter().find(works) {
        Some(place) => fix(*place),
        None => Fix {
            kind: crate::FixKind::Change,
            title: format!("add the missing `{}`", sign.trim()),
            edits: Vec::new(),
        },
    })
}

/// The fix, in words alone if its edits do not make the cell Rust.
pub(super) fn checked(text: &str, mut fix: Fix) -> Fix {
    if !apply(text, &fix).is_some_and(|text| is_rust(&text)) {
        fix.edits.clear();
    }
    fix
}
