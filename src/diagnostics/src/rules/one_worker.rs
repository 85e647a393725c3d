//! SC0801 `one-worker`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// An environment that describes a cluster of one process.
#[derive(Clone, Debug)]
pub struct OneWorker {
    /// The variables that say so: `TF_CONFIG`, `RANK, WORLD_SIZE`, `Open MPI`.
    pub source: String,
}

impl Rule for OneWorker {
    const PAGE: RulePage = RulePage {
        code: "SC0801",
        name: "one-worker",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "`MultiWorkerMirroredStrategy::from_environment()` in a cluster whose only process is this one: a \
                `TF_CONFIG` with one address, `WORLD_SIZE=1`, a launcher that was asked for one process.",
        why: "The model trains on this machine alone. Often the description of the cluster is not complete, and the other \
              machines do nothing.",
        bad: "let strategy = MultiWorkerMirroredStrategy::from_environment()?; // with WORLD_SIZE=1",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs variables of a launcher");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the cluster has one worker, this process")
            .evidence("from", self.source.clone())
            .why("it trains alone; if other machines are to take part, the description of the cluster does not name them")
            .fix("name all processes: every address in `TF_CONFIG`, or the launcher's number of processes")
            .fix("use `MultiWorkerMirroredStrategy::workers(2)`: it starts processes on this machine")
    }
}
