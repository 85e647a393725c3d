//! SC0116 `missing-optimizer`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// `compile!` without `optimizer`.
#[derive(Clone, Debug)]
pub struct MissingOptimizer {
    /// The call.
    pub place: Place,
    /// Right after the model, where the argument is to be inserted; `None` when told at run time.
    pub insert: Option<Place>,
    /// The call's arguments; empty when told at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for MissingOptimizer {
    const PAGE: RulePage = RulePage {
        code: "SC0116",
        name: "missing-optimizer",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A `compile!` that names no optimizer.",
        why: "Keras falls back to RMSprop at a rate of 0.001: twenty to fifty times BERT's range, and never \
              what a fine-tuning run wants. There is no default here.",
        bad: "compile!(model, loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0116"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start("`compile!` needs an optimizer")
            .label(self.place.clone(), "no `optimizer` here")
            .why(
                "there is no default: the rate decides whether BERT learns, and Keras's default is twenty \
                 to fifty times too high for it",
            );
        let title = "write `optimizer = AdamW::new(5e-5)`";
        let told = match &self.insert {
            Some(place) => told.fix_edit(title, place.clone(), ", optimizer = AdamW::new(5e-5)"),
            None => told.fix(title),
        };
        told.arguments(self.arguments.clone())
            .tensorflow(Quote::of("SC0116"))
            .answers(|profile| Answer::does(profile, "takes RMSprop at 0.001, no message"))
    }
}
