//! SC0910 `tokenizer-unusable`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Tokenizer files that give no tokenizer of word pieces.
#[derive(Clone, Debug)]
pub struct TokenizerUnusable {
    /// The file.
    pub path: String,
    /// What is wrong with it: `its vocabulary has no <pad>`.
    pub reason: String,
}

impl Rule for TokenizerUnusable {
    const PAGE: RulePage = RulePage {
        code: "SC0910",
        name: "tokenizer-unusable",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A checkpoint whose `tokenizer.json` or `vocab.txt` is damaged, or describes another kind of \
                tokenizer than WordPiece, BPE and Unigram.",
        why: "With another tokenizer than in pretraining, the token ids have no meaning for the model.",
        bad: "let tokenizer = BertTokenizer::from_pretrained(\"./word-list\")?;",
        good: "let tokenizer = BertTokenizer::from_pretrained(\"all-MiniLM-L6-v2\")?;",
        tensorflow: tensorflow::page("SC0910"),
    };

    const GIVEN: &'static [&'static str] = &["model.save_pretrained(\"word-list\")?;\n\
         let words = r#\"{\"version\": \"1.0\", \"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}}\"#;\n\
         std::fs::write(\"word-list/tokenizer.json\", words)?;"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` is not a usable tokenizer: {}",
            self.path, self.reason
        ))
        .label(Place::file(&self.path, None), "not a usable tokenizer")
        .why("with another tokenizer than in pretraining, the token ids have no meaning for the model")
        .fix("download `tokenizer.json` or `vocab.txt` of the same checkpoint")
    }
}
