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
        finds: "A `max_length` above the number of the model's position embeddings (512 for BERT). Longer texts are \
                always truncated to `max_length` (SC0407).",
        why: "There is no embedding for such a position. On a GPU TensorFlow reads zeros instead of failing.",
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
        .why("there is one embedding per position, and none beyond the last one")
        .fix(format!("truncate: `max_length = {limit}` or less"))
        .fix("or split the texts into windows")
        .tensorflow(Quote::with("SC0401", "", &[("limit", limit.to_string())]))
    }
}
