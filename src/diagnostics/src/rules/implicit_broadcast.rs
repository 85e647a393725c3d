//! SC0309 `implicit-broadcast`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A distance between several outputs and one number.
#[derive(Clone, Debug)]
pub struct ImplicitBroadcast {
    /// Outputs of the head, C.
    pub outputs: usize,
    /// The loss: `MeanSquaredError`.
    pub loss: String,
}

impl Rule for ImplicitBroadcast {
    const PAGE: RulePage = RulePage {
        code: "SC0309",
        name: "implicit-broadcast",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A regression loss (`MeanSquaredError`, `MeanAbsoluteError`, `Huber`, `LogCosh`) on a model with \
                more than one output.",
        why: "Subtracting labels (16) from outputs (16, 2) broadcasts: every output is compared with the label of \
              another text, or with a class index as a quantity. The loss still falls.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError)?;",
        tensorflow: tensorflow::page("SC0309"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let outputs = self.outputs;
        Self::start(format!(
            "shapes (N, {outputs}) and (N) would broadcast: the head has {outputs} outputs, `{}` needs 1",
            self.loss
        ))
        .label(
            Place::argument("compile", "loss"),
            format!("a regression loss on a head with {outputs} labels"),
        )
        .why("each output would be compared with another example's label")
        .fix("write `loss = SparseCategoricalCrossentropy { from_logits: true }`")
        .fix("or build the model with one output to predict a number: `from_pretrained(\"…\", 1)` or `Dense(1)`")
        .tensorflow(Quote::of("SC0309"))
    }
}
