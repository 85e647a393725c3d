//! What the terminal shows of a cell that failed: its cards as text and its traceback, as `jupyter console` shows them.

use std::io::{IsTerminal, Write};

use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::render::{self, MIME, Source};
use stratoscope_session::CellError;
use stratoscope_wire::MimeBundle;

/// Writes the cards among the displays of a cell, and its error, to standard error. `code` is the text of the cell.
pub fn show(displays: &[MimeBundle], error: &CellError, code: &str) {
    let shown = text(displays, error, code, has_colors());
    // Without anybody who reads it, the run goes on.
    let _ = writeln!(std::io::stderr(), "\n{shown}\n");
}

/// Whether standard error shows colors: it is a terminal, and `NO_COLOR` (<https://no-color.org>) does not forbid them.
fn has_colors() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = set("TERM").is_some_and(|it| it == "dumb");
    std::io::stderr().is_terminal() && set("NO_COLOR").is_none() && !is_dumb
}

/// The cards, then the error.
fn text(displays: &[MimeBundle], error: &CellError, code: &str, has_colors: bool) -> String {
    let mut text = String::new();
    for card in displays.iter().filter_map(|it| card(it, code, has_colors)) {
        text += card.trim_end();
        text += "\n\n";
    }
    let traceback = error.traceback.join("\n");
    text += &match has_colors {
        true => traceback,
        false => without_colors(&traceback),
    };
    text
}

/// The card of a display; `None`: it is something else.
fn card(display: &MimeBundle, code: &str, has_colors: bool) -> Option<String> {
    let data = display.get(MIME)?;
    if has_colors && let Ok(diagnostic) = serde_json::from_value::<Diagnostic>(data.clone()) {
        let name = data["cell"].as_str().unwrap_or_default();
        return Some(render::ansi(&diagnostic, &Source { text: code, name }));
    }
    display.get("text/plain")?.as_str().map(str::to_owned)
}

/// The text without the escape sequences of a terminal.
fn without_colors(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if characters.next_if_eq(&'[').is_some() {
            // A sequence ends with its first character of these.
            let _ = characters.find(|c| ('@'..='~').contains(c));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stratoscope_diagnostics::{Place, Severity};

    use super::*;

    const CODE: &str = "let a = 1;\nfit!(a);";

    fn error() -> CellError {
        CellError {
            ename: "SC0101".to_owned(),
            evalue: "no such thing".to_owned(),
            traceback: vec![
                "Cell In[1], line 2: \u{1b}[1;31mSC0101\u{1b}[0m".to_owned(),
                "kept: `a`".to_owned(),
            ],
        }
    }

    fn displays() -> Vec<MimeBundle> {
        let found = Diagnostic::new("SC0101", Severity::Error, "no such thing")
            .label(Place::span(11, 14), "here");
        let source = Source {
            text: CODE,
            name: "Cell In[1]",
        };
        let other = MimeBundle::from_iter([("text/plain".to_owned(), json!("a chart"))]);
        let card = MimeBundle::from_iter([
            (
                "text/plain".to_owned(),
                json!(render::plain(&found, &source)),
            ),
            (MIME.to_owned(), render::json(&found, &source)),
        ]);
        vec![other, card]
    }

    #[test]
    fn the_card_is_shown_and_then_the_traceback() {
        let shown = text(&displays(), &error(), CODE, false);
        assert!(
            shown.starts_with("error[SC0101]: no such thing\n"),
            "{shown}"
        );
        assert!(shown.contains("2 | fit!(a);\n  | ^^^ here"), "{shown}");
        assert!(
            shown.ends_with("\n\nCell In[1], line 2: SC0101\nkept: `a`"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}') && !shown.contains("a chart"));
    }

    #[test]
    fn colors_change_nothing_else() {
        let plain = text(&displays(), &error(), CODE, false);
        let colored = text(&displays(), &error(), CODE, true);
        assert!(colored.contains("\u{1b}[1;31m^^^"), "{colored}");
        assert_eq!(without_colors(&colored), plain);
    }

    #[test]
    fn an_error_without_a_card_has_its_traceback() {
        let shown = text(&[], &error(), CODE, false);
        assert_eq!(shown, "Cell In[1], line 2: SC0101\nkept: `a`");
    }

    #[test]
    fn a_sequence_that_does_not_end_takes_nothing_else() {
        for (colored, plain) in [
            ("a\u{1b}[0mb", "ab"),
            ("a\u{1b}[", "a"),
            ("a\u{1b}", "a"),
            ("a\u{1b}b", "ab"),
        ] {
            assert_eq!(without_colors(colored), plain, "{colored:?}");
        }
    }
}
