//! SC0106 `argument-of-another-call`.

use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// An argument of the optimizer, the loss or `fit!` written in `compile!`.
#[derive(Clone, Debug)]
pub struct ArgumentOfAnotherCall {
    /// The name as typed.
    pub given: String,
    /// Where the name stands.
    pub place: Place,
    /// Where the argument belongs, to follow "belongs to": ``the optimizer``, `` `fit!` ``.
    pub owner: String,
    /// How it is written there: `AdamW::new(5e-5)`.
    pub written: String,
    /// The edits that move it there; empty where the text does not say how.
    pub edits: Vec<Edit>,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for ArgumentOfAnotherCall {
    const PAGE: RulePage = RulePage {
        code: "SC0106",
        name: "argument-of-another-call",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument in `compile!` that exists, but elsewhere: the learning rate, weight decay and \
                clipping belong to the optimizer, `epochs` and `batch_size` to `fit!`, `from_logits` to the \
                loss.",
        why: "One setting has one place. Accepted in two, the second one would silently win.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), weight_decay = 0.01)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01))?;",
        tensorflow: tensorflow::page("SC0106"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!(
            "`{}` belongs to {}, not to `compile!`",
            self.given, self.owner
        ))
        .label(self.place.clone(), format!("an argument of {}", self.owner))
        .why("`compile!` takes what concerns the model as a whole; one setting has one place");
        told.fixes.push(Fix {
            title: format!("write it there: `{}`", self.written),
            edits: self.edits.clone(),
        });
        told.arguments(self.arguments.clone())
            .tensorflow(Quote::of("SC0106"))
            .answers(|profile| tensorflow::answer("compile", &self.given, profile))
    }
}
