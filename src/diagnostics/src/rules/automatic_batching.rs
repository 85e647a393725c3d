//! SC0705 `batches-are-made-by-fit`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A `batch_size` beside a data set that is already in batches, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct BatchesAreMadeByFit;

impl Rule for BatchesAreMadeByFit {
    const PAGE: RulePage = RulePage {
        code: "SC0705",
        name: "batches-are-made-by-fit",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The trap of a batched data set with a `batch_size` beside it, or an unbatched one without. Here \
                a data set is a list of examples; `fit!` makes the batches.",
        why: "Elsewhere the argument is ignored without a message: the batches stay what they were, and the \
              learning rate was chosen for others.",
        bad: "// dataset.batch(8), then model.fit(dataset, batch_size=32): batches of 8\nlet data = train.take(64);",
        good: "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { \
               from_logits: true })?;\nfit!(model, train.take(64), batch_size = 8)?;",
        tensorflow: tensorflow::page("SC0705"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("`batch_size` always holds: data sets are not in batches")
            .why("a data set is a list of examples, and only `fit!` and `evaluate!` make batches")
            .fix("say the size once, in `fit!`")
    }
}
