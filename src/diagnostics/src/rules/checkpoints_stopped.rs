//! SC0525 `checkpoints-stopped`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A checkpoint that could not be written; the run continues without checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointsStopped {
    /// The folder of the checkpoints.
    pub folder: String,
    /// The optimizer step after which it was due.
    pub step: u64,
    /// What the system said.
    pub reason: String,
    /// The step of the newest complete checkpoint of the run, if there is one.
    pub newest: Option<u64>,
}

impl Rule for CheckpointsStopped {
    const PAGE: RulePage = RulePage {
        code: "SC0525",
        name: "checkpoints-stopped",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "A checkpoint of `fit!(…, checkpoint = \"folder\", every = 50)` that cannot be written: the disk is full, \
                or the folder is not writable.",
        why: "Training is more important than its checkpoints, so the run continues. It writes no more checkpoints, \
              because a full disk stays full and every attempt costs time. Complete checkpoints remain.",
        bad: "fit!(model, train.take(64), checkpoint = \"/proc/run\", every = 1)?;",
        good: "fit!(model, train.take(64), checkpoint = std::env::temp_dir().join(\"run\"), every = 1)?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a disk that is full");

    fn diagnostic(&self) -> Diagnostic {
        let newest = match self.newest {
            Some(step) => format!("step {step}"),
            None => "none".to_owned(),
        };
        Self::start(format!(
            "checkpoints stop: the one after step {} could not be written: {}",
            self.step, self.reason
        ))
        .label(Place::argument("fit", "checkpoint"), "the run continues without checkpoints")
        .why("training continues; complete checkpoints remain")
        .evidence("folder", self.folder.clone())
        .evidence("newest complete checkpoint", newest)
        .fix("free space on the disk, or choose another folder, before the next run")
        .fix("a smaller `keep_last` takes less space: a new checkpoint is written before an old one is removed")
    }
}
