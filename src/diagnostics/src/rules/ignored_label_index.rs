//! SC0312 `no-ignored-labels`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Labels that the loss leaves out, as −100 in other libraries, which do not exist here.
#[derive(Clone, Copy, Debug)]
pub struct NoIgnoredLabels;

impl Rule for NoIgnoredLabels {
    const PAGE: RulePage = RulePage {
        code: "SC0312",
        name: "no-ignored-labels",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The habit of marking labels with −100 so that the loss leaves them out. A data set here has a \
                label for every example or for none, and each counts.",
        why: "A batch whose labels are all left out divides 0 by 0: elsewhere the loss is then NaN. Here a row \
              without a label is not in the data.",
        bad: "let data = Dataset::jsonl(\"with-100.jsonl\")?; // a label of −100 is a class of its own, named `-100`",
        good: "let data = Dataset::jsonl(\"with-100.jsonl\")?.filter(|example| example.class() != Some(0));",
        tensorflow: tensorflow::page("SC0312"),
    };

    const GIVEN: &'static [&'static str] = &["std::fs::write(\"with-100.jsonl\", concat!(\n    \
             r#\"{\"text\": \"chess\", \"label\": -100}\"#, \"\\n\",\n    \
             r#\"{\"text\": \"a mail server\", \"label\": 1}\"#, \"\\n\"))?;"];

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every label counts: none is left out of the loss")
            .why("a data set has a label for every example, or for none")
            .fix("drop rows without a label: `data.filter(|example| …)`")
    }
}
