//! Callbacks that have no line of their own: they stand in a `fit!`. Where no `fit` of the cell takes them, they are named.

use stratoscope_diagnostics::CellSpan;

use super::Translator;
use super::assign::ARGUMENTS_OF_FIT;
use super::thing::{CallbackKind, Thing};
use crate::Left;
use crate::model::{Kind, Value};

/// Callbacks that no `fit` has taken so far.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    span: CellSpan,
    /// Them as arguments of `fit!`.
    arguments: Vec<String>,
}

impl Translator<'_> {
    /// Remembers callbacks until a `fit` takes them.
    pub(crate) fn wait_for_fit(&mut self, name: &str, kinds: &[CallbackKind], span: CellSpan) {
        let (mut elements, mut arguments) = (Vec::new(), Vec::new());
        for kind in kinds {
            match kind {
                CallbackKind::Element(rust) => elements.push(rust.clone()),
                CallbackKind::Arguments(more) => arguments.extend(more.iter().cloned()),
            }
        }
        if !elements.is_empty() {
            arguments.insert(0, format!("callbacks = [{}]", elements.join(", ")));
        }
        if arguments.is_empty() {
            return;
        }
        let waiting = Waiting { span, arguments };
        self.callbacks_taken.retain(|taken| taken != name);
        self.callbacks_waiting.insert(name.to_owned(), waiting);
    }

    /// A model that was begun by `Sequential()` and that no statement of the cell uses is there for the next cell.
    pub(crate) fn begun_models(&mut self) {
        for (name, span) in std::mem::take(&mut self.begun) {
            let object = Value {
                span,
                kind: Kind::Name(name.clone()),
            };
            let has_layers = matches!(self.things.get(&name), Some(Thing::Layers(layers, _)) if !layers.is_empty());
            if has_layers && let Err(why) = self.materialize(&object, "") {
                self.leave(span, why);
            }
        }
    }

    /// Names the callbacks that no translated `fit` takes.
    pub(crate) fn unused_callbacks(&mut self) {
        for (name, waiting) in std::mem::take(&mut self.callbacks_waiting) {
            if self.callbacks_taken.contains(&name) {
                continue;
            }
            let why = format!(
                "no `fit` that takes it is translated; in one it is `{}`",
                waiting.arguments.join(", ")
            );
            self.leave_behind(waiting.span, why);
        }
    }

    /// Leaves out a statement that stands further up, whose line is a comment or is not there.
    pub(crate) fn leave_behind(&mut self, span: CellSpan, why: String) {
        let (first, last) = self.lines(span);
        let source = self.source(span);
        let python = source.lines().next().unwrap_or_default().trim().to_owned();
        let found = &mut self.translation;
        let is_its =
            |it: &&mut crate::Line| it.python == Some((first, last)) && it.text == ARGUMENTS_OF_FIT;
        let shown = stratoscope_render::text::excerpt(&python, 60);
        let place = match first == last {
            true => format!("line {first}"),
            false => format!("lines {first} to {last}"),
        };
        let text = format!("// Not translated, {place}, `{shown}`: {why}.");
        match found.lines.iter_mut().find(is_its) {
            Some(line) => line.text = text,
            None => {
                let is_behind = |it: &crate::Line| it.python.is_some_and(|(line, _)| line > first);
                let at = found.lines.iter().position(is_behind);
                let line = crate::Line {
                    depth: 0,
                    text,
                    python: Some((first, last)),
                    is_comment: true,
                };
                found.lines.insert(at.unwrap_or(found.lines.len()), line);
            }
        }
        // Of what is left out, nothing else is to be read.
        found.idle.retain(|it| !(first..=last).contains(&it.line));
        found.notes.retain(|it| !(first..=last).contains(&it.line));
        let at = found.left.partition_point(|it| it.lines.0 < first);
        let left = Left {
            lines: (first, last),
            python,
            why,
        };
        found.left.insert(at, left);
    }
}
