//! One diagnostic, four forms: a card for the notebook ([`html`]), text with carets ([`plain`]), the same
//! in colour ([`ansi`], [`traceback`]) and data ([`json`]).
//!
//! The forms say the same things in the same order: code and severity, the message, the cell's own
//! lines with the places marked, why, what was seen, ways out, the table of arguments, TensorFlow's
//! answer, a drawing. Named places are looked up in the text first, see [`crate::check::resolve`].

mod html;
mod json;
mod mend;
mod place;
mod text;

pub use html::html;
pub use json::{MIME, json};
pub use mend::apply;
pub use text::{ansi, plain, traceback};

use crate::{Diagnostic, Severity, check};

/// The cell that a diagnostic is about.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its text, as its author typed it.
    pub text: &'a str,
    /// How it is called: `Cell In[3]`.
    pub name: &'a str,
}

/// The severity as the word a reader sees.
fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// What TensorFlow does in general, unless the chosen version's answer says the same.
fn general(diagnostic: &Diagnostic) -> Option<&str> {
    let said = diagnostic.answer().map(|answer| answer.does.as_str());
    diagnostic
        .tensorflow
        .as_deref()
        .filter(|text| said != Some(text))
}

/// The diagnostic with all its places as spans of the text.
fn resolved(diagnostic: &Diagnostic, source: &Source<'_>) -> Diagnostic {
    let mut diagnostic = diagnostic.clone();
    check::resolve(source.text, &mut diagnostic);
    diagnostic
}
