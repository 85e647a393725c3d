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
    /// Whether both are parts of one data set: `validation_split`.
    pub one_data_set: bool,
}

impl Rule for SplitsOverlap {
    const PAGE: RulePage = RulePage {
        code: "SC0701",
        name: "splits-overlap",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Examples of the validation data that stand in the training data, letter by letter: both texts of a \
                pair, all numbers of a row. Labels are not compared.",
        why: "The model has learnt these by heart. The validation loss is then too good, early stopping waits too long, \
              and the best epoch is not the best.",
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
        let mut told = Self::start(format!(
            "{} validation {are} in the training data",
            text::thousands(self.shared)
        ))
        .label(Place::call("fit"), "validates on what it trains on")
        .why("what was trained on is known by heart: measured on it, every model looks better than it is")
        .evidence(
            "shared",
            format!("{} of {}, {percent:.1} %", text::thousands(self.shared), text::thousands(self.validation)),
        );
        for (train, validation, text) in self.first.iter().take(5) {
            told = told.evidence(
                format!("row {validation}, in training row {train}"),
                text::excerpt(text, 80),
            );
        }
        if self.other_label > 0 {
            told = told.evidence(
                "of these with another label",
                text::thousands(self.other_label),
            );
        }
        let told = match self.one_data_set {
            true => told.fix("drop what is there twice before it is divided: `data.dedupe()`"),
            false => told.fix("drop them: `validation_data = dev.without(&train)`"),
        };
        told.fix("`%warnings deny SC0701` makes an error of it")
            .tensorflow(Quote::of("SC0701"))
    }
}
