//! SC0316 `similar-labels`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Class names that differ only in blanks or case.
#[derive(Clone, Debug)]
pub struct SimilarLabels {
    /// The names, quoted: `labels differ only in blanks or case: "Pos" and "pos "`.
    pub sentence: String,
    /// How many classes the data has.
    pub classes: usize,
    /// The dataset, as its author named it.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl Rule for SimilarLabels {
    const PAGE: RulePage = RulePage {
        code: "SC0316",
        name: "similar-labels",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Classes whose names differ only in blanks or in upper and lower case: `pos`, `pos ` and `Pos`.",
        why: "Each spelling is a class with its own output. The examples of one class are then divided over several \
              classes, and a table does not show the blank.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 3)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let data = Dataset::from_rows([\"a game of chess\", \"a mail server\", \"a card game\"], \
              [\"game\", \"server\", \"Game \"])?;\n\
              fit!(model, data)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let labels = [\"game\", \"server\", \"Game \"].map(|label| label.trim().to_lowercase());\n\
               let data = Dataset::from_rows([\"a game of chess\", \"a mail server\", \"a card game\"], labels)?;\n\
               fit!(model, data)?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(self.sentence.clone())
            .label(
                Place::call(&self.call),
                "trains an output for each spelling",
            )
            .why("each spelling is a class: the examples of one class are divided over several")
            .evidence("data", self.source.clone())
            .evidence("classes", self.classes.to_string())
            .fix("make the labels equal in the file, or trim them and write them in lower case before the data set is made")
    }
}
