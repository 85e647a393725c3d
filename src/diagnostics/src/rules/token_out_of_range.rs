//! SC0402 `token-out-of-range`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A token id for which the model has no vector.
#[derive(Clone, Debug)]
pub struct TokenOutOfRange {
    /// The id.
    pub id: u32,
    /// The token's text, if the tokenizer knows it.
    pub token: Option<String>,
    /// Vectors the model has.
    pub vocabulary: usize,
    /// The row of the dataset, counted from 0.
    pub row: usize,
    /// Name of the call without `!`: `fit`.
    pub call: String,
}

impl Rule for TokenOutOfRange {
    const PAGE: RulePage = RulePage {
        code: "SC0402",
        name: "token-out-of-range",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A token id that is not below the number of word embeddings of the model.",
        why: "The tokenizer belongs to another checkpoint. Ids that are in range are wrong as well.",
        bad: "// a tokenizer with more entries than the model has word embeddings\nmodel.set_tokenizer(BertTokenizer::from_folder(&folder)?)?;\nfit!(model, train)?;",
        good: "// the tokenizer of the model's own checkpoint\nmodel.set_tokenizer(BertTokenizer::from_pretrained(\"all-MiniLM-L6-v2\")?)?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0402"),
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nlet train = train.take(16);",
        "// A tokenizer whose id of the word `for` is 30600. The model has 30522 word embeddings.\nlet folder = std::env::temp_dir().join(\"another-tokenizer\");\nmodel.save_pretrained(&folder)?;\n{\n    let file = folder.join(\"tokenizer.json\");\n    let text = std::fs::read_to_string(&file)?;\n    let (before, after) = text.split_once(\"\\\"for\\\":\").ok_or(\"the word is not in the vocabulary\")?;\n    let after = after.trim_start_matches(|sign: char| sign == ' ' || sign.is_ascii_digit());\n    std::fs::write(&file, format!(\"{before}\\\"for\\\":30600{after}\"))?;\n}",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "token id {}, but the model has {} word embeddings",
            text::thousands(self.id as usize),
            text::thousands(self.vocabulary)
        ))
        .label(Place::call(&self.call), "a token without an embedding")
        .why("the tokenizer has more entries than the model has word embeddings: it belongs to another checkpoint")
        .evidence("row", self.row.to_string());
        let diagnostic = match &self.token {
            Some(token) => diagnostic.evidence("token", format!("`{token}`")),
            None => diagnostic,
        };
        diagnostic
            .fix("load the tokenizer of the same checkpoint as the model")
            .tensorflow(Quote::of("SC0402"))
    }
}
