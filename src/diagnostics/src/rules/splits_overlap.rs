//! SC0701 `splits-overlap`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Examples that are both trained and validated on.
#[derive(Clone, Debug)]
pub struct SplitsOverlap {
    /// How many examples of the validation data are in the training data too.
    pub shared: usize,
    /// Examples of the validation data.
    pub validation: usize,
    /// The first few: row in the training data, row in the validation data, the text.
    pub first: Vec<(usize, usize, String)>,
    /// How many of them have another label there.
    pub other_label: usize,
    /// Whether both are parts of one dataset: `validation_split`.
    pub one_data_set: bool,
}

impl Rule for SplitsOverlap {
    const PAGE: RulePage = RulePage {
        code: "SC0701",
        name: "splits-overlap",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Validation examples that are identical to training examples: both texts of a pair, all numbers \
                of a row. Labels are not compared.",
        why: "The model has seen these examples in training. The validation loss is then too low, early stopping \
              stops too late, and the epoch that looks best may not be.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let train = train.shuffled(1);\n\
              fit!(model, train.take(64), validation_data = train.take(32))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let train = train.shuffled(1);\n\
               fit!(model, train.take(64), validation_data = train.skip(64).take(32).without(&train.take(64)))?;",
        tensorflow: tensorflow::page("SC0701"),
    };

    const TOLERATES: &'static [&'static str] = &["SC0517"];

    fn diagnostic(&self) -> Diagnostic {
        let percent = 100.0 * self.shared as f64 / self.validation.max(1) as f64;
        let are = if self.shared == 1 {
            "example is"
        } else {
            "examples are"
        };
        let mut diagnostic = Self::start(format!(
            "{} validation {are} in the training data",
            text::thousands(self.shared)
        ))
        .label(Place::call("fit"), "validates on training examples")
        .why("a model looks better than it is on examples that it was trained on")
        .evidence(
            "shared",
            format!(
                "{} of {}, {percent:.1} %",
                text::thousands(self.shared),
                text::thousands(self.validation)
            ),
        );
        for (train, validation, text) in self.first.iter().take(5) {
            diagnostic = diagnostic.evidence(
                format!("row {validation}, in training row {train}"),
                text::excerpt(text, 80),
            );
        }
        if self.other_label > 0 {
            diagnostic = diagnostic.evidence(
                "of these, with another label",
                text::thousands(self.other_label),
            );
        }
        let diagnostic = match self.one_data_set {
            true => diagnostic.fix("remove duplicates before the split: `data.dedupe()`"),
            false => diagnostic.fix("remove them: `validation_data = dev.without(&train)`"),
        };
        diagnostic
            .fix("`%warnings deny SC0701` turns it into an error")
            .tensorflow(Quote::of("SC0701"))
    }
}
