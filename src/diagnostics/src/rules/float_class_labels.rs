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
    /// The data set, as its author named it.
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
        finds: "Labels that are floats, for a model with an output per class.",
        why: "A class is chosen, a float is approached: the two have different losses. Whole numbers that were read \
              as floats (1.0 for class 1) are classes in disguise, and must be read as such.",
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
        let told = Self::start(format!(
            "labels are floats; a head of {} wants whole ones",
            text::count(self.classes, "output")
        ))
        .label(Place::call(&self.call), "labels of this data")
        .why("a float is a number to be approached, by one output; a class is one of the outputs")
        .evidence("data", self.source.clone())
        .evidence("rows with a float", text::thousands(self.rows))
        .evidence("the first", shown.join(", "));
        let told = match self.whole {
            true => told.fix(
                "they are whole numbers: read them as classes, `Columns::new().label(…)` in place of `.value(…)`, \
                 or `Label::Class(1)` for 1.0",
            ),
            false => told.fix("make classes of them: `data.map(|example| …)` with `Label::Class(…)`"),
        };
        told.fix("or predict the number: a head of 1 output and `loss = MeanSquaredError`")
            .tensorflow(Quote::of("SC0307"))
    }
}
