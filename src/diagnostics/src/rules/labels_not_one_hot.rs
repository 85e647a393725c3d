//! SC0304 `labels-not-one-hot`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// The categorical cross-entropy on labels that are class numbers.
#[derive(Clone, Debug)]
pub struct LabelsNotOneHot {
    /// Outputs of the head, C.
    pub classes: usize,
    /// Whether the loss takes logits.
    pub from_logits: bool,
}

impl Rule for LabelsNotOneHot {
    const PAGE: RulePage = RulePage {
        code: "SC0304",
        name: "labels-not-one-hot",
        severity: Severity::Note,
        stage: Stage::Compile,
        finds: "`CategoricalCrossentropy`, which is defined for one-hot labels, on a model whose labels are \
                class indices. Datasets here have class indices only.",
        why: "The result is correct: each index is converted to its one-hot row, which gives the same loss as \
              `SparseCategoricalCrossentropy`. In Keras the two are not interchangeable, so a cell that is moved \
              to Keras must change its loss or its labels.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = CategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0304"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let classes = self.classes;
        Self::start(format!(
            "labels are class indices; the loss needs one-hot rows (N, {classes}), and they are converted"
        ))
        .label(
            Place::argument("compile", "loss"),
            "each index becomes a row with a single 1",
        )
        .why("the loss equals `SparseCategoricalCrossentropy`; only label smoothing needs this one")
        .fix(format!(
            "write `loss = SparseCategoricalCrossentropy {{ from_logits: {} }}`",
            self.from_logits
        ))
        .fix("or keep it for `.label_smoothing(0.1)`")
        .tensorflow(Quote::with(
            "SC0304",
            "",
            &[("classes", classes.to_string())],
        ))
    }
}
