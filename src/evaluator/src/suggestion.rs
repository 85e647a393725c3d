//! rustc's suggestions, as edits of the cell's own text. rustc sees lines and calls that the kernel and evcxr have added;
//! suggestions about these are dropped.

use std::ops::Range;

use serde_json::Value;
use stratoscope_diagnostics::{Edit, Place};

use stratoscope_cell_text::rewrite::Rewritten;

/// A line that is longer is not shown.
const LONG: usize = 80;

/// Parts of generated lines and names.
const GENERATED: [&str; 18] = [
    "evcxr",
    "EVCXR",
    "Evcxr",
    "run_user_code_",
    "stratoscope::cell::at(",
    "stratoscope::cell::begin(",
    "stratoscope::cell::dropped(",
    "stratoscope::cell::looks(",
    "stratoscope::cell::unused::",
    "stratoscope::cell::enter(",
    "stratoscope::cell::guard(",
    "stratoscope::cell::leave(",
    "stratoscope::cell::timeit(",
    "stratoscope::__result",
    "__compile_arguments",
    "__fit_arguments",
    "std::panic::AssertUnwindSafe(||{",
    "CellError",
];

/// Whether a text names what the kernel or evcxr has put around the cell.
pub fn is_generated(text: &str) -> bool {
    GENERATED.iter().any(|ours| text.contains(ours))
}

/// What a span suggests.
#[derive(Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// This is to be typed; in the cell, where its place is known.
    Type { shown: String, edit: Option<Edit> },
    /// It is about text that the kernel or evcxr has put there.
    NotOurs,
    /// Something is to be left out, or is too long to be shown.
    Nothing,
}

/// The suggestion of one span of rustc's, for a cell of this text.
pub fn of_span(span: &Value, rewritten: &Rewritten, code: &str) -> Suggestion {
    let Some(replacement) = span["suggested_replacement"].as_str() else {
        return Suggestion::Nothing;
    };
    let lines = span["text"].as_array().map_or(&[][..], Vec::as_slice);
    let around = lines.iter().filter_map(|line| line["text"].as_str());
    let place = place_of(lines, rewritten);
    if is_generated(replacement) || (place.is_none() && around.into_iter().any(is_generated)) {
        return Suggestion::NotOurs;
    }
    let trimmed = replacement.trim();
    let edit = place.clone().map(|place| Edit {
        place: Place::span(place.start, place.end),
        replacement: replacement.to_owned(),
    });
    if trimmed.is_empty() {
        return Suggestion::Nothing;
    }
    let is_sign = |character: char| !character.is_alphanumeric();
    let is_name = !trimmed.chars().all(is_sign);
    let line = match &place {
        // A name alone says enough; what is put in, or a sign, is seen in its line.
        Some(place) if !place.is_empty() && is_name => None,
        Some(place) => whole_line(code, place, replacement),
        None => line_of_another_cell(lines, replacement, is_name),
    };
    Suggestion::Type {
        shown: line.unwrap_or_else(|| trimmed.to_owned()),
        edit,
    }
}

/// The line of the cell with the replacement in it.
fn whole_line(code: &str, place: &Range<usize>, replacement: &str) -> Option<String> {
    let start = code[..place.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let end = code[place.end..]
        .find('\n')
        .map_or(code.len(), |newline| place.end + newline);
    let whole = format!(
        "{}{replacement}{}",
        &code[start..place.start],
        &code[place.end..end]
    );
    let whole = whole.trim();
    (whole.chars().count() <= LONG && !whole.contains('\n')).then(|| whole.to_owned())
}

/// The same for a line of another cell, such as that of a function.
fn line_of_another_cell(lines: &[Value], replacement: &str, is_name: bool) -> Option<String> {
    let [line] = lines else {
        return None;
    };
    let text = line["text"].as_str()?;
    let (start, end) = columns(line)?;
    if start < end && is_name {
        return None;
    }
    let whole = format!("{}{replacement}{}", text.get(..start)?, text.get(end..)?);
    let whole = whole.trim();
    // What is put in as a line of its own stands before a line of another statement.
    (whole.chars().count() <= LONG && !whole.contains('\n')).then(|| whole.to_owned())
}

/// Bytes of a line of rustc's that are marked.
fn columns(line: &Value) -> Option<(usize, usize)> {
    let text = line["text"].as_str()?;
    let byte = |name: &str| {
        let column = usize::try_from(line[name].as_u64()?.checked_sub(1)?).ok()?;
        let bytes = text.char_indices().map(|(at, _)| at);
        bytes.chain([text.len()]).nth(column)
    };
    Some((byte("highlight_start")?, byte("highlight_end")?))
}

/// The bytes of the cell that a span of one line marks. evcxr puts each statement on a line of its own, so
/// the line is looked for in what it was given; one that is there twice tells nothing.
fn place_of(lines: &[Value], rewritten: &Rewritten) -> Option<Range<usize>> {
    let [line] = lines else {
        return None;
    };
    let text = line["text"].as_str()?;
    let content = text.trim();
    let (start, end) = columns(line)?;
    let indent = text.len() - text.trim_start().len();
    let mut places = rewritten.text.match_indices(content);
    let (at, _) = places.next()?;
    if content.is_empty() || places.next().is_some() {
        return None;
    }
    let begin = at + start.checked_sub(indent)?;
    rewritten.copied_from(begin..at + end.checked_sub(indent)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_cell_text::rewrite::rewrite;

    /// `at` is marked in a line of what rustc was given.
    fn span(line: &str, at: &str, replacement: &str) -> Value {
        let byte = line.find(at).expect("stands in the line");
        let start = 1 + line[..byte].chars().count();
        serde_json::json!({
            "suggested_replacement": replacement,
            "text": [{
                "text": line, "highlight_start": start,
                "highlight_end": start + at.chars().count(),
            }],
        })
    }

    fn shown(code: &str, span: &Value) -> Option<String> {
        match of_span(span, &rewrite(code, 1, false), code) {
            Suggestion::Type { shown, .. } => Some(shown),
            _ => None,
        }
    }

    #[test]
    fn what_is_put_in_is_shown_in_its_line_of_the_cell() {
        let insert = |line: &str, column: usize, replacement: &str| {
            serde_json::json!({
                "suggested_replacement": replacement,
                "text": [{ "text": line, "highlight_start": column, "highlight_end": column }],
            })
        };
        let code = "let ü = 1;\n    let x = 5;\nf(x)";
        for (span, expected) in [
            (insert("let x = 5;", 5, "mut "), Some("let mut x = 5;")),
            (
                insert("::stratoscope::__result!(f(x));", 28, "&"),
                Some("f(&x)"),
            ),
            (span("let ü = 1;", "1", "one"), Some("one")),
            (span("let x = 5;", "=", "=="), Some("let x == 5;")),
            (
                insert("fn g(v: Vec<u8>) {", 9, "&"),
                Some("fn g(v: &Vec<u8>) {"),
            ),
            (
                insert(
                    "let x = evcxr_variable_store.take_variable::<i32>(stringify!(x));",
                    5,
                    "mut ",
                ),
                None,
            ),
            (insert("let x = 5;", 5, ""), None),
        ] {
            assert_eq!(shown(code, &span).as_deref(), expected, "{span}");
        }
    }

    #[test]
    fn an_edit_is_of_the_cell() {
        let code = "let a = 1;\nlet b = lenght(a);";
        let span = span("let b = lenght(a);", "lenght", "length");
        let Suggestion::Type {
            edit: Some(edit), ..
        } = of_span(&span, &rewrite(code, 1, false), code)
        else {
            panic!("an edit is expected");
        };
        assert_eq!(edit.place, Place::span(19, 25));
    }
}
