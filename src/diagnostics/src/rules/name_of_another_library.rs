//! SC0130 `name-of-another-library`.

use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule, RulePage, Severity, Stage};

/// A name that Keras, PyTorch, Hugging Face, NumPy, pandas or Python have, and that is another one here.
#[derive(Clone, Debug)]
pub struct NameOfAnotherLibrary {
    /// How it is used, shortened.
    pub given: String,
    /// What is written here; `None`: there is nothing of the kind.
    pub written: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// What is here, a sentence.
    pub reason: String,
    /// The way from one to the other; empty where the cell does not decide it.
    pub edits: Vec<Edit>,
    /// What stands at the place in the text: another library's name, or what else it is.
    pub label: &'static str,
}

/// The label of a name.
pub(crate) const A_NAME: &str = "another library's name";
/// The label of a command that lacks its `!`.
pub(crate) const A_COMMAND: &str = "a line for the shell";

impl Rule for NameOfAnotherLibrary {
    const PAGE: RulePage = RulePage {
        code: "SC0130",
        name: "name-of-another-library",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A method, a field, a function or a module of Keras, PyTorch, Hugging Face, NumPy, pandas or Python that is written \
                in another way here: `model.trainable = false`, `history.history[\"loss\"]`, `predictions.argmax(1)`, `len(x)`, \
                `np.array([1.0])`, `2 ** 10`.",
        why: "rustc would report that the name does not exist, and suggest one that is spelled like it.",
        bad: "let rows = vec![1.0, 2.0];\nlet n = len(rows);",
        good: "let rows = vec![1.0, 2.0];\nlet n = rows.len();",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let verb = if self.edits.is_empty() {
            "use"
        } else {
            "write"
        };
        let message = match &self.written {
            Some(written) if !self.edits.is_empty() => {
                format!("`{}` is written `{written}` here", self.given)
            }
            Some(written) => format!("`{}` has no counterpart here; use `{written}`", self.given),
            None => format!("`{}` has no counterpart here", self.given),
        };
        let mut diagnostic = Self::start(message)
            .label(self.place.clone(), self.label)
            .why(self.reason.clone());
        if let Some(written) = &self.written {
            diagnostic.fixes.push(Fix {
                kind: FixKind::Change,
                title: format!("{verb} `{written}`"),
                edits: self.edits.clone(),
            });
        }
        diagnostic
    }
}
