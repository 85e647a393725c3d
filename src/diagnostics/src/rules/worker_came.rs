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
        finds: "A worker that comes in the place of one that was lost, while a run goes on.",
        why: "It gets weights, moments and counts from this process and takes part from the next step on. The run has \
              the bits of one in which nothing happened.",
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
            Some(reason) => Self::start(format!(
                "nobody has come yet in the place of {worker}: {reason}"
            ))
            .why("the others compute its part of the batch; it is tried again"),
            None => Self::start(format!("{worker} takes part from step {} on", step + 1))
                .why("it has got weights, moments and counts from this process"),
        }
    }
}
