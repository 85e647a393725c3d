//! SC0807 `workers-did-not-come`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Workers that were started or called and did not come.
#[derive(Clone, Debug)]
pub struct WorkersDidNotCome {
    /// The first of them, and where it was called: `worker 1 at host1:2222`.
    pub worker: String,
    /// How long it was waited for: `30 s`.
    pub waited: String,
    /// What is known: why the last attempt failed.
    pub reason: String,
}

impl Rule for WorkersDidNotCome {
    const PAGE: RulePage = RulePage {
        code: "SC0807",
        name: "workers-did-not-come",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A worker that does not connect when `MultiWorkerMirroredStrategy` starts: no process listens at its \
                address, it has another key or another build, or its process ends at once.",
        why: "With fewer workers than requested, the strategy would train with other shares of the batch. The wait \
              has a time limit, and the error names the missing worker.",
        bad: "let strategy = MultiWorkerMirroredStrategy::on([\"host1:2222\"])?; // nobody listens there",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: tensorflow::page("SC0807"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs another machine");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            worker,
            waited,
            reason,
        } = self;
        let start = Self::start(format!("{worker} did not come within {waited}"));
        let start = match reason.is_empty() {
            true => start,
            false => start.why(reason.clone()),
        };
        start
            .fix("start `stratoscope worker --listen ADDRESS --key FILE` on each machine, with the same key file")
            .fix("workers must be the same build as this kernel: `stratoscope --version`")
            .tensorflow(Quote::of("SC0807"))
    }
}
