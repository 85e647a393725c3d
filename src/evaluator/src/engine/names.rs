//! Completion and documentation: rust-analyzer's answers, and ours about the DSL.

use stratoscope_cell_text::cursor;
use stratoscope_cell_text::header::Header;
use stratoscope_wire::MimeBundle;

use super::Engine;
use crate::assist;
use crate::assist::question::{Asked, Question};
use crate::silenced::silenced;
use stratoscope_session::{Completion, Completions};

impl Engine {
    /// As [`stratoscope_session::Evaluate::complete`].
    pub(super) fn completions(&mut self, code: &str, cursor: usize) -> Completions {
        if let Some(found) = self.assistant.complete_call(code, cursor) {
            return found;
        }
        let text = without_magic(code);
        let cursor = assist::border(&text, cursor);
        let question = Question::at(&text, cursor);
        let found = self.answer(&text, &question);
        if found.as_ref().is_some_and(|found| !found.items.is_empty()) {
            return found.unwrap_or_default();
        }
        // Where the parser and rust-analyzer disagree on what stands there, as in the operands of a macro.
        let again = match question.asked {
            Asked::Member | Asked::Path => None,
            Asked::Value => Some(Question::in_place(&text, cursor)),
            Asked::Other => Some(Question::about_value(&text, cursor)),
        };
        let again = again.filter(|_| found.is_none() || is_in_macro(&text, cursor));
        let found = again.and_then(|it| self.answer(&text, &it)).or(found);
        found.unwrap_or_else(|| self.assistant.any_name(code, cursor))
    }

    /// What rust-analyzer answers; `None`: it has failed.
    fn answer(&mut self, code: &str, question: &Question) -> Option<Completions> {
        let ask = || self.context.completions(&question.text, question.cursor);
        let found = silenced(ask)?.ok()?;
        let items = found.completions.into_iter().map(|item| Completion {
            text: without_operands(item.code),
            kind: item.kind.to_owned(),
            detail: item.label,
        });
        let items = items.filter(|item| !self.masked.contains(&item.text));
        Some(self.assistant.refine(code, question, items.collect()))
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
            let (plain, html) = silenced(|| self.context.hover_at(text, end))?.ok()?;
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

/// Whether the cursor is in the operands of a macro.
fn is_in_macro(text: &str, cursor: usize) -> bool {
    let place = cursor::find(text, cursor);
    let mut open = place.open.iter();
    open.any(|bracket| bracket.called.ends_with('!'))
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

#[cfg(test)]
impl Engine {
    /// What rust-analyzer answers at the end of the text as it is typed; `None`: it has failed.
    pub fn complete_as_typed(&mut self, code: &str) -> Option<Completions> {
        self.answer(code, &Question::in_place(code, code.len()))
    }
}
