//! SC0410 `padding-waste`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Batches that are mostly padding.
#[derive(Clone, Debug)]
pub struct PaddingWaste {
    /// Positions that an epoch computes.
    pub positions: usize,
    /// Positions that hold a token.
    pub tokens: usize,
    /// Tokens of the middle row.
    pub median: usize,
    /// Tokens of the longest row, after truncation.
    pub longest: usize,
    /// A length that 95 of 100 rows keep within.
    pub most: usize,
    /// Positions of an epoch with `group_by_length`; `None` where batches are made so already, or cannot be.
    pub grouped: Option<usize>,
    /// Name of the call without `!`.
    pub call: String,
}

impl PaddingWaste {
    /// Positions per token from which batches are mostly padding.
    const WASTE: usize = 3;

    /// The positions with `group_by_length`, if that saves a fifth of them.
    fn saved(&self) -> Option<usize> {
        self.grouped
            .filter(|grouped| 5 * grouped <= 4 * self.positions)
    }

    fn times(&self, positions: usize) -> f64 {
        positions as f64 / self.tokens.max(1) as f64
    }
}

impl Rule for PaddingWaste {
    const PAGE: RulePage = RulePage {
        code: "SC0410",
        name: "padding-waste",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "Batches with tokens in a third or less of their positions. Each batch is padded to its \
                longest row, so this happens when a few rows are much longer than the others.",
        why: "The results are the same, because padding is masked, but every position costs as much time as a token. \
              If there are enough rows, the note shows how many positions remain with `group_by_length = true`, \
              which puts rows of similar length into a batch.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let mut texts = vec![\"chess\".to_owned(); 32];\n\
              texts[0] = \"a game of chess \".repeat(20);\n\
              let data = Dataset::from_rows(texts, (0..32).map(|row| [\"game\", \"server\"][row % 2]))?;\n\
              fit!(model, data, max_length = 64)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let texts = vec![\"chess\".to_owned(); 32];\n\
               let data = Dataset::from_rows(texts, (0..32).map(|row| [\"game\", \"server\"][row % 2]))?;\n\
               fit!(model, data, max_length = 64)?;",
        tensorflow: tensorflow::page("SC0410"),
    };

    fn applies(&self) -> bool {
        self.tokens > 0 && self.positions >= Self::WASTE * self.tokens
    }

    fn diagnostic(&self) -> Diagnostic {
        let times = self.times(self.positions);
        let start = Self::start(format!("{times:.1}× more positions than tokens: batches are mostly padding"))
            .label(Place::call(&self.call), "batches are padded to their longest row")
            .why("padding is masked, so the results are correct; each padded position costs as much time as a token")
            .evidence(
                "positions of an epoch",
                format!("{} for {} tokens", text::thousands(self.positions), text::thousands(self.tokens)),
            )
            .evidence(
                "tokens of a row",
                format!("median {}, 95 % within {}, longest {}", self.median, self.most, self.longest),
            );
        let start = match self.saved() {
            Some(grouped) => start.fix(format!(
                "`group_by_length = true` puts rows of similar length into a batch: {:.1}× more positions than tokens",
                self.times(grouped)
            )),
            None => start,
        };
        start
            .fix(format!(
                "a `max_length` of {} leaves 95 % of the rows complete",
                self.most
            ))
            .fix("or use smaller batches, in which fewer rows are padded to a long one")
            .tensorflow(Quote::of("SC0410"))
    }
}
