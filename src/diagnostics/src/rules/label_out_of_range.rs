//! SC0301 `label-out-of-range`.

use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage, words};

/// A class label that the head has no output for.
#[derive(Clone, Debug)]
pub struct LabelOutOfRange {
    /// The first such label.
    pub label: i64,
    /// Its row in the data set, counted from 0.
    pub row: usize,
    /// How many rows have such a label.
    pub rows: usize,
    /// The largest label: as many outputs and one more take them all.
    pub largest: i64,
    /// Outputs of the head.
    pub num_labels: usize,
    /// The data set, as its author named it: a path, usually.
    pub source: String,
    /// The row's text.
    pub text: Option<String>,
    /// Name of the call without `!` that looked at the data: `fit`, `evaluate`.
    pub call: String,
}

impl Rule for LabelOutOfRange {
    const PAGE: RulePage = RulePage {
        code: "SC0301",
        name: "label-out-of-range",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A class label below 0, or not below the number of outputs of the head. Every label is \
                looked at before the first step.",
        why: "The loss picks the logit of the label; there is none. On a GPU that may be a NaN instead of \
              an error. Typical causes: labels counted from 1, a test split whose labels are −1, and a head \
              made for fewer classes.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?; // the data has 8 classes\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, train)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, train)?;",
        tensorflow: "On the CPU, at the first bad batch: \"Received a label value of 2 which is outside the \
                     valid range of [0, 2).\" On a GPU: NaN, no error.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            label,
            row,
            num_labels,
            ..
        } = self;
        let mut told = Self::start(format!(
            "label {label} at row {row} with num_labels = {num_labels}"
        ))
        .label(
            Place::call(&self.call),
            format!("labels must be 0 to {}", num_labels.saturating_sub(1)),
        )
        .why("the loss picks the logit of the label, and the head has none for this one")
        .evidence("data", self.source.clone())
        .evidence("rows with such a label", words::thousands(self.rows));
        if let Some(text) = &self.text {
            told = told.evidence(format!("row {row}"), words::excerpt(text, 80));
        }
        told = match usize::try_from(self.largest) {
            Ok(largest) => told.fix(format!(
                "build the model with `num_labels = {}`",
                largest + 1
            )),
            Err(_) => {
                told.fix("drop the rows without a label: a negative one often marks a test split")
            }
        };
        told.fix("or map the labels so that they count from 0")
            .tensorflow("fails at the first bad batch on the CPU; on a GPU the loss is NaN, no error")
            .answers(|profile| {
                let does = "fails at the first bad batch on the CPU; on a GPU the loss is NaN, no error";
                // Graph mode prints a space in front until 2.6; two spaces stand before the values.
                let space = match profile {
                    Profile::Tf23 | Profile::Tf24 => " ",
                    Profile::TfKeras218 | Profile::Keras3 => "",
                };
                let says = format!(
                    "InvalidArgumentError: {space}Received a label value of {label} which is outside the \
                     valid range of [0, {num_labels}).  Label values: …"
                );
                Answer::says(profile, does, says)
            })
    }
}
