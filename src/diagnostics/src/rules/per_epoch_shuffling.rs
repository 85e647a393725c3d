//! SC0708 `per-epoch-shuffling`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The same order in every epoch by mistake, which cannot happen here.
#[derive(Clone, Copy, Debug)]
pub struct PerEpochShuffling;

impl Rule for PerEpochShuffling {
    const PAGE: RulePage = RulePage {
        code: "SC0708",
        name: "per-epoch-shuffling",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in other libraries: a sampler that uses the same order in every \
                epoch. Here the order is a function of `seed` and the epoch.",
        why: "With the same batches in every epoch, the noise of the gradients repeats instead of averaging out.",
        bad: "// DistributedSampler without set_epoch\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), epochs = 2, shuffle = true, seed = 7)?;",
        tensorflow: tensorflow::page("SC0708"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every epoch has its own order")
            .why("the order is a function of `seed` and the epoch; `shuffle = false` keeps the order of the file")
            .fix("nothing to do")
    }
}
