//! SC0903 `architecture-mismatch`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A checkpoint of another architecture than the class that was to load it.
#[derive(Clone, Debug)]
pub struct ArchitectureMismatch {
    /// The checkpoint's `config.json`.
    pub path: String,
    /// The field that differs: `model_type`, `hidden_act`, `position_embedding_type`.
    pub field: String,
    /// What it says.
    pub found: String,
    /// What can be loaded.
    pub accepted: Vec<String>,
}

impl Rule for ArchitectureMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0903",
        name: "architecture-mismatch",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A checkpoint whose `config.json` describes another architecture than BERT, DistilBERT, RoBERTa, \
                ELECTRA, ModernBERT, MPNet, DeBERTa and ALBERT, or a variant that is not supported.",
        why: "Tensors with the same name and shape can have another meaning: the model would load and compute \
              wrong results.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"./longformer\", 8)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0903"),
    };

    const GIVEN: &'static [&'static str] = &["model.save_pretrained(\"longformer\")?;\n\
         let config = std::fs::read_to_string(\"longformer/config.json\")?;\n\
         std::fs::write(\"longformer/config.json\", config.replace(\"\\\"bert\\\"\", \"\\\"longformer\\\"\"))?;"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the checkpoint has another architecture: `{}` is `{}`, accepted: {}",
            self.field,
            self.found,
            text::names(&self.accepted, 12)
        ))
        .label(Place::file(&self.path, None), format!("`{}`", self.field))
        .why("tensors with the same name can have another meaning in another architecture")
        .fix("load a BERT checkpoint, such as \"all-MiniLM-L6-v2\" or \"bert-base-uncased\", or one of \
              DistilBERT, RoBERTa, ELECTRA, ModernBERT, MPNet, DeBERTa or ALBERT")
        .tensorflow(Quote::of("SC0903"))
    }
}
