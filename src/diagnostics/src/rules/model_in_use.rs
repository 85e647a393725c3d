//! SC0121 `model-in-use`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A change of a model that belongs to a run.
#[derive(Clone, Debug)]
pub struct ModelInUse {
    /// Name of the call without `!`: `fit`.
    pub call: String,
    /// Who has the model.
    pub holder: ModelHolder,
}

/// Who has a model that is being trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelHolder {
    /// A call that trains it has lent it to its callbacks, which call this.
    Callbacks,
    /// A run of `start!` that is not finished, between two of its calls.
    Run,
}

impl Rule for ModelInUse {
    const PAGE: RulePage = RulePage {
        code: "SC0121",
        name: "model-in-use",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A call that would change a model that is being trained, in a callback or while a run of `start!` is \
                not finished: `fit!`, `start!`, `compile!`, `apply`, `build`, `freeze`, `unfreeze`. Calls that only \
                read the model are allowed: `predict`, `evaluate!`, `save_pretrained`, `placement`.",
        why: "The run continues with its own weights and moments: another change would be overwritten, or the run \
              would not match its settings.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let same = model.clone();\n\
              {\n    \
              let mut refused = None;\n    \
              fit!(model, train.take(32), \
              callbacks = [on_epoch_end(|_| refused = same.freeze(\"bert\").err())])?;\n    \
              refused.map_or(Ok(()), Err)?;\n\
              }",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let same = model.clone();\n\
               fit!(model, train.take(32), callbacks = [on_epoch_end(|_| {\n    \
               if let Ok(answer) = same.predict(\"chess\") {\n        \
               println!(\"{answer}\");\n    \
               }\n\
               })])?;",
        tensorflow: tensorflow::page("SC0121"),
    };

    fn diagnostic(&self) -> Diagnostic {
        match self.holder {
            ModelHolder::Callbacks => self.in_a_callback(),
            ModelHolder::Run => self.during_a_run(),
        }
    }
}

impl ModelInUse {
    fn in_a_callback(&self) -> Diagnostic {
        Self::start(format!(
            "the model is being trained: its callbacks cannot call `{}`",
            self.call
        ))
        .label(
            Place::call(&self.call),
            "called from a callback of the model's own run",
        )
        .why("the run continues with its own weights, moments and settings; a callback may read the model but \
              not change it")
        .fix("read it in the callback (`predict`, `evaluate!`, `save_pretrained`, `placement`), and change it after the run")
        .fix("or train one epoch at a time and change it in between: `fit!(model, train, epochs = 2, \
              initial_epoch = 1)?`")
    }

    fn during_a_run(&self) -> Diagnostic {
        Self::start(format!(
            "the model belongs to a run that is not finished: `{}` cannot change it",
            self.call
        ))
        .label(Place::call(&self.call), "called while a run of `start!` has the model")
        .why("the run continues with its own weights, moments and settings; between its steps the model may be read \
              but not changed")
        .fix("finish the run: `run.finish()?`")
        .fix("or give it up: `drop(run);` leaves the model with the weights that it has now, and `fit!(…, resume = \
              true)` can still go on from there")
    }
}
