//! SC0908 `cannot-write`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A file or folder that cannot be written.
#[derive(Clone, Debug)]
pub struct CannotWrite {
    /// The path.
    pub path: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for CannotWrite {
    const PAGE: RulePage = RulePage {
        code: "SC0908",
        name: "cannot-write",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A model that cannot be saved where it was to be saved.",
        why: "A checkpoint that is believed to be on disk and is not costs a training run.",
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
        .fix("choose a folder that can be written to and has room")
    }
}
