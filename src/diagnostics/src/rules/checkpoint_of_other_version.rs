//! SC0528 `checkpoint-of-other-version`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A checkpoint that another version of the program wrote.
#[derive(Clone, Debug)]
pub struct CheckpointOfOtherVersion {
    /// The checkpoint.
    pub checkpoint: String,
    /// The version that wrote it, in words.
    pub written_by: String,
    /// This version, in words.
    pub now: String,
}

impl Rule for CheckpointOfOtherVersion {
    const PAGE: RulePage = RulePage {
        code: "SC0528",
        name: "checkpoint-of-other-version",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`resume_from` with a checkpoint that another version of stratoscope wrote.",
        why: "A resumed run must equal the original run to the bit. Another version may compute in another order or \
              store other numbers, and the results would not show it.",
        bad: "fit!(model, train, resume_from = \"runs/debian\")?; // written by an earlier version",
        good: "let model = BertForSequenceClassification::from_pretrained(\"runs/debian/step-150\", 8)?; // its weights",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a checkpoint of another version");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` was written by {}; this is {}",
            self.checkpoint, self.written_by, self.now
        ))
        .label(
            Place::argument("fit", "resume_from"),
            "a run continues only with the version that began it",
        )
        .why("another version may compute in another order, and the run would not be the same to the bit")
        .fix("continue with the version that wrote it")
        .fix("or begin a new run with the saved weights: `from_pretrained(\"folder/step-…\", …)`")
    }
}
