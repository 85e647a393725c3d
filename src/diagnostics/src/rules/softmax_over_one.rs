//! SC0305 `softmax-over-one`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A cross-entropy of classes on a head with one output.
#[derive(Clone, Debug)]
pub struct SoftmaxOverOne {
    /// The loss: `SparseCategoricalCrossentropy`.
    pub loss: String,
}

impl Rule for SoftmaxOverOne {
    const PAGE: RulePage = RulePage {
        code: "SC0305",
        name: "softmax-over-one",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A cross-entropy of classes on a model with `num_labels = 1`.",
        why: "Softmax over one class is always 1. The loss is 0 for every text, whatever the weights: nothing \
              is learnt, and accuracy looks perfect where all labels are 0.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: "With labels that are all 0 it trains without a word, loss 0.0 and accuracy 1.0; otherwise \
                     \"Received a label value of 1 which is outside the valid range of [0, 1).\"",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("softmax over one class is always 1: the head has 1 output")
            .label(
                Place::argument("compile", "loss"),
                "a loss of classes, for a head with 1 output",
            )
            .why(format!(
                "`{}` of a single output is 0 for every text, whatever the weights",
                self.loss
            ))
            .fix("for two classes by one output: `loss = BinaryCrossentropy { from_logits: true }`")
            .fix("or build the model with an output for each class: `num_labels = 2`")
            .fix("for a number: `loss = MeanSquaredError`")
            .tensorflow("trains without a word where all labels are 0: loss 0.0, accuracy 1.0")
    }
}
