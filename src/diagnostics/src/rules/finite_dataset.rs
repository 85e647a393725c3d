//! SC0706 `data-has-an-end`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A data set that repeats for ever, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct DataHasAnEnd;

impl Rule for DataHasAnEnd {
    const PAGE: RulePage = RulePage {
        code: "SC0706",
        name: "data-has-an-end",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The trap of an endless data set without `steps_per_epoch`. Here a data set is a list of \
                examples, and an epoch goes through it once.",
        why: "With `repeat()` and no number of steps, an epoch never ends: Keras 3 trains on without a message.",
        bad: "// train.repeat(), then model.fit(dataset) without steps_per_epoch\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), epochs = 2)?;",
        tensorflow: tensorflow::page("SC0706"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("data sets have an end, and an epoch goes through them once")
            .why("a data set is a list of examples")
            .fix("to go through it several times, `epochs`")
    }
}
