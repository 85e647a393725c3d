//! SC0315 `relu-on-binary-logit`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A single logit behind relu.
#[derive(Clone, Debug)]
pub struct ReluOnBinaryLogit;

impl Rule for ReluOnBinaryLogit {
    const PAGE: RulePage = RulePage {
        code: "SC0315",
        name: "relu-on-binary-logit",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A head with one output that ends in relu, under `BinaryCrossentropy { from_logits: true }`.",
        why: "The probability of class 1 is the sigmoid of the output. The output of relu is never negative, and \
              the sigmoid of 0 is 0.5: class 0 never gets a probability above 0.5, and where the output is 0 the \
              gradient is 0 too.",
        bad: "let model = Sequential([Dense(16).activation(\"relu\"), Dense(1).activation(\"relu\")])?;\n\
              compile!(model, optimizer = Adam::new(0.01), \
              loss = BinaryCrossentropy { from_logits: true })?;",
        good: "let model = Sequential([Dense(16).activation(\"relu\"), Dense(1)])?;\n\
               compile!(model, optimizer = Adam::new(0.01), \
               loss = BinaryCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0315"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the head ends in `relu`: the probability of class 1 is never below 0.5")
            .label(
                Place::argument("compile", "loss"),
                "applies sigmoid to an output that is never negative",
            )
            .why("the sigmoid of 0 is 0.5, and the output of relu is never negative")
            .fix("remove `.activation(\"relu\")` from the last layer")
    }
}
