//! SC0434 `false-negatives`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Examples whose texts are compared with those of the other examples of a batch, and that share a text.
#[derive(Clone, Debug)]
pub struct FalseNegatives {
    /// The examples that have a text of another example.
    pub rows: usize,
    /// All examples.
    pub total: usize,
    /// The first such text, and the two rows that have it.
    pub first: (String, [usize; 2]),
    /// The loss: `MultipleNegativesRanking`.
    pub loss: String,
    /// Where the data comes from.
    pub source: String,
    /// The call: `fit`.
    pub call: String,
}

impl Rule for FalseNegatives {
    const PAGE: RulePage = RulePage {
        code: "SC0434",
        name: "false-negatives",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Pairs that share a text, for a loss that takes the other pairs of a batch as negatives.",
        why: "If two such pairs are in one batch, the loss pushes texts apart that belong together: each of them is a false negative of the other.",
        bad: "let pairs = Dataset::from_pairs([\n    \
                  (\"send e-mail\", \"a server for mail\"),\n    \
                  (\"read e-mail\", \"a server for mail\"),\n    \
                  (\"play chess\", \"a game of chess\"),\n\
              ]);\n\
              let encoder = BertForSentenceEmbedding::from_pretrained(\"all-MiniLM-L6-v2\")?;\n\
              compile!(encoder, optimizer = AdamW::new(2e-5), loss = MultipleNegativesRanking { scale: 20.0 })?;\n\
              fit!(encoder, pairs, batch_size = 3)?;",
        good: "let pairs = Dataset::from_pairs([\n    \
                   (\"send e-mail\", \"a server for mail\"),\n    \
                   (\"show photos\", \"a viewer for pictures\"),\n    \
                   (\"play chess\", \"a game of chess\"),\n\
               ]);\n\
               let encoder = BertForSentenceEmbedding::from_pretrained(\"all-MiniLM-L6-v2\")?;\n\
               compile!(encoder, optimizer = AdamW::new(2e-5), loss = MultipleNegativesRanking { scale: 20.0 })?;\n\
               fit!(encoder, pairs, batch_size = 3)?;",
        tensorflow: tensorflow::page("SC0434"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let (text, [first, second]) = &self.first;
        Self::start(format!(
            "{} of {} share a text with another one, and can be its negative",
            text::count(self.rows, "example"),
            text::thousands(self.total)
        ))
        .label(
            Place::call(&self.call),
            format!("the texts of `{}`", self.source),
        )
        .why(format!(
            "`{}` takes the texts of the other examples of a batch as negatives, so that it pushes apart what belongs together",
            self.loss
        ))
        .evidence(
            "first text",
            format!("`{}`, in rows {first} and {second}", text::excerpt(text, 60)),
        )
        .fix("keep one example for each text, or put the examples of one text into different batches (`shuffle = false` keeps your order)")
    }
}
