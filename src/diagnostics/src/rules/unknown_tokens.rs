//! SC0403 `unknown-tokens`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A large share of the words is not in the vocabulary.
#[derive(Clone, Debug)]
pub struct UnknownTokens {
    /// Tokens that stand for an unknown word.
    pub unknown: usize,
    /// Tokens in all, those of the model's own left out.
    pub tokens: usize,
    /// Rows with at least one.
    pub rows: usize,
    /// Rows in all.
    pub total: usize,
    /// The first few rows: number, text, tokens.
    pub first: Vec<(usize, String, String)>,
    /// Of the unknown words of the first rows, how many are known in lower case, and how many there are.
    pub in_lower_case: (usize, usize),
    /// The dataset's name: its file or variable.
    pub source: String,
    /// Name of the call without `!`.
    pub call: String,
}

impl UnknownTokens {
    /// The share of unknown tokens from which they are reported.
    const MANY: f64 = 0.05;
    /// Unknown tokens below which a share is chance: a rare word in a few texts.
    const A_FEW: usize = 3;

    /// Whether this number of unknown tokens is reported.
    pub fn are_many(unknown: usize, tokens: usize) -> bool {
        unknown >= Self::A_FEW && unknown as f64 / tokens.max(1) as f64 >= Self::MANY
    }
}

impl Rule for UnknownTokens {
    const PAGE: RulePage = RulePage {
        code: "SC0403",
        name: "unknown-tokens",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Data with 5 % or more `[UNK]` tokens.",
        why: "The model cannot distinguish unknown words. Usual causes: a tokenizer of another checkpoint, a \
              cased vocabulary for lower-cased text or the reverse, another script, or a file in the wrong \
              encoding.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, Dataset::from_rows([\"ጨዋታ ቼዝ\", \"የፖስታ አገልጋይ\"], [\"game\", \"server\"])?)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, Dataset::from_rows([\"a game of chess\", \"a mail server\"], [\"game\", \"server\"])?)?;",
        tensorflow: tensorflow::page("SC0403"),
    };

    fn applies(&self) -> bool {
        Self::are_many(self.unknown, self.tokens)
    }

    fn diagnostic(&self) -> Diagnostic {
        let percent = 100.0 * self.unknown as f64 / self.tokens.max(1) as f64;
        let count = text::thousands;
        let mut diagnostic = Self::start(format!(
            "{percent:.0} % [UNK]: the vocabulary does not have these words"
        ))
        .label(Place::call(&self.call), "tokenized here")
        .why("every unknown word becomes the same token, so the model cannot distinguish them")
        .evidence("data", self.source.clone())
        .evidence(
            "unknown",
            format!("{} of {} tokens", count(self.unknown), count(self.tokens)),
        )
        .evidence(
            "rows with one",
            format!("{} of {}", count(self.rows), count(self.total)),
        );
        for (row, text, tokens) in self.first.iter().take(3) {
            let text = text::excerpt(text, 60);
            let tokens = text::excerpt(tokens, 90);
            diagnostic = diagnostic.evidence(format!("row {row}"), format!("{text} → {tokens}"));
        }
        let (known, seen) = self.in_lower_case;
        if known * 2 > seen {
            diagnostic = diagnostic
                .evidence("known in lower case", format!("{known} of {seen} words"))
                .fix(
                    "the vocabulary is uncased and the tokenizer keeps capitals: load the checkpoint's own tokenizer, or \
                     `do_lower_case = true` in its `tokenizer_config.json`",
                );
        }
        diagnostic
            .fix("load the tokenizer of the same checkpoint as the weights")
            .fix("or use a checkpoint trained on this language, such as a multilingual one")
            .tensorflow(Quote::of("SC0403"))
    }
}
