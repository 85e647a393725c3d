//! SC0305 `softmax-over-one-output`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A cross-entropy of classes on a head with one output.
#[derive(Clone, Debug)]
pub struct SoftmaxOverOneOutput {
    /// The loss: `SparseCategoricalCrossentropy`.
    pub loss: String,
    /// Whether the head itself ends in softmax; the loss may then be any.
    pub in_the_head: bool,
}

impl Rule for SoftmaxOverOneOutput {
    const PAGE: RulePage = RulePage {
        code: "SC0305",
        name: "softmax-over-one-output",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A multi-class cross-entropy on a head with one output, or a head with one output that ends in softmax.",
        why: "Softmax over one class is always 1. The loss is 0 for every text and all weights: nothing is \
              learned, and accuracy looks perfect if all labels are 0.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0305"),
    };

    fn diagnostic(&self) -> Diagnostic {
        if self.in_the_head {
            return Self::start("softmax over one class is always 1: the head is one output with softmax")
                .label(
                    Place::model("compile"),
                    "outputs 1 for every example",
                )
                .why("the output is 1 for all weights, and every gradient is 0")
                .fix("for two classes: `Dense(1).activation(\"sigmoid\")` with `loss = BinaryCrossentropy { from_logits: false }`")
                .fix("for a number: `Dense(1)` with `loss = MeanSquaredError`");
        }
        Self::start("softmax over one class is always 1: the head has 1 output")
            .label(
                Place::argument("compile", "loss"),
                "a multi-class loss on a head with 1 output",
            )
            .why(format!(
                "`{}` of a single output is 0 for every text and all weights",
                self.loss
            ))
            .fix_edit(
                "for two classes with one output: `loss = BinaryCrossentropy { from_logits: true }`",
                Place::argument("compile", "loss"),
                "loss = BinaryCrossentropy { from_logits: true }",
            )
            .fix(
                "or build the model with an output for each class: `from_pretrained(\"…\", 2)` or `Dense(2)`",
            )
            .fix_edit(
                "for a number: `loss = MeanSquaredError`",
                Place::argument("compile", "loss"),
                "loss = MeanSquaredError",
            )
            .tensorflow(Quote::of("SC0305"))
    }
}
