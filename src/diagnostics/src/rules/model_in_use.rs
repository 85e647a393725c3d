//! SC0121 `model-in-use`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A callback that changes the model that is being trained.
#[derive(Clone, Debug)]
pub struct ModelInUse {
    /// Name of the call without `!`: `fit`.
    pub call: String,
}

impl Rule for ModelInUse {
    const PAGE: RulePage = RulePage {
        code: "SC0121",
        name: "model-in-use",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A call in a callback that would change the very model whose training calls it: `fit!`, `compile!`, \
                `apply`, `build`, `freeze`, `unfreeze`. Whatever only reads the model works there: `predict`, \
                `evaluate!`, `save_pretrained`, `placement`.",
        why: "The run goes on with the weights and moments that it has: what a callback changed would be \
              overwritten, or would train something else than the settings say.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let same = model.clone();\n\
              {\n    \
              let mut told = None;\n    \
              fit!(model, train.take(32), \
              callbacks = [on_epoch_end(|_| told = same.freeze(\"bert\").err())])?;\n    \
              told.map_or(Ok(()), Err)?;\n\
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
        Self::start(format!(
            "the model is being trained: its callbacks cannot call `{}`",
            self.call
        ))
        .label(
            Place::call(&self.call),
            "called from a callback of the model's own run",
        )
        .why("the run goes on with the weights, moments and settings that it has; a callback reads the model, and does not change it")
        .fix("read it in the callback (`predict`, `evaluate!`, `save_pretrained`, `placement`), and change it after the run")
        .fix("or train an epoch at a time, and change it between: `fit!(model, train, epochs = 2, initial_epoch = 1)?`")
    }
}
