//! SC0802 `waiting-for-workers`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Workers that have not come yet, and are still waited for.
#[derive(Clone, Debug)]
pub struct WaitingForWorkers {
    /// Who: `worker 1 at host1:2222`.
    pub workers: Vec<String>,
    /// How long it was waited so far: `10 s`.
    pub waited: String,
    /// How long it is waited in all: `30 s`.
    pub limit: String,
    /// Why the last attempt to reach the first of them failed; may be empty.
    pub reason: String,
}

impl Rule for WaitingForWorkers {
    const PAGE: RulePage = RulePage {
        code: "SC0802",
        name: "waiting-for-workers",
        severity: Severity::Note,
        stage: Stage::Compile,
        finds: "Workers that have not connected 10 s after `MultiWorkerMirroredStrategy` started. The strategy \
                continues to wait, and fails with SC0807 when its time limit is reached.",
        why: "A job whose machines start one after another looks like a job that hangs. The note names the missing \
              workers while there is time to start them.",
        bad: "let strategy = MultiWorkerMirroredStrategy::on([\"host1:2222\"])?; // nobody listens there yet",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs another machine");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            workers,
            waited,
            limit,
            reason,
        } = self;
        let start = Self::start(format!(
            "waiting for {}, {waited} so far",
            workers.join(", ")
        ));
        let start = match reason.is_empty() {
            true => start,
            false => start.why(reason.clone()),
        };
        start.fix(format!(
            "start what is missing within {limit}: `stratoscope worker --listen ADDRESS --key FILE`, or the launcher's other \
             processes"
        ))
    }
}
