//! SC0121 `model-in-use`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A callback that asks something of the model that is being trained.
#[derive(Clone, Debug)]
pub struct ModelInUse {
    /// Name of the call without `!`: `evaluate`.
    pub call: String,
}

impl Rule for ModelInUse {
    const PAGE: RulePage = RulePage {
        code: "SC0121",
        name: "model-in-use",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`evaluate!`, `predict` or `fit!` in a callback, of the very model whose training calls it.",
        why: "The run has the model until it ends: the call would wait for the run, and the run for the call.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let same = model.clone();\n\
              {\n    \
              let mut told = None;\n    \
              fit!(model, train.take(32), \
              callbacks = [on_epoch_end(|_| told = same.predict(\"chess\").err())])?;\n    \
              told.map_or(Ok(()), Err)?;\n\
              }",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, train.take(32), \
               callbacks = [on_epoch_end(|epoch| println!(\"{:.3}\", epoch.loss))])?;",
        tensorflow: tensorflow::page("SC0121"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the model is being trained: its callbacks cannot ask it anything")
            .label(Place::call(&self.call), "called from a callback of the model's own run")
            .why("the run has the model until it ends, so that this call would wait for ever")
            .fix("use what the callback is given: losses, metrics and the validation of the epoch")
            .fix("or train an epoch at a time, and ask between: `fit!(model, train, epochs = 2, initial_epoch = 1)?`")
    }
}
