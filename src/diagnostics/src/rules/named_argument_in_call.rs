//! SC0125 `named-value-in-a-call`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// `name = value` in the call of a function or a method.
#[derive(Clone, Debug)]
pub struct NamedValueInACall {
    /// What is called.
    pub callee: String,
    /// The name.
    pub argument: String,
    /// Where name and value stand.
    pub place: Place,
    /// The call as it is written here.
    pub written: String,
    /// The same as edits.
    pub edits: Vec<Edit>,
}

impl Rule for NamedValueInACall {
    const PAGE: RulePage = RulePage {
        code: "SC0125",
        name: "named-value-in-a-call",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "`name = value` in the call of a function, a method or a type: `Dense(10, activation = \"relu\")`.",
        why: "Rust has no arguments by name. It reads `name = value` as an assignment to a variable, and rustc \
              says that it cannot find that variable.",
        bad: "let layer = Dense(10, activation = \"relu\");",
        good: "let layer = Dense(10).activation(\"relu\");",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!(
            "`{}` takes no argument by name, such as `{}`",
            self.callee, self.argument
        ))
        .label(self.place.clone(), "to Rust, an assignment")
        .why(
            "only `compile!`, `fit!` and `evaluate!` have arguments by name: functions take values in their \
             order, and settings are methods or fields",
        );
        told.fixes.push(Fix {
            title: format!("write `{}`", self.written),
            edits: self.edits.clone(),
        });
        told
    }
}
