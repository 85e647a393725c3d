//! SC0406 `automatic-padding`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Rows of different lengths in one batch, which are padded here.
#[derive(Clone, Copy, Debug)]
pub struct AutomaticPadding;

impl Rule for AutomaticPadding {
    const PAGE: RulePage = RulePage {
        code: "SC0406",
        name: "automatic-padding",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in TensorFlow only: a tensor made of texts with different numbers of \
                tokens. Here every batch is padded to its longest row.",
        why: "A tensor is rectangular. In TensorFlow padding must be requested, and NumPy makes an array of \
              objects without a message.",
        bad: "// tokenizer(texts), without padding, then tf.constant(…)\nlet data = \
              Dataset::from_texts([\"chess\", \"a mail server\"]);",
        good: "let data = Dataset::from_texts([\"chess\", \"a mail server\"]);\nmodel.predict(data)?;",
        tensorflow: tensorflow::page("SC0406"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");
    const TOLERATES: &'static [&'static str] = &["SC0510"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every batch is padded to its longest row")
            .why("a tensor is rectangular; padding is added when a batch is made, and masked")
            .fix("pass texts of any length")
    }
}
