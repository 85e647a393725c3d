//! SC0810 `model-cannot-travel`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A model that worker processes cannot build.
#[derive(Clone, Debug)]
pub struct ModelCannotTravel {
    /// What it is called: `Two`.
    pub model: String,
    /// Why the function that makes it cannot travel; `None` where it was not made by one.
    pub reason: Option<String>,
}

impl Rule for ModelCannotTravel {
    const PAGE: RulePage = RulePage {
        code: "SC0810",
        name: "model-cannot-travel",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A custom module that is trained under a `MultiWorkerMirroredStrategy` and was not created by a \
                function.",
        why: "Each worker process builds the model itself. It builds a `Sequential` or a BERT from a description. \
              For a custom module, the compiled library of the cell that defines its function is sent to the \
              workers.",
        bad: "let model = Model::of(Two::new(&Device::flex()), Outputs::new(\"Two\", 1))?; // a value: workers cannot make another one\n\
              let history = fit!(model, train, epochs = 1)?;",
        good: "let model = Model::made_by(|device| Two::new(device), Outputs::new(\"Two\", 1))?; // a function: workers call it\n\
               let history = fit!(model, train, epochs = 1)?;",
        tensorflow: tensorflow::page("SC0810"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a custom module");

    fn diagnostic(&self) -> Diagnostic {
        let model = &self.model;
        let start = Self::start(format!("worker processes cannot build `{model}`"));
        let diagnostic = match &self.reason {
            None => start
                .label(Place::model("fit"), "a custom module, made in this process")
                .why("each worker builds the model itself: a `Sequential` or a BERT from its description, another module by its function")
                .fix("make it by a function: `Model::made_by(|device| …, Outputs::new(…))?`"),
            Some(reason) => start
                .label(Place::model("fit"), "a module that a function made")
                .why(format!("the function cannot be sent to them: {reason}")),
        };
        diagnostic.fix("train it under `MirroredStrategy::logical(n)`: it makes the same steps, bit for bit, in this process")
    }
}
