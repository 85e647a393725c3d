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
    /// The dataset's name: its file or variable.
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
        finds: "Two texts in one segment: `[SEP]` written into a text, or a tokenizer that assigns segment 0 to \
                both texts of a pair.",
        why: "BERT was pretrained with the second text in segment 1. With a single segment the model does not \
              see where the second text begins, and sentence-pair tasks such as MRPC score worse.",
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
        let diagnostic = Self::start("two [SEP] but one segment")
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
        let diagnostic = match self.written {
            true => diagnostic.fix(
                "pass the two texts separately: `Dataset::from_pair_rows(pairs, labels)?`, or a file with two columns",
            ),
            false => diagnostic.fix("load the checkpoint's own tokenizer: BERT's assigns segment 1 to the second text"),
        };
        diagnostic
            .tensorflow(Quote::of("SC0405"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md, catalogue row 32.
fn answer(profile: Profile) -> Answer {
    Answer::does(profile, "trains without a message")
}
