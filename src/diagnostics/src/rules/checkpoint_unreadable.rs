//! SC0902 `checkpoint-unreadable`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A file of a checkpoint that is missing, truncated or not what its name says.
#[derive(Clone, Debug)]
pub struct CheckpointUnreadable {
    /// The file.
    pub path: String,
    /// What is wrong with it: `the header announces 90 868 376 bytes, the file has 1 048 576`.
    pub reason: String,
}

impl Rule for CheckpointUnreadable {
    const PAGE: RulePage = RulePage {
        code: "SC0902",
        name: "checkpoint-unreadable",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A checkpoint file that is missing, truncated or damaged.",
        why: "With half of a checkpoint, half of the weights would be random.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"./half-downloaded\", 8)?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;",
        tensorflow: tensorflow::page("SC0902"),
    };

    const GIVEN: &'static [&'static str] = &["model.save_pretrained(\"half-downloaded\")?;\n\
         std::fs::write(\"half-downloaded/model.safetensors\", [16, 0, 0, 0, 0, 0, 0, 0, 123])?;"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("`{}` cannot be read: {}", self.path, self.reason))
            .label(Place::file(&self.path, None), "unreadable")
            .why("no model was created, and no weight was changed")
            .fix("download the checkpoint again; an interrupted download leaves such a file")
    }
}
