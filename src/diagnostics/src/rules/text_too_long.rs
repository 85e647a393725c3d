//! SC0401 `text-too-long`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A `max_length` of more tokens than the model has positions.
#[derive(Clone, Debug)]
pub struct TextTooLong {
    /// The `max_length` that was asked for, in tokens.
    pub max_length: usize,
    /// Positions the model has.
    pub limit: usize,
    /// The name of the call without `!`: `fit`.
    pub call: String,
}

impl Rule for TextTooLong {
    const PAGE: RulePage = RulePage {
        code: "SC0401",
        name: "text-too-long",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `max_length` above the number of the model's positions (512 for BERT, 8192 for ModernBERT). Longer texts \
                are always truncated to `max_length` (SC0407).",
        why: "A BERT has no embedding for such a position, and a ModernBERT was not trained with it. On a GPU TensorFlow reads \
              zeros instead of failing.",
        bad: "fit!(model, train, max_length = 1024)?;",
        good: "fit!(model, train, max_length = 64)?;",
        tensorflow: tensorflow::page("SC0401"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            max_length, limit, ..
        } = self;
        Self::start(format!(
            "`max_length = {max_length}`, but the model has positions for {limit} tokens"
        ))
        .label(
            Place::argument(&self.call, "max_length"),
            format!("at most {limit}"),
        )
        .why("a BERT has no embedding for a later position, and a ModernBERT was not trained with one")
        .fix(format!("truncate: `max_length = {limit}` or less"))
        .fix("or split the texts into windows")
        .tensorflow(Quote::with("SC0401", "", &[("limit", limit.to_string())]))
    }
}
