//! SC0126 `call-as-in-keras`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// A call that is written as Keras has it.
#[derive(Clone, Debug)]
pub struct CallAsInKeras {
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

impl Rule for CallAsInKeras {
    const PAGE: RulePage = RulePage {
        code: "SC0126",
        name: "call-as-in-keras",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A call in the form that Keras has: `model.fit(train, epochs = 3)`, `compile(model, …)` without \
                its `!`, `MirroredStrategy()`, `Adam(1e-3)`.",
        why: "The names are the same, the forms are not: rustc would speak of missing methods, extra arguments \
              and functions that are macros.",
        bad: "model.fit(train, epochs = 3)?;",
        good: "fit!(model, train, epochs = 3)?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!(
            "`{}` is written `{}` here",
            self.given, self.written
        ))
        .label(self.place.clone(), "as in Keras")
        .why(self.reason.clone());
        told.fixes.push(Fix {
            title: format!("write `{}`", self.written),
            edits: self.edits.clone(),
        });
        told
    }
}
