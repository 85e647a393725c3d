//! The facts and the text that SC0101, SC0114 and SC0115 share.

use stratoscope_render::text;

use crate::arguments::Argument;
use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place};

/// An argument whose name is not in the table of its call.
#[derive(Clone, Debug)]
pub struct UnknownArgument {
    /// The name as typed.
    pub given: String,
    /// The place of the name.
    pub place: Place,
    /// The text to delete to remove the argument, its comma included.
    pub drop: Place,
    /// Known names that look like it, best first.
    pub similar: Vec<String>,
    /// What the name means elsewhere, a sentence, where that is known.
    pub hint: Option<String>,
    /// The call's arguments, those passed and those left at their defaults.
    pub arguments: Vec<ArgumentRow>,
}

impl UnknownArgument {
    /// Adds label, reasons, fixes and TensorFlow's treatment. `call` is the name without `!`, `known` its table.
    pub(super) fn describe(
        &self,
        diagnostic: Diagnostic,
        call: &str,
        known: &[Argument],
    ) -> Diagnostic {
        let mut diagnostic = diagnostic.label(self.place.clone(), "unknown argument");
        diagnostic = diagnostic.why(self.hint.as_deref().unwrap_or(
            "unknown arguments are errors, so that a typo cannot leave a default in force",
        ));
        if self.similar.is_empty() && self.hint.is_none() {
            let known: Vec<&str> = known.iter().map(|argument| argument.name).collect();
            let known = text::names(&known, 20);
            diagnostic = diagnostic.why(format!("`{call}!` accepts {known}"));
        }
        for name in self.similar.iter().take(3) {
            diagnostic = diagnostic.suggest_edit(name, self.place.clone(), name.clone());
        }
        if self.similar.is_empty() {
            let title = format!("remove `{}`", self.given);
            diagnostic = diagnostic.fix_edit(title, self.drop.clone(), "");
        }
        diagnostic
            .arguments(self.arguments.clone())
            .tensorflow(Quote::argument(call, &self.given))
            .with_answers(|profile| tensorflow::answer(call, &self.given, profile))
    }
}
