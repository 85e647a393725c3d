//! SC0521 `run-is-over`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A call of a run that is finished.
#[derive(Clone, Debug)]
pub struct RunIsOver {
    /// The method: `step`.
    pub call: String,
}

impl Rule for RunIsOver {
    const PAGE: RulePage = RulePage {
        code: "SC0521",
        name: "run-is-over",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.step(…)`, `run.epoch()`, `run.until(…)` or `run.finish()` of a run that is finished.",
        why: "A finished run has passed its weights to the model, which may have changed since. Another run starts \
              from the weights of the model.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32))?;\n\
              let history = run.finish()?;\n\
              run.step(1)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32))?;\n\
               println!(\"{}\", run.step(1)?);\n\
               let history = run.finish()?;",
        tensorflow: tensorflow::page("SC0521"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the run is finished: `{}` has no step to make",
            self.call
        ))
        .label(Place::call(&self.call), "called after `run.finish()`")
        .why("all its steps are done, and the model has its final weights")
        .fix("begin another run: `let run = start!(model, train, epochs = 1)?;`")
        .fix("or continue training: `fit!(model, train, epochs = 4, initial_epoch = 3)?`")
    }
}
