//! SC0405 `pair-without-segments`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Pairs that reach the model as one segment.
#[derive(Clone, Debug)]
pub struct PairWithoutSegments {
    /// How many rows.
    pub rows: usize,
    /// Rows in all.
    pub total: usize,
    /// Whether `[SEP]` was written into the text; else the tokenizer gives pairs one segment.
    pub written: bool,
    /// The first such row and its tokens.
    pub first: (usize, String),
    /// The data set, as its author named it.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl Rule for PairWithoutSegments {
    const PAGE: RulePage = RulePage {
        code: "SC0405",
        name: "pair-without-segments",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Two texts in one segment: `[SEP]` written into a text, or a tokenizer that numbers both texts of a \
                pair 0.",
        why: "BERT was trained with the second text in segment 1. In one segment the model must guess where the second \
              text begins, and a pair as MRPC's learns worse.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let texts = [\"a chess game [SEP] a game of chess\", \"a mail server [SEP] a platform game\"];\n\
              fit!(model, Dataset::from_rows(texts, [\"same\", \"other\"])?)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let pairs = [(\"a chess game\", \"a game of chess\"), (\"a mail server\", \"a platform game\")];\n\
               fit!(model, Dataset::from_pair_rows(pairs, [\"same\", \"other\"])?)?;",
        tensorflow: tensorflow::page("SC0405"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let (row, tokens) = &self.first;
        let told = Self::start("two [SEP] but one segment")
            .label(Place::call(&self.call), "tokenized here")
            .why("the second text of a pair belongs to segment 1; here all tokens are in segment 0")
            .evidence("data", self.source.clone())
            .evidence(
                "rows",
                format!(
                    "{} of {}",
                    text::thousands(self.rows),
                    text::thousands(self.total)
                ),
            )
            .evidence(format!("row {row}"), text::excerpt(tokens, 110));
        let told = match self.written {
            true => told.fix(
                "give the two texts apart: `Dataset::from_pair_rows(pairs, labels)?`, or a file with two columns",
            ),
            false => told.fix("load the checkpoint's own tokenizer: BERT's numbers the second text 1"),
        };
        told.tensorflow(Quote::of("SC0405")).answers(answer)
    }
}

/// keras-semantics, catalogue row 32.
fn answer(profile: Profile) -> Answer {
    Answer::does(profile, "trains without a message")
}
