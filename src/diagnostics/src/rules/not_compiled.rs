//! SC0112 `not-compiled`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// `fit!` or `evaluate!` on a model that was never compiled.
#[derive(Clone, Debug)]
pub struct NotCompiled {
    /// Name of the call without `!`: `fit` or `evaluate`.
    pub call: String,
}

impl Rule for NotCompiled {
    const PAGE: RulePage = RulePage {
        code: "SC0112",
        name: "not-compiled",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`fit!` or `evaluate!` on a model that was not compiled.",
        why: "`compile!` sets the loss, the optimizer and the metrics; without them there is nothing to minimize.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              fit!(model, train)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0112"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("the model is not compiled: `{}!` has no loss and no optimizer", self.call))
            .label(Place::model(&self.call), "never compiled")
            .why(
                "`compile!` sets a model's optimizer, loss and metrics; a model that is loaded again has none",
            )
            .fix(
                "compile it first: `compile!(model, optimizer = AdamW::new(5e-5), \
                 loss = SparseCategoricalCrossentropy { from_logits: true })?;`",
            )
            .tensorflow(Quote::of("SC0112"))
            .with_answers(|profile| answer(profile, &self.call))
    }
}

/// docs/keras-semantics.md E19.
fn answer(profile: Profile, call: &str) -> Answer {
    let says = match profile {
        Profile::Keras3 => "ValueError: You must call `compile()` before using the model.",
        _ => {
            "RuntimeError: You must compile your model before training/testing. Use \
             `model.compile(optimizer, loss)`."
        }
    };
    Answer::says(profile, format!("raises in `{call}`"), says)
}
