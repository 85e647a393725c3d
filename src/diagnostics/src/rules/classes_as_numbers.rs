//! SC0308 `classes-as-numbers`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A regression whose labels look like classes.
#[derive(Clone, Debug)]
pub struct ClassesAsNumbers {
    /// The distinct labels, in order.
    pub labels: Vec<String>,
    /// Examples.
    pub rows: usize,
    /// The dataset's name: its file or variable.
    pub source: String,
}

impl Rule for ClassesAsNumbers {
    const PAGE: RulePage = RulePage {
        code: "SC0308",
        name: "classes-as-numbers",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A model with one output, trained on the squared error, whose labels are class names or have only \
                two values.",
        why: "One output is a regression: it learns a number between the class indices. Class 2 then counts as \
              twice class 1, the output is not a probability, and classification metrics are rejected.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError)?;\n\
              let texts = [\"a game of chess\", \"a mail server\", \"a platform game\", \"a web server\"];\n\
              fit!(model, Dataset::from_rows(texts, [\"game\", \"server\", \"game\", \"server\"])?)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let texts = [\"a game of chess\", \"a mail server\", \"a platform game\", \"a web server\"];\n\
               fit!(model, Dataset::from_rows(texts, [\"game\", \"server\", \"game\", \"server\"])?)?;",
        tensorflow: tensorflow::page("SC0308"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let values = self.labels.len();
        Self::start(format!(
            "one output is a regression; the labels have {}",
            text::count(values, "value")
        ))
        .label(Place::model("fit"), "has one output")
        .why("the squared error fits one number to the class indices: it does not choose between classes")
        .evidence("labels", text::names(&self.labels, 8))
        .evidence("rows", format!("{} in {}", text::thousands(self.rows), self.source))
        .fix(format!(
            "build the model with {values} outputs, `from_pretrained(\"…\", {values})` or `Dense({values})`, and \
             use a cross-entropy"
        ))
        .fix("or, for two classes and one output, `loss = BinaryCrossentropy { from_logits: true }`")
        .tensorflow(Quote::of("SC0308"))
    }
}
