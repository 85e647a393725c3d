//! SC0811 `workers-differ`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A copy of a variable that is not equal to this process's.
#[derive(Clone, Debug)]
pub struct WorkersDiffer {
    /// Which worker: `worker 2 (process 4711 on node1)`.
    pub worker: String,
    /// The variable: `dense.weight`.
    pub variable: String,
    /// How many variables differ.
    pub count: usize,
    /// The optimizer steps that were made.
    pub step: u64,
}

impl Rule for WorkersDiffer {
    const PAGE: RulePage = RulePage {
        code: "SC0811",
        name: "workers-differ",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A worker whose weights are not equal to those of the others, bit for bit, after the same steps.",
        why: "All workers make the same updates with the same gradients. Processors of different kinds round \
              differently. Copies that drift apart are different models, and only one of them is saved.",
        bad: "let strategy = MultiWorkerMirroredStrategy::on([\"host1:2222\"])?; // another kind of processor",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: tensorflow::page("SC0811"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs machines with different processors");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            worker,
            variable,
            count,
            step,
        } = self;
        let others = match count {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        Self::start(format!("`{variable}` differs at {worker}{others}"))
            .why(format!("after {step} optimizer steps all copies should be equal bit for bit"))
            .fix("let all workers use the same instructions: `STRATOSCOPE_CPU=x86-64-v2` in the environment of each")
            .fix("fit the model again: workers get the weights of this process when a run begins")
    }
}
