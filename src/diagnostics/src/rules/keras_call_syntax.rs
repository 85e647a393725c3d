//! SC0126 `keras-call-syntax`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// A call that is written as Keras has it.
#[derive(Clone, Debug)]
pub struct KerasCallSyntax {
    /// The call, shortened.
    pub given: String,
    /// How it is written here.
    pub written: String,
    /// Where its name stands.
    pub place: Place,
    /// Why it is no call here.
    pub reason: String,
    /// The way from one to the other.
    pub edits: Vec<Edit>,
}

impl Rule for KerasCallSyntax {
    const PAGE: RulePage = RulePage {
        code: "SC0126",
        name: "keras-call-syntax",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A call in Keras's syntax: `model.fit(train, epochs = 3)`, `compile(model, …)` without its `!`, \
                `MirroredStrategy()`, `Adam(1e-3)`.",
        why: "The names are Keras's, the syntax is not: rustc would report missing methods, extra arguments, and \
              functions that are macros.",
        bad: "model.fit(train, epochs = 3)?;",
        good: "fit!(model, train, epochs = 3)?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!(
            "`{}` is written `{}` here",
            self.given, self.written
        ))
        .label(self.place.clone(), "as in Keras")
        .why(self.reason.clone());
        let verb = if self.edits.is_empty() {
            "without what has no place in it:"
        } else {
            "write"
        };
        diagnostic.fixes.push(Fix {
            kind: crate::FixKind::Change,
            title: format!("{verb} `{}`", self.written),
            edits: self.edits.clone(),
        });
        diagnostic
    }
}
