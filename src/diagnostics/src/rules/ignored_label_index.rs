//! SC0312 `ignored-label-index`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Labels that the loss leaves out, as −100 in other libraries, which do not exist here.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredLabelIndex;

impl Rule for IgnoredLabelIndex {
    const PAGE: RulePage = RulePage {
        code: "SC0312",
        name: "ignored-label-index",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A convention of other libraries: the label −100 excludes an example from the loss. Here a \
                dataset has a label for every example or for none, and every label counts.",
        why: "In other libraries, a batch with only ignored labels divides 0 by 0, and the loss is NaN. Here \
              rows without a label are removed from the data.",
        bad: "let data = Dataset::jsonl(\"with-100.jsonl\")?; // a label of −100 is a class of its own, named `-100`",
        good: "let data = Dataset::jsonl(\"with-100.jsonl\")?.filter(|example| example.class() != Some(0));",
        tensorflow: tensorflow::page("SC0312"),
    };

    const GIVEN: &'static [&'static str] = &["std::fs::write(\"with-100.jsonl\", concat!(\n    \
             r#\"{\"text\": \"chess\", \"label\": -100}\"#, \"\\n\",\n    \
             r#\"{\"text\": \"a mail server\", \"label\": 1}\"#, \"\\n\"))?;"];

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every label counts: no label is ignored by the loss")
            .why("a dataset has a label for every example, or for none")
            .fix("remove rows without a label: `data.filter(|example| …)`")
    }
}
