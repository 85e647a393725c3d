//! What can be completed and explained from the text alone: the arguments of `compile!`, `fit!`,
//! `evaluate!` and the optimizers, the strategies of `scope!`, magics and codes, variables, and the
//! names of the prelude. It needs no rust-analyzer, so it also answers while a cell runs and before the evaluator has
//! started; between cells, rust-analyzer is asked ([`question`]) where this has nothing to say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stratoscope_wire::MimeBundle;

use stratoscope_session::{Assist, Completion, Completions, Variable};

mod explain;
mod members;
mod names;
mod offer;
pub mod question;
mod rank;

use question::Question;
use stratoscope_cell_text::cursor as place;

/// Shared by the evaluator, which keeps its variables up to date, and whoever asks meanwhile.
#[derive(Clone, Default)]
pub struct Assistant {
    variables: Arc<Mutex<Vec<Variable>>>,
}

impl Assistant {
    /// A cell has ended: these variables there are.
    pub fn set_variables(&self, variables: Vec<Variable>) {
        *self.lock() = variables;
    }

    /// The variables that there were when the last cell had ended.
    pub fn variables(&self) -> Vec<Variable> {
        self.lock().clone()
    }

    /// Whether a variable, or a member of one, may be something that a `?` can stand behind.
    pub fn may_fail(&self, path: &str) -> bool {
        let name = path.split('.').next().unwrap_or_default();
        let is_member = name.len() < path.len();
        let variables = self.lock();
        let variable = variables.iter().find(|variable| variable.name == name);
        variable.is_some_and(|it| is_member || is_fallible(&it.type_name))
    }

    /// The completions where the text decides what can stand there; `None`: Rust decides.
    pub fn complete_call(&self, code: &str, cursor: usize) -> Option<Completions> {
        let cursor = border(code, cursor);
        offer::offer(code, cursor, &self.lock())
    }

    /// What is left of what Rust offers at the cursor, in the order in which people want it.
    pub fn refine(&self, code: &str, question: &Question, items: Vec<Completion>) -> Completions {
        offer::refine(code, question, items)
    }

    /// The names that can stand at the cursor, without Rust.
    pub fn any_name(&self, code: &str, cursor: usize) -> Completions {
        offer::any_name(code, border(code, cursor), &self.lock())
    }

    /// As [`Self::complete_call`], for what hovering shows.
    pub fn explain_call(&self, code: &str, cursor: usize, detail: u8) -> Option<MimeBundle> {
        explain::explain(code, border(code, cursor), detail)
    }

    /// What the notebook knows of the variable at the cursor.
    pub fn explain_variable(&self, code: &str, cursor: usize) -> Option<MimeBundle> {
        let cursor = border(code, cursor);
        let name = &code[place::word(code, cursor)];
        let variables = self.lock();
        let variable = variables.iter().find(|variable| variable.name == name)?;
        Some(explain::variable(variable))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Variable>> {
        self.variables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fallible(type_name: &str) -> bool {
    let path = type_name.split('<').next().unwrap_or_default();
    matches!(
        path.rsplit("::").next(),
        Some("Result" | "Option" | "Poll" | "ControlFlow")
    )
}

/// Without rust-analyzer, so that nothing waits for a cell or for the start.
impl Assist for Assistant {
    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let cursor = border(code, cursor);
        let variables = self.lock();
        offer::offer(code, cursor, &variables)
            .unwrap_or_else(|| offer::any_name(code, cursor, &variables))
    }

    fn inspect(&self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle> {
        self.explain_call(code, cursor, detail_level)
            .or_else(|| self.explain_variable(code, cursor))
    }
}

/// The name at the cursor, where it can stand alone: it is no method, no part of a path, no text.
pub fn name_alone(code: &str, cursor: usize) -> Option<&str> {
    let cursor = border(code, cursor);
    let place = place::find(code, cursor);
    let name = &code[place.word.clone()];
    let before = &code[..place.word.start];
    let behind = &code[place.word.end..];
    let is_part = before.ends_with(['.', ':']) || before.ends_with("fn ");
    let is_name = name.starts_with(|it: char| it.is_alphabetic() || it == '_');
    // `AdamW` of `AdamW::new` is a name; `name!` is a macro, and `name =` an argument.
    let names = is_name && !is_part && !behind.starts_with('!');
    (names && place.text.is_none() && !place.comment).then_some(name)
}

/// The cursor, or the next place where a character begins.
pub fn border(code: &str, cursor: usize) -> usize {
    (cursor.min(code.len())..=code.len())
        .find(|&at| code.is_char_boundary(at))
        .unwrap_or(code.len())
}

/// One thing to offer.
fn item(text: impl Into<String>, kind: &str, detail: impl Into<String>) -> Completion {
    Completion {
        text: text.into(),
        kind: kind.to_owned(),
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_stand_alone() {
        for (marked, expected) in [
            (
                "compile!(m, loss = Mean|SquaredError)",
                Some("MeanSquaredError"),
            ),
            ("compile!(m, metrics = [accu|racy()])", Some("accuracy")),
            ("compile!(m, optimizer = Ada|mW::new(1.0))", Some("AdamW")),
            ("AdamW::ne|w(1.0)", None),
            ("model.fi|t()", None),
            ("vec|![1]", None),
            ("\"te|xt\"", None),
            ("// no|te", None),
            ("1|2", None),
            ("|", None),
        ] {
            let cursor = marked.find('|').expect("a cursor");
            let code = marked.replacen('|', "", 1);
            assert_eq!(name_alone(&code, cursor), expected, "{marked}");
        }
    }
}
