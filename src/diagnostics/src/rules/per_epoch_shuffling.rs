//! SC0708 `every-epoch-has-its-order`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The same order in every epoch by mistake, which cannot happen here.
#[derive(Clone, Copy, Debug)]
pub struct EveryEpochHasItsOrder;

impl Rule for EveryEpochHasItsOrder {
    const PAGE: RulePage = RulePage {
        code: "SC0708",
        name: "every-epoch-has-its-order",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The trap of a sampler that draws the same order in every epoch. Here the order is a function of \
                `seed` and the number of the epoch.",
        why: "With the same batches in every epoch, the gradient's errors repeat instead of averaging out.",
        bad: "// DistributedSampler without set_epoch\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), epochs = 2, shuffle = true, seed = 7)?;",
        tensorflow: tensorflow::page("SC0708"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("every epoch has an order of its own")
            .why("the order is drawn from `seed` and the number of the epoch; `shuffle = false` keeps the file's")
            .fix("nothing to do")
    }
}
