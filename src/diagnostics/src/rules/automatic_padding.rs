//! SC0406 `batches-are-padded`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Rows of different lengths in one batch, which are padded here.
#[derive(Clone, Copy, Debug)]
pub struct BatchesArePadded;

impl Rule for BatchesArePadded {
    const PAGE: RulePage = RulePage {
        code: "SC0406",
        name: "batches-are-padded",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The error of making a tensor of texts with different numbers of tokens. Here every batch is \
                padded to its own longest row.",
        why: "A tensor is rectangular. Elsewhere padding has to be asked for, and NumPy makes arrays of objects \
              without a message.",
        bad: "// tokenizer(texts), without padding, then tf.constant(…)\nlet data = \
              Dataset::from_texts([\"chess\", \"a mail server\"]);",
        good: "let data = Dataset::from_texts([\"chess\", \"a mail server\"]);\nmodel.predict(data)?;",
        tensorflow: tensorflow::page("SC0406"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every batch is padded to its own longest row")
            .why("a tensor is rectangular; padding is added when a batch is made, and masked")
            .fix("give texts of any length")
    }
}
