//! SC0706 `finite-dataset`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A dataset that repeats for ever, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct FiniteDataset;

impl Rule for FiniteDataset {
    const PAGE: RulePage = RulePage {
        code: "SC0706",
        name: "finite-dataset",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in TensorFlow only: an infinite dataset without `steps_per_epoch`. \
                Here a dataset is a list of examples, and an epoch passes over it once.",
        why: "With `repeat()` and no number of steps, an epoch never ends: Keras 3 trains on without a message.",
        bad: "// train.repeat(), then model.fit(dataset) without steps_per_epoch\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), epochs = 2)?;",
        tensorflow: tensorflow::page("SC0706"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("datasets are finite, and an epoch passes over them once")
            .why("a dataset is a list of examples")
            .fix("set `epochs` to pass over it several times")
    }
}
