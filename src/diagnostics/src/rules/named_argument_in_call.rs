//! SC0125 `named-argument-in-call`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// `name = value` in the call of a function or a method.
#[derive(Clone, Debug)]
pub struct NamedArgumentInCall {
    /// What is called.
    pub callee: String,
    /// The name.
    pub argument: String,
    /// The place of name and value.
    pub place: Place,
    /// The call as it is written here.
    pub written: String,
    /// The same as edits.
    pub edits: Vec<Edit>,
}

impl Rule for NamedArgumentInCall {
    const PAGE: RulePage = RulePage {
        code: "SC0125",
        name: "named-argument-in-call",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "`name = value` in the call of a function, a method or a type: `Dense(10, activation = \"relu\")`.",
        why: "Rust has no named arguments. It reads `name = value` as an assignment, and rustc reports an \
              unknown variable.",
        bad: "let layer = Dense(10, activation = \"relu\");",
        good: "let layer = Dense(10).activation(\"relu\");",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!(
            "`{0}` has no named arguments: `{1} = …` would assign to a variable `{1}`",
            self.callee, self.argument
        ))
        .label(self.place.clone(), "an assignment in Rust")
        .why(
            "only the macros `compile!`, `fit!` and `evaluate!` have named arguments; functions take values in order, and settings are methods or fields",
        );
        let verb = if self.edits.is_empty() {
            "with each value at its own place:"
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
