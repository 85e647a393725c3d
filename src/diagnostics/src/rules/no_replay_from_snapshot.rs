//! SC0742 `no-replay-from-snapshot`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A question about the past of a run that has no snapshot, or no step, to replay.
#[derive(Clone, Debug)]
pub struct NoReplayFromSnapshot {
    /// The call.
    pub call: String,
    /// Steps that the run has made.
    pub made: u64,
    /// What the run says of its snapshots.
    pub snapshots: String,
}

impl Rule for NoReplayFromSnapshot {
    const PAGE: RulePage = RulePage {
        code: "SC0742",
        name: "no-replay-from-snapshot",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.influence(…)` in a run that has made no step, or that has no snapshot in memory.",
        why: "What a row has changed is found by making the steps once more without it, from a snapshot before them. \
              `run.keep_snapshots(every, megabytes)` sets how many there are.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(64), batch_size = 16)?;\n\
              run.influence(&train[0].text, &train.label_names[0], 3)?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(64), batch_size = 16)?;\n\
               run.step(2)?;\n\
               run.influence(&train[0].text, &train.label_names[0], 3)?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let message = match self.made {
            0 => format!(
                "`{}` has no step to replay: the run has made none",
                self.call
            ),
            _ => format!("`{}` has no snapshot to replay from", self.call),
        };
        let found = Self::start(message)
            .label(Place::call(&self.call), "nothing is replayed")
            .why("a row is left out by making the steps since a snapshot once more without it")
            .evidence("steps made", self.made.to_string())
            .evidence("snapshots", &self.snapshots);
        match self.made {
            0 => found.fix("make steps first: `run.step(20)?;`"),
            _ => found.fix("before the next run makes steps: `run.keep_snapshots(10, 4000)?;`"),
        }
    }
}
