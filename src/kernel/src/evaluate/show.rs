//! What a notebook shows of findings, of rustc's errors and of cells that ended early. All become
//! diagnostics; a card is displayed for ours, rustc's are only the error.

use std::fmt::Write as _;

use evcxr::CompilationError;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_diagnostics::{CellSpan, Diagnostic, Label, Place, Severity, check, words};
use stratoscope_wire::MimeBundle;

use super::relay::{Current, Ending};
use crate::evaluator::CellError;
use crate::rewrite::Rewritten;

/// Columns of a traceback's own lines, as of the diagnostics in it.
const COLUMNS: usize = 100;

/// How Jupyter's front ends name a cell, so that they can link to it.
pub fn cell_name(number: u64) -> String {
    format!("Cell In[{number}]")
}

/// Displays a diagnostic as a card, with its named places found in the cell's text. `line` is that
/// of the statement it was raised in. Returns it with its places found.
pub fn diagnostic(
    mut diagnostic: Diagnostic,
    line: Option<usize>,
    current: &Current,
) -> Diagnostic {
    diagnostic = diagnostic.in_profile(current.profile);
    check::resolve_at(&current.code, &mut diagnostic, line);
    if let Some(strategy) = &current.strategy {
        check::name_strategy(&mut diagnostic, strategy);
    }
    let name = cell_name(current.number);
    let source = Source {
        text: &current.code,
        name: &name,
    };
    let mut data = MimeBundle::new();
    data.insert(
        "text/html".to_owned(),
        render::html(&diagnostic, &source).into(),
    );
    data.insert(
        "text/plain".to_owned(),
        render::plain(&diagnostic, &source).into(),
    );
    data.insert(render::MIME.to_owned(), render::json(&diagnostic, &source));
    current
        .outputs
        .display(data, MimeBundle::new(), None, false);
    diagnostic
}

/// The error of a cell whose diagnostics were displayed already: the first one names it.
pub fn error_of(diagnostics: &[Diagnostic], code: &str, number: u64) -> CellError {
    let name = cell_name(number);
    let source = Source {
        text: code,
        name: &name,
    };
    let first = diagnostics.first();
    CellError {
        ename: first.map_or_else(|| "Error".to_owned(), |it| it.code.clone()),
        evalue: first.map(Diagnostic::one_line).unwrap_or_default(),
        traceback: render::traceback(diagnostics, &source),
    }
}

/// rustc's errors as diagnostics in the cell's own coordinates.
pub fn compiler_errors(errors: &[CompilationError], rewritten: &Rewritten) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for error in errors
        .iter()
        .filter(|error| matches!(error.level(), "error" | ""))
    {
        let diagnostic = compiler_error(error, rewritten);
        // One mistake in a macro's argument is reported once for each use the macro makes of it.
        if !found.contains(&diagnostic) {
            found.push(diagnostic);
        }
    }
    found
}

fn compiler_error(error: &CompilationError, rewritten: &Rewritten) -> Diagnostic {
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
        if text.contains("evcxr") || text.contains("stratoscope::__result") {
            continue;
        }
        if level == "help" {
            if let Some(replacement) = child["spans"][0]["suggested_replacement"].as_str() {
                let replacement = replacement.trim();
                if !replacement.is_empty() && !replacement.contains("stratoscope::cell") {
                    let _ = write!(text, ": `{replacement}`");
                }
            }
            diagnostic = diagnostic.fix(text);
        } else if level == "note" {
            diagnostic = diagnostic.why(text);
        }
    }
    diagnostic
}

/// rustc names the facade's modules in full and the cell's crate by a name nobody knows.
fn without_paths(text: &str) -> String {
    text.replace("stratoscope_diagnostics::", "stratoscope::diagnostics::")
        .replace("`ctx`", "this notebook")
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

/// The error of a cell that ended early. `fate` says which variables were kept.
pub fn ended(ending: Ending, fate: &str, current: &Current) -> CellError {
    let number = current.number;
    let mut error = match ending {
        Ending::Failed {
            diagnostic: Some(found),
            line,
            ..
        } => {
            let mut found = *found;
            let related = std::mem::take(&mut found.related);
            let all = std::iter::once(found).chain(related);
            let all: Vec<Diagnostic> = all.map(|found| diagnostic(found, line, current)).collect();
            error_of(&all, &current.code, number)
        }
        Ending::Failed { message, line, .. } => {
            plain_error("Error", &message, line, None, number, &current.code)
        }
        Ending::Panicked {
            message,
            line,
            location,
        } => {
            let place = location.filter(|place| !place.starts_with("src/lib.rs"));
            plain_error("panic", &message, line, place, number, &current.code)
        }
    };
    if !fate.is_empty() {
        error.traceback.extend(words::wrap(fate, COLUMNS));
    }
    error
}

/// An error that is a text: a panic, a `?` with an error of somebody else's type, or a process that
/// has ended.
pub fn plain_error(
    ename: &str,
    message: &str,
    line: Option<usize>,
    place: Option<String>,
    number: u64,
    code: &str,
) -> CellError {
    let name = cell_name(number);
    let head = match line {
        Some(line) => format!("{name}, line {line}"),
        None => name,
    };
    let mut traceback = vec![head];
    if let Some(text) = line.and_then(|line| code.lines().nth(line - 1)) {
        traceback.push(format!(
            "\u{1b}[34m{:>4} |\u{1b}[0m {text}",
            line.unwrap_or(0)
        ));
    }
    let mut lines = message.lines();
    let first = lines.next().unwrap_or("no message");
    traceback.push(format!("\u{1b}[1;31m{ename}\u{1b}[0m: {first}"));
    traceback.extend(lines.map(str::to_owned));
    if let Some(place) = place {
        traceback.push(format!("at {place}"));
    }
    CellError {
        ename: ename.to_owned(),
        evalue: first.to_owned(),
        traceback,
    }
}

/// Lists names in words.
pub fn names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
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
}
