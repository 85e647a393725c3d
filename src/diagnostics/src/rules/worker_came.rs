//! SC0812 `worker-came`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A worker that takes the place of one that was lost, or nobody who does.
#[derive(Clone, Debug)]
pub struct WorkerCame {
    /// Which one: `worker 2 (process 4720 on node1)`.
    pub worker: String,
    /// Why nobody came for it yet; none where somebody did.
    pub failed: Option<String>,
    /// The optimizer steps that were made: its weights, moments and counts are those after them.
    pub step: u64,
}

impl Rule for WorkerCame {
    const PAGE: RulePage = RulePage {
        code: "SC0812",
        name: "worker-came",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "A worker that replaces a lost worker during a run.",
        why: "It receives weights, moments and counts from this process and takes part from the next step on. The weights are, bit for bit, those of an undisturbed run.",
        bad: "let history = fit!(model, train, epochs = 3)?; // and `kill -9` of a worker",
        good: "let history = fit!(model, train, epochs = 3)?;",
        tensorflow: tensorflow::page("SC0812"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a process that is killed");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            worker,
            failed,
            step,
        } = self;
        match failed {
            Some(reason) => Self::start(format!("{worker} is not replaced yet: {reason}"))
                .why("the others compute its part of the batch, and the connection is tried again"),
            None => Self::start(format!("{worker} takes part from step {} on", step + 1))
                .why("it received weights, moments and counts from this process"),
        }
    }
}
