//! Slips in Rust for which rustc has no fix that works in a cell: a sum without a type, a moved variable, a counter in a closure,
//! Python's formats. The error keeps rustc's code and words; the fix is ours, with edits where the text decides.

mod borrows;
mod closures;
mod formats;
mod functions;
mod items;
mod itself;
mod lifetimes;
mod loops;
mod moves;
mod number_types;
mod numbers;
mod options;
mod plain_words;
mod results;
mod semicolons;
mod signatures;
mod tree;
mod unwrapped;
mod values;

use stratoscope_cell_syntax::Syntax;

pub(super) use self::functions::{model_of, type_returned};
pub(super) use self::itself::{is_not_cloned, with_itself};
pub use self::moves::owned;
pub(super) use self::numbers::{is_borrowed, list_around};
pub(super) use self::options::filtered;
pub(super) use self::tree::{
    binary_at, outermost, pair_of_loop, place, type_of_parameter, visit_all, without_mut,
};
pub(super) use self::unwrapped::{in_a_call, is_number_of_a_list};

use super::{CellContext, fixed};
use crate::render::apply;
use crate::{CellSpan, Diagnostic, Edit, Fix, FixKind, Place};
use stratoscope_render::text;

/// What the fixes are found from.
struct Slip<'a> {
    cell: &'a Syntax,
    found: &'a Diagnostic,
    /// The place of the error's first label.
    span: CellSpan,
    context: &'a CellContext,
}

/// A fix of ours: its edits, empty for a fix in words, and its title where the edits do not show it.
#[derive(Default)]
struct Answer {
    edits: Vec<Edit>,
    title: Option<String>,
    /// Why, if rustc does not say it.
    why: Option<String>,
    /// What is said in place of rustc's message, labels and notes.
    message: Option<String>,
}

impl Answer {
    fn of(edits: Vec<Edit>) -> Self {
        Self {
            edits,
            ..Self::default()
        }
    }

    fn words(title: impl Into<String>) -> Self {
        Self::default().titled(title)
    }

    fn titled(self, title: impl Into<String>) -> Self {
        Self {
            title: Some(title.into()),
            ..self
        }
    }

    fn why(self, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..self
        }
    }

    fn instead(self, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..self
        }
    }
}

fn edit(start: usize, end: usize, replacement: impl Into<String>) -> Edit {
    Edit {
        place: Place::span(start, end),
        replacement: replacement.into(),
    }
}

fn insert(at: usize, replacement: impl Into<String>) -> Edit {
    edit(at, at, replacement)
}

/// An error of rustc's with a fix of ours in the place of its own suggestions.
pub(super) fn answer(
    cell: &Syntax,
    found: &Diagnostic,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    let slip = Slip {
        cell,
        found,
        span,
        context,
    };
    let answer = options::answer(&slip)
        .or_else(|| numbers::answer(&slip))
        .or_else(|| moves::answer(&slip))
        .or_else(|| closures::answer(&slip))
        .or_else(|| formats::answer(&slip))
        .or_else(|| functions::answer(&slip))
        .or_else(|| items::answer(&slip))
        .or_else(|| lifetimes::answer(&slip))
        .or_else(|| results::answer(&slip))
        .or_else(|| unwrapped::answer(&slip))
        .or_else(|| plain_words::answer(&slip))
        .or_else(|| values::answer(&slip))
        .or_else(|| loops::answer(&slip))
        .or_else(|| semicolons::answer(&slip))?;
    slip.diagnostic(answer)
}

impl Slip<'_> {
    fn code(&self) -> &str {
        self.found.code.as_str()
    }

    fn message(&self) -> &str {
        self.found.message.as_str()
    }

    /// The text of the cell at a place.
    fn text(&self, span: CellSpan) -> &str {
        self.cell
            .text()
            .get(span.start..span.end)
            .unwrap_or_default()
    }

    /// rustc's error with the fix; `None` if its edits fail.
    fn diagnostic(&self, answer: Answer) -> Option<Diagnostic> {
        let has_edits = !answer.edits.is_empty();
        let edits = fixed::tried(self.cell, answer.edits, self.context);
        let title = match answer.title {
            Some(title) => title,
            None => format!("write `{}`", self.changed(&edits)?),
        };
        if has_edits && edits.is_empty() {
            return None;
        }
        let mut found = self.found.clone();
        // Suggestions of rustc's that the fix replaces.
        found.why.retain(|it| {
            ![
                "consider ",
                "you must ",
                "use `",
                "use the `",
                "remove the ",
                "ensure that all ",
                "add `#[derive(",
                "in format strings you may be able to use ",
            ]
            .iter()
            .any(|words| it.starts_with(words))
        });
        if let Some(message) = answer.message {
            found.message = message;
            found.why.clear();
            found.labels.truncate(1);
            found.labels.iter_mut().for_each(|it| it.text.clear());
        }
        found.why.extend(answer.why);
        found.fixes = vec![Fix {
            kind: FixKind::Change,
            title,
            edits,
        }];
        Some(found)
    }

    /// The first line that the edits change, as it is after them.
    fn changed(&self, edits: &[Edit]) -> Option<String> {
        let fix = Fix {
            kind: FixKind::Change,
            title: String::new(),
            edits: edits.to_vec(),
        };
        let fixed = apply(self.cell.text(), &fix)?;
        let mut lines = fixed.lines().zip(self.cell.text().lines());
        let changed = lines.find(|(new, old)| new != old).map(|(new, _)| new);
        Some(text::excerpt(changed.unwrap_or_default().trim(), 100))
    }
}
