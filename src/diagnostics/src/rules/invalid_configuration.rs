//! SC0909 `invalid-configuration`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A field of a checkpoint's `config.json` with a value that makes no network.
#[derive(Clone, Debug)]
pub struct InvalidConfiguration {
    /// The file.
    pub path: String,
    /// The field: `hidden_size`.
    pub field: String,
    /// Its value.
    pub found: String,
    /// What it must be: `a multiple of num_attention_heads`.
    pub expects: String,
}

impl Rule for InvalidConfiguration {
    const PAGE: RulePage = RulePage {
        code: "SC0909",
        name: "invalid-configuration",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A field of `config.json` with an invalid value: a size of 0, a hidden size that is not a \
                multiple of the number of heads, a padding id outside the vocabulary.",
        why: "The network would have another size than its weights, or fail far from the cause.",
        bad: "// config.json: \"num_attention_heads\" does not divide \"hidden_size\"\n\
              let model = BertForSequenceClassification::from_pretrained(\"./uneven-heads\", 8)?;",
        good: "// config.json: \"num_attention_heads\" divides \"hidden_size\"\n\
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0909"),
    };

    const GIVEN: &'static [&'static str] = &["model.save_pretrained(\"uneven-heads\")?;\n\
         let config = std::fs::read_to_string(\"uneven-heads/config.json\")?;\n\
         let config = config.replace(\"\\\"num_attention_heads\\\": \", \"\\\"num_attention_heads\\\": 1\");\n\
         std::fs::write(\"uneven-heads/config.json\", config)?;"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` is {} in `{}`, expected {}",
            self.field, self.found, self.path, self.expects
        ))
        .label(
            Place::file(&self.path, None),
            format!("expected {}", self.expects),
        )
        .fix(format!(
            "correct `{}` in the file, or download the file again",
            self.field
        ))
    }
}
