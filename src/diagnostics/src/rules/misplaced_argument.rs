//! SC0106 `misplaced-argument`.

use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// An argument of the optimizer, the loss or `fit!` written in `compile!`.
#[derive(Clone, Debug)]
pub struct MisplacedArgument {
    /// The name as typed.
    pub given: String,
    /// The place of the name.
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

impl Rule for MisplacedArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0106",
        name: "misplaced-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument in `compile!` that belongs to another call: the learning rate, weight decay and \
                clipping belong to the optimizer, `epochs` and `batch_size` to `fit!`, `from_logits` to the \
                loss.",
        why: "Each setting has one place. If two were accepted, one would silently replace the other.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), weight_decay = 0.01)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01))?;",
        tensorflow: tensorflow::page("SC0106"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!(
            "`{}` belongs to {}, not to `compile!`",
            self.given, self.owner
        ))
        .label(self.place.clone(), format!("an argument of {}", self.owner))
        .why("`compile!` takes the settings of the model as a whole; each setting has one place");
        diagnostic.fixes.push(Fix {
            kind: crate::FixKind::Change,
            title: format!("write it there: `{}`", self.written),
            edits: self.edits.clone(),
        });
        diagnostic
            .arguments(self.arguments.clone())
            .tensorflow(Quote::of("SC0106"))
            .with_answers(|profile| tensorflow::answer("compile", &self.given, profile))
    }
}
