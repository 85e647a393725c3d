//! SC0306 `binary-loss-for-many-classes`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A loss of two classes by one output on a head with more than one output.
#[derive(Clone, Debug)]
pub struct BinaryLossForManyClasses {
    /// Outputs of the head.
    pub outputs: usize,
    /// The loss: `BinaryCrossentropy`, `Hinge`.
    pub loss: String,
}

impl Rule for BinaryLossForManyClasses {
    const PAGE: RulePage = RulePage {
        code: "SC0306",
        name: "binary-loss-for-many-classes",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`BinaryCrossentropy`, `Hinge` or `SquaredHinge` on a model with two or more outputs and one class per \
                text.",
        why: "Binary cross-entropy compares each output with its own 0 or 1. A class index is one value for all \
              outputs: the shapes do not match.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = BinaryCrossentropy { from_logits: true })?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0306"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let outputs = self.outputs;
        let diagnostic = Self::start(format!(
            "`{}` needs one logit or (N, {outputs}) labels; the head has {outputs} outputs and the data one \
             class index per text",
            self.loss
        ))
        .label(
            Place::argument("compile", "loss"),
            format!("(N, {outputs}) outputs, (N) labels"),
        )
        .why("it compares every output with its own 0 or 1, and each text has one class index")
        .fix("write `loss = SparseCategoricalCrossentropy { from_logits: true }`")
        .fix("or build the model with one output for two classes: `from_pretrained(\"…\", 1)` or `Dense(1)`");
        match self.loss.as_str() {
            "BinaryCrossentropy" => diagnostic.tensorflow(Quote::with(
                "SC0306",
                "",
                &[("outputs", outputs.to_string())],
            )),
            _ => diagnostic,
        }
    }
}
