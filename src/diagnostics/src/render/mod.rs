//! One diagnostic, four forms: a card for the notebook ([`html`]), text with carets ([`plain`]), the same
//! in color ([`ansi`], [`traceback`]) and data ([`json`]).
//!
//! All forms show the same facts in the same order: code and severity, the message, the cell's own
//! lines with the places marked, the reasons, the evidence, the fixes, the table of arguments, TensorFlow's
//! behavior, a figure. Named places are looked up in the text first, see [`crate::check::resolve`].

mod fix;
mod html;
mod json;
mod place;
mod text;

pub use fix::apply;
pub use html::html;
pub use json::{MIME, json};
pub use text::{ansi, plain, traceback};

use crate::{Diagnostic, Severity, check};

/// The cell that a diagnostic is about.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its text, as its author typed it.
    pub text: &'a str,
    /// Its name: `Cell In[3]`.
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
