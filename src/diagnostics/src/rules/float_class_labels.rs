//! SC0307 `float-class-labels`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Numbers as labels, for a head of classes.
#[derive(Clone, Debug)]
pub struct FloatClassLabels {
    /// The first few: row, counted from 0, and label.
    pub first: Vec<(usize, f32)>,
    /// How many rows have a number.
    pub rows: usize,
    /// Outputs of the head.
    pub classes: usize,
    /// Whether all of them are whole numbers that are not negative.
    pub whole: bool,
    /// The dataset's name: its file or variable.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl Rule for FloatClassLabels {
    const PAGE: RulePage = RulePage {
        code: "SC0307",
        name: "float-class-labels",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "Floating-point labels for a model with one output per class.",
        why: "Classification and regression have different losses. Class indices that were read as floats (1.0 \
              for class 1) must be read as classes.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let rows = [(\"a game of chess\", 1.0), (\"a mail server\", 0.0)];\n\
              let rows = rows.map(|(text, label)| Example::new(text).with_label(Label::Value(label)));\n\
              fit!(model, Dataset::from_examples(rows, vec![], \"two rows\"))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, Dataset::from_rows([\"a game of chess\", \"a mail server\"], [\"1\", \"0\"])?)?;",
        tensorflow: tensorflow::page("SC0307"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let shown = self.first.iter().take(5);
        let shown: Vec<String> = shown
            .map(|(row, label)| format!("{label:?} at row {row}"))
            .collect();
        let diagnostic = Self::start(format!(
            "labels are floats; a head of {} needs class indices",
            text::count(self.classes, "output")
        ))
        .label(Place::call(&self.call), "labels of this data")
        .why("floats are numbers to predict; classes must be integers")
        .evidence("data", self.source.clone())
        .evidence("rows with a float", text::thousands(self.rows))
        .evidence("the first", shown.join(", "));
        let diagnostic = match self.whole {
            true if self.source == "arrays in memory" => diagnostic.fix(
                "they are whole numbers: write them as integers, `[0, 1]` in place of `[0.0, 1.0]`, or \
                 `y.iter().map(|label| *label as i64)`",
            ),
            true if self.source == "rows in memory" => diagnostic.fix(
                "they are whole numbers: write them as integers, `[0, 1]` in place of `[0.0, 1.0]`",
            ),
            true => diagnostic.fix(
                "they are whole numbers: read them as classes, `Columns::new().label(…)` in place of `.value(…)`, \
                 or `Label::Class(1)` for 1.0",
            ),
            false => diagnostic.fix("convert them to classes: `data.map(|example| …)` with `Label::Class(…)`"),
        };
        diagnostic
            .fix("or predict the number: a head of 1 output and `loss = MeanSquaredError`")
            .tensorflow(Quote::of("SC0307"))
    }
}
