//! SC0705 `automatic-batching`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A `batch_size` beside a dataset that is already in batches, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct AutomaticBatching;

impl Rule for AutomaticBatching {
    const PAGE: RulePage = RulePage {
        code: "SC0705",
        name: "automatic-batching",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in TensorFlow only: a batched dataset with a `batch_size`, or an \
                unbatched dataset without one. Here a dataset is a list of examples, and `fit!` makes the \
                batches.",
        why: "TensorFlow ignores the argument without a message: the batches keep their size, but the learning rate \
              was chosen for another size.",
        bad: "// dataset.batch(8), then model.fit(dataset, batch_size=32): batches of 8\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), batch_size = 8)?;",
        tensorflow: tensorflow::page("SC0705"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("`batch_size` always applies: datasets are not batched")
            .why("a dataset is a list of examples; only `fit!` and `evaluate!` make batches")
            .fix("set the size once, in `fit!`")
    }
}
