//! SC0315 `logit-never-negative`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A single logit behind relu.
#[derive(Clone, Debug)]
pub struct LogitNeverNegative;

impl Rule for LogitNeverNegative {
    const PAGE: RulePage = RulePage {
        code: "SC0315",
        name: "logit-never-negative",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A head with one output that ends in relu, under `BinaryCrossentropy { from_logits: true }`.",
        why: "The probability of class 1 is the sigmoid of the output. Relu puts out nothing below 0, whose sigmoid \
              is 0.5: class 0 can never get more than half of the probability, and where the output is 0 \
              there is no gradient to change that.",
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
                "takes the sigmoid of an output that is never negative",
            )
            .why("the sigmoid of 0 is 0.5, and relu puts out nothing below 0")
            .fix("drop `.activation(\"relu\")` from the last layer")
    }
}
