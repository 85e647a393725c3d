//! SC0905 `vocabulary-mismatch`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A tokenizer whose vocabulary is not of the size of the model's word embeddings.
#[derive(Clone, Debug)]
pub struct VocabularyMismatch {
    /// Entries of the tokenizer.
    pub tokenizer: usize,
    /// Word embeddings of the model.
    pub model: usize,
    /// The vocabulary file.
    pub path: String,
}

impl Rule for VocabularyMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0905",
        name: "vocabulary-mismatch",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A tokenizer with more entries than the model has word embeddings.",
        why: "Ids beyond the table have no embedding, and the ids within it belong to other words.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"./other-vocabulary\", 8)?; // the tokenizer of another checkpoint",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0905"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs the tokenizer of another checkpoint");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the vocabulary has {} entries, but the model has {} word embeddings",
            text::thousands(self.tokenizer),
            text::thousands(self.model)
        ))
        .label(
            Place::file(&self.path, None),
            "another checkpoint's vocabulary",
        )
        .why(
            "the id of a word is the row of its embedding: both must come from the same checkpoint",
        )
        .fix("put the checkpoint's own vocab.txt and tokenizer.json next to its weights")
    }
}
