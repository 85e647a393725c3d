//! Completion and documentation: rust-analyzer's answers, and ours about the DSL.

use std::collections::BTreeSet;

use stratoscope_cell_text::header::Header;
use stratoscope_wire::MimeBundle;

use super::Engine;
use crate::assist;
use stratoscope_session::{Completion, Completions};

impl Engine {
    /// As [`stratoscope_session::Evaluate::complete`].
    pub(super) fn completions(&mut self, code: &str, cursor: usize) -> Completions {
        if let Some(found) = self.assistant.complete_call(code, cursor) {
            return found;
        }
        let text = without_magic(code);
        let found = self.context.completions(&text, cursor.min(text.len()));
        match found {
            Ok(found) => {
                let mut seen = BTreeSet::new();
                let items = found.completions.into_iter().map(|item| Completion {
                    text: without_operands(item.code),
                    kind: item.kind.to_owned(),
                    detail: item.label,
                });
                // A method of several traits comes once for each.
                let is_new = |item: &Completion| seen.insert(item.text.clone());
                let mut items: Vec<Completion> = items
                    .filter(|item| !item.text.starts_with("__"))
                    .filter(|item| !self.masked.contains(&item.text))
                    .filter(is_new)
                    .collect();
                self.assistant.rank(code, cursor, &mut items);
                Completions {
                    start: found.start_offset,
                    end: found.end_offset,
                    items,
                }
            }
            Err(_) => Completions {
                start: cursor,
                end: cursor,
                items: Vec::new(),
            },
        }
    }

    /// As [`stratoscope_session::Evaluate::inspect`].
    pub(super) fn documentation(
        &mut self,
        code: &str,
        cursor: usize,
        detail_level: u8,
    ) -> Option<MimeBundle> {
        const NOTHING: &str = "No documentation found";
        let ours = self
            .assistant
            .explain_call(code, cursor, detail_level)
            .or_else(|| self.assistant.explain_variable(code, cursor));
        if ours.is_some() {
            return ours;
        }
        let text = without_magic(code);
        let end = end_of_name(&text, cursor.min(text.len()));
        let mut hover = |text: &str, end: usize| {
            let (plain, html) = self.context.hover_at(text, end).ok()?;
            let says = plain.trim() != NOTHING && !plain.trim().is_empty();
            says.then_some((plain, html))
        };
        // In the arguments of a macro rust-analyzer sees no names; the name alone it knows.
        let alone = assist::name_alone(code, cursor);
        let (plain, html) =
            hover(&text, end).or_else(|| alone.and_then(|name| hover(name, name.len())))?;
        let mut bundle = MimeBundle::new();
        bundle.insert("text/plain".to_owned(), plain.into());
        bundle.insert("text/html".to_owned(), html.into());
        Some(bundle)
    }
}

/// The cell with its magics blanked, byte for byte, so that positions stay.
fn without_magic(code: &str) -> String {
    Header::of(code).without_magics(code)
}

/// A function's name without its operands, which would be inserted with it: `read(path)` → `read`.
fn without_operands(mut text: String) -> String {
    if let Some(end) = text.find('(') {
        text.truncate(end);
    }
    text
}

/// The end of the name that byte `cursor` is in or behind.
fn end_of_name(text: &str, cursor: usize) -> usize {
    let cursor = (cursor..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len());
    let rest = &text[cursor..];
    let length = rest
        .find(|character: char| !character.is_alphanumeric() && character != '_')
        .unwrap_or(rest.len());
    cursor + length
}
