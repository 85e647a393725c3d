//! SC0908 `write-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A file or folder that cannot be written.
#[derive(Clone, Debug)]
pub struct WriteFailed {
    /// The path.
    pub path: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for WriteFailed {
    const PAGE: RulePage = RulePage {
        code: "SC0908",
        name: "write-failed",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A model that cannot be saved to the given folder.",
        why: "If a failed save went unnoticed, the training run would be lost.",
        bad: "model.save_pretrained(\"/proc/model\")?;",
        good: "model.save_pretrained(std::env::temp_dir().join(\"model\"))?;",
        tensorflow: tensorflow::page("SC0908"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` cannot be written: {}",
            self.path, self.reason
        ))
        .label(Place::file(&self.path, None), "not written")
        .fix("choose a writable folder with enough free space")
    }
}
