//! SC0401 `text-too-long`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Texts, or a `max_length`, that have more tokens than the model has positions.
#[derive(Clone, Debug)]
pub struct TextTooLong {
    /// How many texts are too long; 0 when `max_length` itself is.
    pub texts: usize,
    /// Tokens of the longest one, or the `max_length` that was asked for.
    pub longest: usize,
    /// Positions the model has.
    pub limit: usize,
    /// Some of the rows, counted from 0.
    pub rows: Vec<usize>,
    /// The name of the call without `!`: `fit`.
    pub call: String,
}

impl Rule for TextTooLong {
    const PAGE: RulePage = RulePage {
        code: "SC0401",
        name: "text-too-long",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "More tokens than the model has position embeddings (512 for BERT), because `max_length` is \
                larger than that or nothing truncates.",
        why: "There is no embedding for the position. On a GPU TensorFlow reads zeros instead of failing.",
        bad: "fit!(model, train, max_length = 1024)?;",
        good: "fit!(model, train, max_length = 64)?;",
        tensorflow: tensorflow::page("SC0401"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            texts,
            longest,
            limit,
            ..
        } = self;
        let told = if *texts == 0 {
            Self::start(format!(
                "`max_length = {longest}`, and the model has positions for {limit} tokens"
            ))
            .label(
                Place::argument(&self.call, "max_length"),
                format!("at most {limit}"),
            )
        } else {
            let verb = if *texts == 1 { "exceeds" } else { "exceed" };
            Self::start(format!(
                "{} {verb} {limit} tokens (longest {longest})",
                text::count(*texts, "text")
            ))
            .label(Place::call(&self.call), format!("at most {limit} tokens"))
        };
        let told = if self.rows.is_empty() {
            told
        } else {
            let rows: Vec<String> = self.rows.iter().take(8).map(usize::to_string).collect();
            told.evidence("rows", rows.join(", "))
        };
        told.why("there is an embedding per position, and none for the ones beyond")
            .fix(format!("truncate: `max_length = {limit}` or less"))
            .fix("or split the texts into windows")
            .tensorflow(Quote::with("SC0401", "", &[("limit", limit.to_string())]))
    }
}
