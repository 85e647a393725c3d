//! SC0304 `labels-not-one-hot`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// The categorical cross-entropy on labels that are class numbers.
#[derive(Clone, Debug)]
pub struct LabelsNotOneHot {
    /// Outputs of the head, C.
    pub classes: usize,
}

impl Rule for LabelsNotOneHot {
    const PAGE: RulePage = RulePage {
        code: "SC0304",
        name: "labels-not-one-hot",
        severity: Severity::Note,
        stage: Stage::Compile,
        finds: "`CategoricalCrossentropy`, which is defined for one-hot labels, on a model whose labels are \
                class numbers. Data sets here carry class numbers only.",
        why: "Nothing is lost: each number is turned into its one-hot row, which gives the same loss as \
              `SparseCategoricalCrossentropy`. In Keras the two are not interchangeable, so a cell that is \
              carried over has to change its loss or its labels.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = CategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0304"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let classes = self.classes;
        Self::start(format!(
            "labels are class numbers; the loss wants one-hot rows (N, {classes}), and gets them made"
        ))
        .label(
            Place::argument("compile", "loss"),
            "each number becomes a row with one 1",
        )
        .why("the loss is then that of `SparseCategoricalCrossentropy`; only label smoothing needs this one")
        .fix("write `loss = SparseCategoricalCrossentropy { from_logits: true }`")
        .fix("or keep it for `.label_smoothing(0.1)`")
        .tensorflow(Quote::with(
            "SC0304",
            "",
            &[("classes", classes.to_string())],
        ))
    }
}
