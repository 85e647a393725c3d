//! SC0314 `class-order-differs`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// The same classes, numbered differently by the data and by the model.
#[derive(Clone, Debug)]
pub struct ClassOrderDiffers {
    /// The model's names, in the order of its outputs.
    pub model: Vec<String>,
    /// The data's names, in the order of their numbers.
    pub data: Vec<String>,
    /// The dataset's name: its file or variable.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl Rule for ClassOrderDiffers {
    const PAGE: RulePage = RulePage {
        code: "SC0314",
        name: "class-order-differs",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "A dataset whose class order differs from the model's: from the checkpoint's `id2label`, a list \
                in the cell, or the split that the model was trained with.",
        why: "The result is correct: classes are matched by name, and the data is renumbered. If they were \
              matched by index, as in other libraries, each of these classes would be counted as another one.",
        bad: "let model = BertForSequenceClassification::from_pretrained_labels(\"all-MiniLM-L6-v2\", \
              [\"server\", \"game\"])?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, Dataset::from_rows([\"a game of chess\", \"a mail server\"], [\"game\", \"server\"])?)?;",
        good: "let model = BertForSequenceClassification::from_pretrained_labels(\"all-MiniLM-L6-v2\", \
               [\"game\", \"server\"])?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, Dataset::from_rows([\"a game of chess\", \"a mail server\"], [\"game\", \"server\"])?)?;",
        tensorflow: tensorflow::page("SC0314"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let pairs = self.model.iter().zip(&self.data).enumerate();
        let moved: Vec<String> = pairs
            .filter(|(_, (model, data))| model != data)
            .map(|(class, (model, data))| format!("{class}: `{model}`, in the data `{data}`"))
            .collect();
        Self::start("the classes of the data are in another order than the model's: they are renumbered by name")
            .label(
                Place::call(&self.call),
                "the data is renumbered for this call",
            )
            .why("classes are matched by name, so class 0 has the same meaning in the model and the data")
            .evidence("data", self.source.clone())
            .evidence("renumbered classes", text::thousands(moved.len()))
            .evidence(
                "by number",
                moved.iter().take(5).cloned().collect::<Vec<_>>().join("; "),
            )
            .fix("nothing to do; `data.with_label_names(&model.label_names())?` makes the order explicit")
            .tensorflow(Quote::of("SC0314"))
    }
}
