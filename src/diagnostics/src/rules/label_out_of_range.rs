//! SC0301 `label-out-of-range`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A class label that the head has no output for.
#[derive(Clone, Debug)]
pub struct LabelOutOfRange {
    /// The first such label.
    pub label: i64,
    /// Its row in the dataset, counted from 0.
    pub row: usize,
    /// How many rows have such a label.
    pub rows: usize,
    /// The largest label: as many outputs and one more take them all.
    pub largest: i64,
    /// The smallest label, where all were looked at.
    pub smallest: Option<i64>,
    /// Classes that there are: the outputs of the head, or 2 for one output under a binary loss.
    pub classes: usize,
    /// Where the outputs of the head are written; `None` where no head is known yet.
    pub head: Option<HeadWritten>,
    /// The dataset, as its author named it: a path, usually.
    pub source: String,
    /// The row's text.
    pub text: Option<String>,
    /// Name of the call without `!` that looked at the data: `fit`, `evaluate`.
    pub call: String,
}

/// Where the number of a head's outputs was written.
#[derive(Clone, Debug, Default)]
pub struct HeadWritten {
    /// The call that has it: `Dense`, `from_pretrained`; `None` for a custom network.
    pub call: Option<&'static str>,
    /// `In[3], line 2`, where the model was made by another cell.
    pub elsewhere: Option<String>,
    /// The line of the statement, where the present cell made the model.
    pub line: Option<usize>,
    /// Whether it has one output, which decides between two classes.
    pub is_binary: bool,
}

impl HeadWritten {
    /// The call with this many outputs, as code.
    fn with(&self, outputs: usize) -> String {
        match self.call {
            Some("Dense") => format!("Dense({outputs})"),
            Some(call) => format!("{call}(\"…\", {outputs})"),
            None => format!("Outputs::new(\"…\", {outputs})"),
        }
    }

    /// Adds what to write so that the head has `wanted` outputs instead of `now`.
    fn fix(&self, diagnostic: Diagnostic, now: usize, wanted: usize) -> Diagnostic {
        let now = if self.is_binary { 1 } else { now };
        let place = match &self.elsewhere {
            Some(place) => format!(" in {place}"),
            None => String::new(),
        };
        let also = match self.is_binary {
            true => ", and `loss = SparseCategoricalCrossentropy { from_logits: true }`",
            false => "",
        };
        let title = format!("write `{}`{place}{also}", self.with(wanted));
        match (self.call, self.line) {
            (Some(call), Some(line)) if !self.is_binary => {
                let place = Place::Operand {
                    call: call.to_owned(),
                    index: usize::from(call != "Dense"),
                    value: now,
                    line,
                };
                diagnostic.fix_edit(title, place, wanted.to_string())
            }
            _ => diagnostic.fix(title),
        }
    }
}

impl LabelOutOfRange {
    /// Whether the labels would fit if they did not count from 1.
    fn counts_from_one(&self) -> bool {
        self.smallest == Some(1) && usize::try_from(self.largest) == Ok(self.classes)
    }

    fn message(&self) -> String {
        let Self {
            label,
            row,
            classes,
            ..
        } = self;
        if *label < 0 {
            return format!("label {label} at row {row}: classes are counted from 0");
        }
        match &self.head {
            Some(head) if head.is_binary => {
                format!("label {label} at row {row}: one output decides between the labels 0 and 1")
            }
            _ => format!("label {label} at row {row}: the head has {classes} outputs"),
        }
    }
}

impl Rule for LabelOutOfRange {
    const PAGE: RulePage = RulePage {
        code: "SC0301",
        name: "label-out-of-range",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A class label that is negative or not below the number of outputs of the head. Every label is \
                checked before the first step.",
        why: "The loss selects the logit of the label, but the head has no such logit. On a GPU this may give NaN \
              instead of an error. Typical causes: labels counted from 1, a test split with labels of −1, and a head \
              with too few outputs.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?; // the data has 8 classes\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, train)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, train)?;",
        tensorflow: tensorflow::page("SC0301"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self { label, classes, .. } = self;
        let mut diagnostic = Self::start(self.message())
            .label(
                Place::call(&self.call),
                format!("labels must be 0 to {}", classes.saturating_sub(1)),
            )
            .why("the loss selects the output of the label, and the head has none for this one")
            .evidence("data", self.source.clone())
            .evidence("rows with such a label", text::thousands(self.rows));
        if let Some(text) = self.text.as_ref().filter(|text| !text.is_empty()) {
            diagnostic = diagnostic.evidence(format!("row {}", self.row), text::excerpt(text, 80));
        }
        if self.counts_from_one() {
            diagnostic = diagnostic
                .why(format!(
                    "no label is 0: they count from 1 to {}, and classes count from 0",
                    self.largest
                ))
                .fix("subtract 1 from each label: `y.iter().map(|label| label - 1)`");
        }
        diagnostic = match (usize::try_from(self.largest), &self.head) {
            (Ok(largest), Some(head)) => head.fix(diagnostic, *classes, largest + 1),
            _ => diagnostic
                .fix("remove the rows without a label: a negative label often marks a test split"),
        };
        if !self.counts_from_one() {
            diagnostic = diagnostic.fix("or map the labels so that they count from 0");
        }
        diagnostic
            .tensorflow(Quote::of("SC0301"))
            .with_answers(|profile| {
                let does = "fails at the first bad batch on the CPU; on a GPU the loss is NaN, no error";
                // Graph mode prints a space in front until 2.6; two spaces stand before the values.
                let space = match profile {
                    Profile::Tf23 | Profile::Tf24 => " ",
                    Profile::TfKeras218 | Profile::Keras3 => "",
                };
                let says = format!(
                    "InvalidArgumentError: {space}Received a label value of {label} which is outside the \
                     valid range of [0, {classes}).  Label values: …"
                );
                Answer::says(profile, does, says)
            })
    }
}
