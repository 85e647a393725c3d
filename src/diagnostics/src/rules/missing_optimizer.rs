//! SC0116 `missing-optimizer`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// `compile!` without `optimizer`.
#[derive(Clone, Debug)]
pub struct MissingOptimizer {
    /// The call.
    pub place: Place,
    /// Right after the model, where the argument is to be inserted; `None` when raised at run time.
    pub insert: Option<Place>,
    /// The call's arguments; empty when raised at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for MissingOptimizer {
    const PAGE: RulePage = RulePage {
        code: "SC0116",
        name: "missing-optimizer",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A `compile!` that names no optimizer.",
        why: "Keras uses RMSprop at a rate of 0.001 by default: twenty to fifty times BERT's range, and not \
              suitable for fine-tuning. There is no default here.",
        bad: "compile!(model, loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0116"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start("`compile!` needs an optimizer")
            .label(self.place.clone(), "no `optimizer` here")
            .why(
                "there is no default: the rate decides whether BERT learns, and Keras's default is twenty \
                 to fifty times too high for it",
            );
        let title = "write `optimizer = AdamW::new(5e-5)`";
        let diagnostic = match &self.insert {
            Some(place) => {
                diagnostic.fix_edit(title, place.clone(), ", optimizer = AdamW::new(5e-5)")
            }
            None => diagnostic.fix(title),
        };
        diagnostic
            .arguments(self.arguments.clone())
            .tensorflow(Quote::of("SC0116"))
            .with_answers(|profile| Answer::does(profile, "uses RMSprop at 0.001, no message"))
    }
}
