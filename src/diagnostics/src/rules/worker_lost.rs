//! SC0808 `worker-lost`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A worker that is gone or silent during a run.
#[derive(Clone, Debug)]
pub struct WorkerLost {
    /// Which one: `worker 2 (process 4711 on node1)`.
    pub worker: String,
    /// What happened: `its process ended with signal: 9 (SIGKILL)`.
    pub reason: String,
    /// How long before it was last heard, and what it did then: `0.2 s before, when it computed a batch`.
    pub heard: String,
    /// The optimizer steps that had been made.
    pub step: u64,
    /// How many members are left, this process among them.
    pub left: usize,
    /// Whether another one is started or called in its place.
    pub replaced: bool,
}

impl Rule for WorkerLost {
    const PAGE: RulePage = RulePage {
        code: "SC0808",
        name: "worker-lost",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "A worker whose process ended, that hangs, or that lost its network connection, during a run.",
        why: "The gradients of the current step are discarded, and the remaining workers compute them again. \
              Replicas keep their numbers and their parts of the batch. A worker that replaces another one computes \
              both parts. So the weights equal those of an undisturbed run, to the bit.",
        bad: "let history = fit!(model, train, epochs = 3)?; // and `kill -9` of a worker",
        good: "let history = fit!(model, train, epochs = 3)?;",
        tensorflow: tensorflow::page("SC0808"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a process that is killed");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            worker,
            reason,
            heard,
            step,
            left,
            replaced,
        } = self;
        let left = match left {
            1 => "this process alone".to_owned(),
            left => format!("{left} processes"),
        };
        let done = match replaced {
            true => "; another worker is started in its place",
            false => "",
        };
        Self::start(format!("{worker} is lost: {reason}"))
            .why(format!(
                "step {} is computed again by {left}, with the same parts of the batch{done}",
                step + 1
            ))
            .evidence("last heard", heard.clone())
            .evidence("optimizer steps made", step.to_string())
            .fix("nothing to do: the run goes on, with the weights of an undisturbed run")
    }
}
