//! SC0805 `invalid-cluster`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Variables of the environment that describe no cluster.
#[derive(Clone, Debug)]
pub struct InvalidCluster {
    /// The variable that is wrong: `TF_CONFIG`.
    pub variable: String,
    /// What it holds, as far as it is wrong.
    pub found: String,
    /// What it must hold.
    pub expects: String,
}

impl Rule for InvalidCluster {
    const PAGE: RulePage = RulePage {
        code: "SC0805",
        name: "invalid-cluster",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`MultiWorkerMirroredStrategy::from_environment()` with a variable that does not describe a cluster: \
                invalid JSON, a task that is not in the cluster, two chiefs, an index out of range, a duplicate \
                address, an address without a port, or an invalid number. Also `on([…])` without the key of the job.",
        why: "The processes of a job wait for each other. With a wrong address, or with two processes of the same \
              number, they would wait forever. So everything is checked before a port is opened.",
        bad: "unsafe { std::env::set_var(\"TF_CONFIG\", r#\"{\"cluster\": {\"worker\": [\"a:1\", \"a:1\"]}}\"#) };\nlet strategy = MultiWorkerMirroredStrategy::from_environment()?;",
        good: "unsafe { std::env::remove_var(\"TF_CONFIG\") };\nlet strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: tensorflow::page("SC0805"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            variable,
            found,
            expects,
        } = self;
        Self::start(format!("`{variable}` is {found}"))
            .why(format!("it must be {expects}"))
            .fix(format!("set `{variable}` in the environment of every process, and restart this kernel"))
            .fix("use `MultiWorkerMirroredStrategy::workers(2)` for processes on this machine: it needs no variable")
            .tensorflow(Quote::of("SC0805"))
    }
}
