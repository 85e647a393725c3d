//! rustc's errors about a cell, as diagnostics with places in the cell as typed.

use std::fmt::Write as _;

use evcxr::CompilationError;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Edit, Fix, Label, Place, Severity};

use super::advice;
use super::suggestion::{self, Suggestion, is_generated};
use stratoscope_cell_text::rewrite::Rewritten;

/// rustc's errors about a cell of this text.
pub fn errors(errors: &[CompilationError], rewritten: &Rewritten, code: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for error in errors
        .iter()
        .filter(|error| matches!(error.level(), "error" | ""))
    {
        let diagnostic = of_error(error, rewritten, code);
        // One mistake in a macro's argument is reported once for each use the macro makes of it.
        if !found.contains(&diagnostic) {
            found.push(diagnostic);
        }
    }
    // What follows from a type that is not known says nothing more.
    if found.iter().any(|it| it.message == UNKNOWN_PARSE) {
        found.retain(|it| !it.message.contains("`!`"));
    }
    found
}

/// `parse` without a type, of which rustc says that `!` has no `FromStr`.
const UNKNOWN_PARSE: &str = "the type that `parse` returns is not known";

fn of_error(error: &CompilationError, rewritten: &Rewritten, cell: &str) -> Diagnostic {
    let code = error.code().unwrap_or("CompilationError");
    let text = without_paths(&error.message());
    let (headline, rest) = headline(&text);
    let mut message = without_dot(headline);
    if let Some(plain) = in_plain_words(&message) {
        message = plain;
    }
    let is_at_the_end = message.ends_with(END_OF_CELL);
    // What never returns has every type until there is none, and then `!`.
    let is_never = message.starts_with("the trait bound `!: IntoBundle` is not satisfied");
    if is_never {
        message =
            "the type of this value is made of `!`, that of what never returns, and cannot be \
                   shown"
                .to_owned();
    }
    let mut diagnostic = Diagnostic::new(code, Severity::Error, message);
    diagnostic.labels = labels(error, rewritten);
    if diagnostic.labels.is_empty() {
        diagnostic.labels.extend(named_in(error, cell));
    }
    // What the kernel writes between two statements of the cell is no end of it.
    if is_at_the_end && let Some(next) = behind(&diagnostic, cell) {
        let message = diagnostic.message.trim_end_matches(END_OF_CELL);
        diagnostic.message = format!("{message}found `{next}`");
    }
    if error
        .spanned_messages()
        .iter()
        .any(|it| CELL_ERRORS.iter().any(|ours| it.label.contains(ours)))
    {
        // What has been put around the cell to compile it, or to check it.
        for around in ["a closure", "an async function"] {
            let around = format!("in {around} that returns `Result`");
            diagnostic.message = diagnostic.message.replace(&around, "in a cell");
        }
    }
    diagnostic.why.extend(rest.into_iter().map(str::to_owned));
    if is_never {
        diagnostic.labels.truncate(1);
        diagnostic.labels.iter_mut().for_each(|it| it.text.clear());
        return diagnostic.fix("end the line with `;`, or let what never returns end with a value");
    }
    if diagnostic
        .message
        .starts_with("the trait bound `!: FromStr` is not satisfied")
    {
        UNKNOWN_PARSE.clone_into(&mut diagnostic.message);
        diagnostic.labels.truncate(1);
        diagnostic.labels.iter_mut().for_each(|it| it.text.clear());
        return diagnostic
            .fix("name it: `parse::<i64>()` for whole numbers, `parse::<f64>()` for others");
    }
    let mixed = mixed_numbers(&diagnostic);
    diagnostic.fixes.extend(mixed);
    if let Some(fix) = missing_question_mark(&diagnostic) {
        diagnostic.fixes.push(fix);
        return diagnostic;
    }
    with_children(diagnostic, &error.json["children"], rewritten, cell)
}

/// The places that rustc marks in the cell, the first one first.
fn labels(error: &CompilationError, rewritten: &Rewritten) -> Vec<Label> {
    let mut labels = Vec::new();
    let mut spanned: Vec<_> = error.spanned_messages().iter().collect();
    spanned.sort_by_key(|message| !message.is_primary);
    for message in spanned {
        let Some(span) = message.span else { continue };
        let range = rewritten.original_range(
            (span.start_line, span.start_column),
            (span.end_line, span.end_column),
        );
        let place = Place::Span(CellSpan {
            start: range.start,
            end: range.end,
        });
        // What only repeats the message is no label.
        let text = without_paths(&message.label);
        let text = if message.label.ends_with(&error.message()) || is_generated(&text) {
            String::new()
        } else {
            text
        };
        let label = Label { place, text };
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// An error about a number of arguments without the underline of the function's name, which says nothing: that of the
/// arguments says what is wrong.
pub fn at_the_arguments(mut found: Diagnostic) -> Diagnostic {
    let is_counted = matches!(found.code.as_str(), "E0057" | "E0061");
    if is_counted && found.labels.len() > 1 && found.labels[0].text.is_empty() {
        found.labels.remove(0);
    }
    found
}

/// The place of what a message names, where rustc's own is lost: evcxr moves a cell's `use` lines.
fn named_in(error: &CompilationError, cell: &str) -> Option<Label> {
    let message = error.message();
    let mut named = message.split('`').skip(1).step_by(2);
    let (start, name) = named.find_map(|name| Some((cell.find(name)?, name)))?;
    let label = error.json["spans"][0]["label"].as_str();
    let text = label.map(without_paths).unwrap_or_default();
    Some(Label {
        place: Place::span(start, start + name.len()),
        text: if is_generated(&text) {
            String::new()
        } else {
            text
        },
    })
}

/// Numbers of two types: what to do, in place of a list of all types that do mix.
fn mixed_numbers(diagnostic: &Diagnostic) -> Option<Fix> {
    const SIGNS: [&str; 10] = [
        "cannot add",
        "cannot subtract",
        "cannot multiply",
        "cannot divide",
        "cannot calculate",
        "can't compare",
        "cannot add-assign",
        "cannot subtract-assign",
        "cannot multiply-assign",
        "cannot divide-assign",
    ];
    let message = &diagnostic.message;
    if diagnostic.code != "E0277" || !SIGNS.iter().any(|sign| message.starts_with(sign)) {
        return None;
    }
    let is_number = |kind: &str| {
        let kind = kind.trim_start_matches('&');
        matches!(kind, "{float}" | "{integer}" | "isize" | "usize")
            || (kind.starts_with(['i', 'u', 'f']) && kind[1..].parse::<u8>().is_ok())
    };
    let kinds: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let title = match kinds.as_slice() {
        [] if message.contains("integer") && message.contains("float") => {
            "write the integer as a float, as in `1.0`"
        }
        [_, ..] if kinds.iter().all(|kind| is_number(kind)) => {
            "numbers of two types do not mix: convert one of them, as in `n as f64`"
        }
        _ => return None,
    };
    Some(Fix {
        kind: stratoscope_diagnostics::FixKind::Change,
        title: title.to_owned(),
        edits: Vec::new(),
    })
}

/// A `?` behind a `Result` that is taken apart as its value: `let (train, dev) = data.split(0.2);`.
fn missing_question_mark(diagnostic: &Diagnostic) -> Option<Fix> {
    let is_pattern = (diagnostic.labels.iter())
        .any(|it| it.text.starts_with("expected `Result<") && it.text.ends_with("found `(_, _)`"));
    let is_value = |it: &&Label| it.text.starts_with("this expression has type `Result<");
    let value = diagnostic.labels.iter().find(is_value)?;
    let Place::Span(span) = value.place else {
        return None;
    };
    let is_ours = diagnostic.code == "E0308" && value.text.contains("Diagnostic");
    (is_pattern && is_ours).then(|| Fix {
        kind: stratoscope_diagnostics::FixKind::Change,
        title: "take the value out of the `Result` with `?`".to_owned(),
        edits: vec![Edit {
            place: Place::span(span.end, span.end),
            replacement: "?".to_owned(),
        }],
    })
}

/// With rustc's notes and suggestions, as far as they are about what somebody has typed.
pub fn with_children(
    mut diagnostic: Diagnostic,
    children: &serde_json::Value,
    rewritten: &Rewritten,
    cell: &str,
) -> Diagnostic {
    for child in children.as_array().into_iter().flatten() {
        let (Some(level), Some(text)) = (child["level"].as_str(), child["message"].as_str()) else {
            continue;
        };
        let mut text = without_paths(text);
        if says_nothing(&text) || advice::is_foreign(&text, cell) {
            continue;
        }
        let spans = child["spans"].as_array().map_or(&[][..], Vec::as_slice);
        let suggested = spans
            .iter()
            .map(|span| suggestion::of_span(span, rewritten, cell));
        let suggested: Vec<Suggestion> = suggested.collect();
        if suggested.contains(&Suggestion::NotOurs) {
            continue;
        }
        let mut edits = edits_of(&suggested);
        // evcxr moves a cell's `use` lines, and so the place of a new one.
        if edits.is_empty()
            && let [span] = spans
            && let Some(import) = span["suggested_replacement"].as_str()
            && text.starts_with("consider importing this")
            && import.trim().starts_with("use std::")
        {
            edits.push(Edit {
                place: Place::span(0, 0),
                replacement: format!("{}\n", import.trim()),
            });
        }
        let is_import = |it: &&Edit| it.replacement.trim_start().starts_with("use ");
        let mut imports = edits.iter().filter(is_import);
        if imports.any(|it| advice::names_foreign_crate(&it.replacement, cell)) {
            continue;
        }
        // Of a change in several places, one says little.
        if let [Suggestion::Type { shown, .. }] = suggested.as_slice()
            && !text.contains(&format!("`{shown}`"))
        {
            let _ = write!(text, ": `{shown}`");
        }
        let is_fix = level == "help" && advice::is_to_be_applied(spans, &text);
        match level {
            "help" if is_fix && !edits.is_empty() => diagnostic.fixes.push(Fix {
                kind: stratoscope_diagnostics::FixKind::Change,
                title: text,
                edits,
            }),
            "help" | "note" => diagnostic = diagnostic.why(text),
            _ => {}
        }
    }
    diagnostic
}

/// The edits of a suggestion, if all of it is about the cell.
fn edits_of(suggested: &[Suggestion]) -> Vec<Edit> {
    let edits = suggested.iter().map(|part| match part {
        Suggestion::Type { edit, .. } => edit.clone(),
        _ => None,
    });
    edits.collect::<Option<Vec<Edit>>>().unwrap_or_default()
}

/// What rustc says of the end of the text that it was given, which is not the cell's end.
fn in_plain_words(message: &str) -> Option<String> {
    let at_the_end = ["<end of input>", "keyword `fn`", "`evcxr_variable_store`"];
    let end = at_the_end.iter().find(|end| message.contains(*end))?;
    let found = ["found reserved ", "found "]
        .iter()
        .find(|found| message.contains(&format!("{found}{end}")))?;
    Some(message.replace(&format!("{found}{end}"), END_OF_CELL))
}

const END_OF_CELL: &str = "found the end of the cell";

/// The word of the cell behind the place of an error.
fn behind<'a>(diagnostic: &Diagnostic, cell: &'a str) -> Option<&'a str> {
    let Place::Span(span) = diagnostic.labels.first()?.place else {
        return None;
    };
    let rest = cell.get(span.end..)?.trim_start();
    let end = rest.find(|it: char| !(it.is_alphanumeric() || it == '_'));
    let end = end.unwrap_or(rest.len());
    (!rest.is_empty()).then(|| &rest[..end.max(rest.chars().next().map_or(0, char::len_utf8))])
}

/// What a `?` makes of an error in a cell, and in a cell that is only checked.
const CELL_ERRORS: [&str; 2] = ["CellError", "EvcxrUserCodeError"];

/// Whether a note is about what the kernel has written around the cell, points at what is not shown, or
/// is the same for everybody.
fn says_nothing(text: &str) -> bool {
    // A list of burn's types that implement an operator is of no use.
    let is_of_an_operator = text
        .starts_with("the following other types implement trait `std::ops::")
        || text.starts_with("multiple `impl`s satisfying");
    // Types of all crates, of which the first are shown.
    let is_long_list =
        text.starts_with("the following other types implement trait") && text.ends_with("others");
    // `{:.3f}`: that of Display is suggested, too.
    let is_of_a_format = text.starts_with("the only appropriate formatting traits are")
        || (text.starts_with("use the `")
            && text.ends_with("` trait")
            && !text.starts_with("use the `Display`"));
    is_generated(text)
        || is_of_an_operator
        || is_long_list
        || is_of_a_format
        || text.starts_with("the full name for the type has been written to")
        || text.starts_with("consider using `--verbose`")
        || text.starts_with("this error originates in the macro")
        || text.contains("in this macro invocation")
        || text.starts_with("required by a bound in")
        || text.ends_with("defined here")
        || text.ends_with("on by default")
}

/// rustc names the facade's modules in full, the cell's crate by a generated name, and closures by
/// their places in the generated source.
fn without_paths(text: &str) -> String {
    const CLOSURE: &str = "{closure@";
    let mut text = text
        .replace("stratoscope_diagnostics::", "stratoscope::diagnostics::")
        .replace("`ctx`", "this notebook");
    for ours in CELL_ERRORS {
        let around = format!(" compatible with `std::result::Result<(), {ours}>`");
        text = text.replace(&around, "");
    }
    while let Some(start) = text.find(CLOSURE)
        && let Some(length) = text[start..].find('}')
    {
        text.replace_range(start..=start + length, "{closure}");
    }
    while let Some(place) = place_in_source(&text) {
        text.replace_range(place, "this notebook");
    }
    text
}

/// A place in the text that rustc was given, with its path: `/tmp/…/src/lib.rs:108:51`.
fn place_in_source(text: &str) -> Option<std::ops::Range<usize>> {
    const SOURCE: &str = "src/lib.rs";
    let at = text.find(SOURCE)?;
    let is_path = |it: char| it.is_alphanumeric() || "/._-~".contains(it);
    let before = text[..at].trim_end_matches(is_path).len();
    let rest = &text[at + SOURCE.len()..];
    let is_number = |it: char| it.is_ascii_digit() || it == ':';
    let numbers = rest.len() - rest.trim_start_matches(is_number).len();
    // A range in a closure's name: `108:51: 108:58`.
    let rest = &rest[numbers..];
    let second = rest
        .strip_prefix(' ')
        .map_or(0, |it| it.len() - it.trim_start_matches(is_number).len());
    let more = if second > 0 { 1 + second } else { 0 };
    Some(before..at + SOURCE.len() + numbers + more)
}

/// What a message of several lines, such as cargo's, is about, and the rest of it in words: a notebook's
/// error is one line.
fn headline(message: &str) -> (&str, Vec<&str>) {
    let lines = || {
        message
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    if lines().nth(1).is_none() {
        return (message, Vec::new());
    }
    let error = lines().find_map(|line| line.strip_prefix("error: "));
    let first = error.or_else(|| lines().next()).unwrap_or(message);
    // A picture of a manifest that the cell's author has not written, and what cargo was doing.
    let is_said = |line: &&str| {
        !line.contains('|')
            && !line.starts_with("-->")
            && !line.starts_with("Updating ")
            && !line.ends_with(first)
    };
    (first, lines().filter(is_said).collect())
}

fn without_dot(text: &str) -> String {
    text.trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_has_one_that_says_it() {
        let cargo = "    Updating crates.io index\nerror: no matching package named `x` found\nlocation \
                     searched: crates.io index";
        let expected = (
            "no matching package named `x` found",
            vec!["location searched: crates.io index"],
        );
        assert_eq!(headline(cargo), expected);
        let manifest = "error: string values must be quoted\n --> Cargo.toml:11:14\n   |\n11 | x =\n   |     ^";
        assert_eq!(headline(manifest).0, "string values must be quoted");
        assert!(headline(manifest).1.is_empty());
        assert_eq!(
            headline("mismatched types"),
            ("mismatched types", Vec::new())
        );
    }

    #[test]
    fn nothing_generated_is_named() {
        for (text, expected) in [
            (
                "expected expression, found keyword `fn`",
                Some("expected expression, found the end of the cell"),
            ),
            (
                "expected `;`, found <end of input>",
                Some("expected `;`, found the end of the cell"),
            ),
            ("expected `;`, found keyword `let`", None),
        ] {
            assert_eq!(in_plain_words(text).as_deref(), expected, "{text}");
        }
        assert_eq!(
            without_paths("at /tmp/a-1/cells/src/lib.rs:12:5, not src/main.rs"),
            "at this notebook, not src/main.rs"
        );
        assert!(says_nothing("required by `evcxr_variable_store`"));
    }

    #[test]
    fn closures_are_not_named_by_a_text_nobody_has_seen() {
        assert_eq!(
            without_paths("within `{closure@src/lib.rs:108:51: 108:58}`, not `{closure@x}`"),
            "within `{closure}`, not `{closure}`"
        );
    }
}
