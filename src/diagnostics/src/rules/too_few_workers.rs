//! SC0809 `too-few-workers`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A run that stops because too few workers remain.
#[derive(Clone, Debug)]
pub struct TooFewWorkers {
    /// Members that are left, this process among them.
    pub alive: usize,
    /// What `min_workers` asks for.
    pub least: usize,
    /// How long it was waited for more: `30 s`.
    pub waited: String,
    /// Why there are no more, where all live and cannot connect.
    pub reason: String,
}

impl Rule for TooFewWorkers {
    const PAGE: RulePage = RulePage {
        code: "SC0809",
        name: "too-few-workers",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A run with fewer workers than `min_workers`, if no other workers connected within the time of \
                `wait`. Also workers that run but cannot connect to each other.",
        why: "The run waits between two optimizer steps: only the current step is lost, and the model has the \
              weights of the last step.",
        bad: "let strategy = MultiWorkerMirroredStrategy::workers(4)?.min_workers(4).wait(10.0); // and a worker does not come back",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(4)?; // goes on with whoever is left",
        tensorflow: tensorflow::page("SC0809"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a process that is killed");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            alive,
            least,
            waited,
            reason,
        } = self;
        let start = match reason.is_empty() {
            true => Self::start(format!(
                "only {alive} of at least {least} workers are connected, and no others came within {waited}"
            )),
            false => Self::start(format!(
                "the workers cannot connect to each other: {reason}"
            )),
        };
        start.why("the model has the weights of its last step").fix(
            "continue with `resume = true` when the workers are back, or with `min_workers(1)`",
        )
    }
}
