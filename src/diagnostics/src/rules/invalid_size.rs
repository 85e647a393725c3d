//! SC0915 `bad-size`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A number that a function cannot take: a size of 0, a negative one, a share above 1.
#[derive(Clone, Debug)]
pub struct BadSize {
    /// What it is: `num_labels`, `batch size`, `replicas`.
    pub what: String,
    /// The value that was given.
    pub given: String,
    /// What it must be: `at least 1`.
    pub expects: String,
    /// Where, if the caller knows.
    pub place: Option<Place>,
}

impl Rule for BadSize {
    const PAGE: RulePage = RulePage {
        code: "SC0915",
        name: "bad-size",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A size, count or share outside its range, known only when the cell runs.",
        why: "A batch of 0 rows or a head of 0 classes has no meaning; rounding it up would hide a slip.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 0)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0915"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!(
            "`{}` is {}, it must be {}",
            self.what, self.given, self.expects
        ));
        let told = match &self.place {
            Some(place) => told.label(place.clone(), format!("must be {}", self.expects)),
            None => told,
        };
        told.fix(format!(
            "give `{}` a value that is {}",
            self.what, self.expects
        ))
    }
}
