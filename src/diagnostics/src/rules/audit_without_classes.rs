//! SC0722 `audit-without-classes`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Labels that cannot be audited, as they are no classes or all the same class.
#[derive(Clone, Debug)]
pub struct AuditWithoutClasses {
    /// The call: `audit`.
    pub call: String,
    /// Where the data comes from.
    pub source: String,
    /// What its labels are: `no label in row 0`, `one class, "games"`.
    pub labels: String,
}

impl Rule for AuditWithoutClasses {
    const PAGE: RulePage = RulePage {
        code: "SC0722",
        name: "audit-without-classes",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "An audit of labels, or a cross-validation, of data without a class for each example, or with one class only.",
        why: "A label is suspicious if a classifier that has not seen the example is sure of another class. That needs at \
              least two classes, and a class for each example.",
        bad: "let texts = Dataset::from_texts([\"a chess game\", \"a mail server\"]);\n\
              model.audit(&texts)?",
        good: "model.audit(&train)?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the labels of `{}` cannot be audited: {}",
            self.source, self.labels
        ))
        .label(
            Place::call(&self.call),
            "needs a class for each example, and two classes",
        )
        .why("a label is compared with the answer of a classifier that has not seen the example")
        .fix("near-duplicates need no labels: `near_duplicates(&[(\"train\", &data)])?`")
    }
}
