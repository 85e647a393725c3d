//! SC0123 `argument-not-named`.

use crate::{ArgumentRow, Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// How an argument was written instead of `name = value`.
#[derive(Clone, Debug)]
pub enum Unnamed {
    /// `name: value`; the name.
    Colon(String),
    /// A value alone.
    Value(String),
}

/// An argument that is not written as `name = value`.
#[derive(Clone, Debug)]
pub struct ArgumentNotNamed {
    /// Name of the call without `!`.
    pub call: String,
    /// What was written.
    pub given: Unnamed,
    /// Its place.
    pub place: Place,
    /// What to write.
    pub fix: Fix,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for ArgumentNotNamed {
    const PAGE: RulePage = RulePage {
        code: "SC0123",
        name: "argument-not-named",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument of `compile!`, `fit!` or `evaluate!` that is written with a colon, \
                `optimizer: …`, or without its name.",
        why: "Only the model and the data are positional. A positional value would change its meaning when an \
              argument is added.",
        bad: "compile!(model, optimizer: AdamW::new(5e-5))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5))?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let (message, label) = match &self.given {
            Unnamed::Colon(name) => (
                format!("`{name}` is written with `:`; an argument is written `name = value`"),
                "write `=` between name and value",
            ),
            Unnamed::Value(value) => (
                format!(
                    "`{value}` has no name; an argument of `{}!` is written `name = value`",
                    self.call
                ),
                "an argument without its name",
            ),
        };
        let mut diagnostic = Self::start(message)
            .label(self.place.clone(), label)
            .why("only the model and the data are positional");
        diagnostic.fixes.push(self.fix.clone());
        diagnostic.arguments(self.arguments.clone())
    }
}
