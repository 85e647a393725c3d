//! Shows diagnostics, and makes the error of a cell. Our diagnostics are displayed as cards; rustc's are only part of the
//! error.

use std::sync::PoisonError;

use stratoscope_diagnostics::check::CellContext;
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_diagnostics::{Diagnostic, Severity, check};
use stratoscope_render::text;
use stratoscope_wire::MimeBundle;

use super::panics;
use super::relay::{Current, Ending};
use stratoscope_session::CellError;

/// The name of the error of a cell that a `?` has ended.
pub const FAILED: &str = "Error";
/// The name of the error of a cell that could not be loaded.
const NOT_LOADED: &str = "NotLoaded";

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
    check::resolve_at(&current.cell, &mut diagnostic, line);
    check::name_strategies(&current.cell, &mut diagnostic);
    check::name_what_is_meant(&current.cell, &mut diagnostic);
    let diagnostic = check::Trial::new(&current.cell, &CellContext::default()).passed(diagnostic);
    let name = cell_name(current.number);
    let source = Source {
        text: current.code(),
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
    if diagnostic.severity == Severity::Error {
        let cards = current.cards.lock();
        let mut cards = cards.unwrap_or_else(PoisonError::into_inner);
        cards.push(data.clone());
    }
    current
        .outputs
        .display(data, MimeBundle::new(), None, false);
    diagnostic
}

/// Displays a sentence.
pub fn sentence(text: &str, current: &Current) {
    let data = MimeBundle::from_iter([("text/plain".to_owned(), text.into())]);
    (current.outputs).display(data, MimeBundle::new(), None, false);
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
            error_of(&all, current.code(), number)
        }
        Ending::Failed { message, line, .. } => {
            plain_error(FAILED, &message, line, None, number, current.code())
        }
        Ending::Panicked {
            message,
            line,
            location,
        } => {
            let place = location.filter(|place| !place.starts_with("src/lib.rs"));
            let message = panics::explained(&message);
            plain_error("panic", &message, line, place, number, current.code())
        }
        Ending::NotLoaded { reason } => {
            let message = format!("{}; nothing of the cell has run", not_loaded(&reason));
            plain_error(NOT_LOADED, &message, None, None, number, current.code())
        }
    };
    if !fate.is_empty() {
        error.traceback.extend(text::wrap(fate, COLUMNS));
    }
    error
}

/// Why the library of a cell could not be loaded, and what to do where that is known.
fn not_loaded(reason: &str) -> String {
    if reason.contains("Too many open files") {
        return "the cell could not be loaded, because all file descriptors of the process are in use: drop files and \
                sockets that are not needed"
            .to_owned();
    }
    format!("the cell could not be loaded: {reason}")
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
            "\u{1b}[34m{:>4} |\u{1b}[0m {}",
            line.unwrap_or(0),
            without_controls(text)
        ));
    }
    let mut lines = message.lines().map(without_controls);
    let first = lines.next().unwrap_or_else(|| "no message".to_owned());
    traceback.push(format!("\u{1b}[1;31m{ename}\u{1b}[0m: {first}"));
    traceback.extend(lines);
    if let Some(place) = place {
        traceback.push(format!("at {place}"));
    }
    CellError {
        ename: ename.to_owned(),
        evalue: first,
        traceback,
    }
}

/// A line of the user's for a terminal: what would move its cursor or change its colors is written out, as `\u{1b}`.
fn without_controls(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\t' => shown.push(character),
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
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
    fn a_message_cannot_control_the_terminal() {
        let message = "red \u{1b}[31m\u{7}\r\nsecond\tline \u{9b}";
        let error = plain_error("panic", message, Some(1), None, 3, "f(\"\u{1b}c\");");
        assert_eq!(error.evalue, "red \\u{1b}[31m\\u{7}");
        let text = error.traceback.join("\n");
        assert!(text.ends_with("second\tline \\u{9b}"), "{text}");
        // The colors of our own.
        assert_eq!(text.matches('\u{1b}').count(), 4, "{text}");
    }
}
