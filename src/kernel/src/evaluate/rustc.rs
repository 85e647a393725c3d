//! What rustc says of a cell, as diagnostics in the cell's own coordinates.

use std::fmt::Write as _;

use evcxr::CompilationError;
use stratoscope_diagnostics::{CellSpan, Diagnostic, Label, Place, Severity};

use crate::rewrite::Rewritten;

/// rustc's errors.
pub fn errors(told: &[CompilationError], rewritten: &Rewritten) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for error in told
        .iter()
        .filter(|error| matches!(error.level(), "error" | ""))
    {
        let diagnostic = of_error(error, rewritten);
        // One mistake in a macro's argument is reported once for each use the macro makes of it.
        if !found.contains(&diagnostic) {
            found.push(diagnostic);
        }
    }
    found
}

fn of_error(error: &CompilationError, rewritten: &Rewritten) -> Diagnostic {
    let code = error.code().unwrap_or("CompilationError");
    let told = without_paths(&error.message());
    let (headline, rest) = headline(&told);
    let mut message = without_dot(headline);
    // What never returns has every type until there is none, and then `!`.
    let is_never = message.starts_with("the trait bound `!: IntoBundle` is not satisfied");
    if is_never {
        message =
            "the type of this value is made of `!`, that of what never returns, and cannot be \
                   shown"
                .to_owned();
    }
    let mut diagnostic = Diagnostic::new(code, Severity::Error, message);
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
        let repeats = message.label.ends_with(&error.message());
        let text = if repeats {
            String::new()
        } else {
            without_paths(&message.label)
        };
        let label = Label { place, text };
        if !diagnostic.labels.contains(&label) {
            diagnostic.labels.push(label);
        }
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
    with_children(diagnostic, &error.json["children"])
}

/// With rustc's notes and suggestions.
pub fn with_children(mut diagnostic: Diagnostic, children: &serde_json::Value) -> Diagnostic {
    for child in children.as_array().into_iter().flatten() {
        let (Some(level), Some(text)) = (child["level"].as_str(), child["message"].as_str()) else {
            continue;
        };
        let mut text = without_paths(text);
        if says_nothing(&text) {
            continue;
        }
        // Of a change in several places, one says little.
        let spans = child["spans"].as_array().map_or(&[][..], Vec::as_slice);
        if let [span] = spans
            && let Some(instead) = suggestion(span)
            && !text.contains(&format!("`{instead}`"))
        {
            let _ = write!(text, ": `{instead}`");
        }
        diagnostic = match level {
            "help" if !is_a_fact(&text) => diagnostic.fix(text),
            "help" | "note" => diagnostic.why(text),
            _ => diagnostic,
        };
    }
    diagnostic
}

/// What a `?` makes of an error in a cell, and in a cell that is only checked.
const CELL_ERRORS: [&str; 2] = ["CellError", "EvcxrUserCodeError"];

/// Whether a note is about what the kernel has written around the cell, points at what is not shown, or
/// is the same for everybody.
fn says_nothing(text: &str) -> bool {
    text.contains("evcxr")
        || CELL_ERRORS.iter().any(|ours| text.contains(ours))
        || text.contains("stratoscope::__result")
        || text.starts_with("required by a bound in")
        || text.ends_with("defined here")
        || text.ends_with("on by default")
}

/// rustc's help is not always one: what types implement is no advice.
fn is_a_fact(text: &str) -> bool {
    [
        "the trait `",
        "the following other types",
        "within `",
        "for that trait implementation",
    ]
    .iter()
    .any(|begin| text.starts_with(begin))
}

/// What to type, of a span with a suggestion: the replacement, or the whole line with it where it is
/// only put in, or nothing but signs, and the line is not long.
fn suggestion(span: &serde_json::Value) -> Option<String> {
    const LONG: usize = 80;
    let replacement = span["suggested_replacement"].as_str()?;
    let trimmed = replacement.trim();
    if trimmed.is_empty() || replacement.contains("stratoscope::cell") {
        return None;
    }
    let line = || {
        let [line] = span["text"].as_array()?.as_slice() else {
            return None;
        };
        let characters: Vec<char> = line["text"].as_str()?.chars().collect();
        let column = |name: &str| usize::try_from(line[name].as_u64()?.checked_sub(1)?).ok();
        let (start, end) = (column("highlight_start")?, column("highlight_end")?);
        let is_sign = |character: char| !character.is_alphanumeric();
        if start < end && !trimmed.chars().all(is_sign) {
            return None;
        }
        let before: String = characters.get(..start)?.iter().collect();
        let after: String = characters.get(end..)?.iter().collect();
        let whole = format!("{before}{replacement}{after}");
        let whole = as_typed(whole.trim());
        (whole.len() <= LONG).then(|| whole.to_owned())
    };
    Some(line().unwrap_or_else(|| trimmed.to_owned()))
}

/// A line without what the kernel puts around a last expression.
fn as_typed(line: &str) -> &str {
    line.strip_prefix("::stratoscope::__result!(")
        .and_then(|it| it.strip_suffix(");"))
        .unwrap_or(line)
}

/// rustc names the facade's modules in full, the cell's crate by a name nobody knows, and closures by
/// where they stand in a text that nobody has seen.
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
    text
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
    fn what_is_put_in_is_shown_in_its_line() {
        let span = |line: &str, start: u64, end: u64, replacement: &str| {
            serde_json::json!({
                "suggested_replacement": replacement,
                "text": [{ "text": line, "highlight_start": start, "highlight_end": end }],
            })
        };
        let long = format!("let x = 5 // {}", "x".repeat(80));
        for (span, expected) in [
            (span("    let x = 5", 14, 14, ";"), Some("let x = 5;")),
            (span("let x = 5;", 5, 5, "mut "), Some("let mut x = 5;")),
            (span("if x = 1 {", 6, 7, "=="), Some("if x == 1 {")),
            (
                span("::stratoscope::__result!(f(x));", 28, 28, "&"),
                Some("f(&x)"),
            ),
            (span("let ü = lenght(x);", 9, 15, "length"), Some("length")),
            (span(&long, 10, 10, ";"), Some(";")),
            (span("f(x)", 9, 9, "&"), Some("&")),
            (span("f(x)", 3, 4, ""), None),
        ] {
            assert_eq!(suggestion(&span).as_deref(), expected, "{span}");
        }
    }

    #[test]
    fn closures_are_not_named_by_a_text_nobody_has_seen() {
        assert_eq!(
            without_paths("within `{closure@src/lib.rs:108:51: 108:58}`, not `{closure@x}`"),
            "within `{closure}`, not `{closure}`"
        );
    }
}
