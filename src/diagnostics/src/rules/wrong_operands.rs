//! SC0124 `wrong-operands`.

use crate::{ArgumentRow, Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A call without its model or its data, or with both in the wrong order.
#[derive(Clone, Debug)]
pub struct WrongOperands {
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub place: Place,
    /// A few words beside it.
    pub label: String,
    /// What to write.
    pub fix: Fix,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for WrongOperands {
    const PAGE: RulePage = RulePage {
        code: "SC0124",
        name: "wrong-operands",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A `compile!`, `fit!` or `evaluate!` without its model or its data, with both in the wrong \
                order, or with examples and labels as two operands.",
        why: "rustc would report an unknown variable `optimizer`, or a dataset that cannot be trained.",
        bad: "compile!(optimizer = AdamW::new(5e-5))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5))?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(self.message.clone())
            .label(self.place.clone(), self.label.clone())
            .why(
                "the order is: the model, the data (for `fit!` and `evaluate!`), then the arguments, `name = value`",
            );
        diagnostic.fixes.push(self.fix.clone());
        diagnostic.arguments(self.arguments.clone())
    }
}
