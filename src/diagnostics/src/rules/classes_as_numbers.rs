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
    /// The data set, as its author named it.
    pub source: String,
}

impl Rule for ClassesAsNumbers {
    const PAGE: RulePage = RulePage {
        code: "SC0308",
        name: "classes-as-numbers",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A model with one output, trained on the squared error, whose labels are names of classes or take two \
                values only.",
        why: "One output trains a regression: it learns a number between the classes' numbers. Class 2 then counts as \
              twice class 1, no probability comes out, and metrics of classes are refused.",
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
            "one output trains a regression; labels take {}",
            text::count(values, "value")
        ))
        .label(Place::model("fit"), "has one output")
        .why("the squared error pulls one number towards the classes' numbers: it is not a choice between them")
        .evidence("labels", text::names(&self.labels, 8))
        .evidence("rows", format!("{} in {}", text::thousands(self.rows), self.source))
        .fix(format!(
            "build the model with {values} outputs, `from_pretrained(\"…\", {values})` or `Dense({values})`, and take a \
             cross-entropy"
        ))
        .fix("or, for two classes and one output, `loss = BinaryCrossentropy { from_logits: true }`")
        .tensorflow(Quote::of("SC0308"))
    }
}
