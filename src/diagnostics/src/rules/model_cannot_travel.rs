//! SC0810 `model-cannot-travel`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A model that worker processes cannot build.
#[derive(Clone, Debug)]
pub struct ModelCannotTravel {
    /// What it is called: `Two`.
    pub model: String,
}

impl Rule for ModelCannotTravel {
    const PAGE: RulePage = RulePage {
        code: "SC0810",
        name: "model-cannot-travel",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A module of one's own that is trained under a `MultiWorkerMirroredStrategy`.",
        why: "Worker processes build the model from its description. `Sequential` and BERT have one; the code of a module \
              that a cell defines is not sent to workers yet.",
        bad: "let history = fit!(model, train, epochs = 1)?; // a module of one's own under worker processes",
        good: "let strategy = MirroredStrategy::logical(2)?; // replicas in this process",
        tensorflow: tensorflow::page("SC0810"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a module of one's own");

    fn diagnostic(&self) -> Diagnostic {
        let model = &self.model;
        Self::start(format!("worker processes cannot build `{model}`"))
            .label(Place::model("fit"), "a module that is defined in a cell")
            .why("they build a `Sequential` or a BERT from its description; the code of a cell is not sent to them yet")
            .fix("train it under `MirroredStrategy::logical(n)`: the same steps to the same bits, in this process")
            .fix("write it as `Sequential([…])` where its layers allow that")
    }
}
