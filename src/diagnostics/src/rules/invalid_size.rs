//! SC0915 `invalid-size`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A number that a function cannot take: a size of 0, a negative one, a share above 1.
#[derive(Clone, Debug)]
pub struct InvalidSize {
    /// What it is: `num_labels`, `batch size`, `replicas`.
    pub what: String,
    /// The value that was given.
    pub given: String,
    /// What it must be: `at least 1`.
    pub expects: String,
    /// Where, if the caller knows.
    pub place: Option<Place>,
}

impl InvalidSize {
    /// A name of the code is quoted, words are not: `` `bins` ``, `the number of devices`.
    fn subject(&self) -> String {
        let what = self.what.as_str();
        let is_code = !what.contains(' ') || what.contains(['(', '[', '`']);
        let has_article = ["the ", "a ", "an "].iter().any(|it| what.starts_with(it));
        match (is_code, has_article) {
            (true, _) if what.contains('`') => what.to_owned(),
            (true, _) => format!("`{what}`"),
            (false, true) => what.to_owned(),
            (false, false) => format!("the {what}"),
        }
    }
}

impl Rule for InvalidSize {
    const PAGE: RulePage = RulePage {
        code: "SC0915",
        name: "invalid-size",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A size, count or share outside its range, known only when the cell runs.",
        why: "A batch of 0 rows or a head of 0 classes has no meaning; rounding up would hide a mistake.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 0)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0915"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "{} is {}, but must be {}",
            self.subject(),
            self.given,
            self.expects
        ));
        let diagnostic = match &self.place {
            Some(place) => diagnostic.label(place.clone(), format!("must be {}", self.expects)),
            None => diagnostic,
        };
        diagnostic.fix(format!(
            "change {}: it must be {}",
            self.subject(),
            self.expects
        ))
    }
}
