//! SC0404 `padding-is-masked`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Padding without an attention mask, which cannot happen here.
#[derive(Clone, Copy, Debug)]
pub struct PaddingIsMasked;

impl Rule for PaddingIsMasked {
    const PAGE: RulePage = RulePage {
        code: "SC0404",
        name: "padding-is-masked",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in TensorFlow only: padding without an attention mask. Here batches \
                are made from texts, and each has its mask: 1 for a token, 0 for padding.",
        why: "Without a mask, padding takes part in the attention of every token: the output for a text then \
              depends on the other texts of its batch.",
        bad: "// ids padded by hand, and no attention_mask\nlet data = Dataset::from_texts([\"chess\", \"a long \
              text beside it\"]);",
        good: "let data = Dataset::from_texts([\"chess\", \"a long text beside it\"]);\nmodel.predict(data)?;",
        tensorflow: tensorflow::page("SC0404"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");
    const TOLERATES: &'static [&'static str] = &["SC0510"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start("padding is always masked")
            .why("batches are made from texts, and each has its own mask")
            .fix("pass texts, not token ids")
    }
}
