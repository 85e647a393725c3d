//! SC0523 `no-example-left`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A run of which all examples are to be dropped.
#[derive(Clone, Debug)]
pub struct NoExampleLeft {
    /// How many examples the training data has.
    pub examples: usize,
}

impl Rule for NoExampleLeft {
    const PAGE: RulePage = RulePage {
        code: "SC0523",
        name: "no-example-left",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.drop_examples([…])` that would leave a run without any example.",
        why: "An epoch without examples has no batches, and there would be nothing to train on.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32))?;\n\
              run.drop_examples(0..32)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32))?;\n\
               run.drop_examples(0..2)?;\n\
               let history = run.finish()?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let examples = text::count(self.examples, "example");
        Self::start("no example would be left to train on".to_owned())
            .label(Place::call("drop_examples"), "nothing is dropped")
            .why(format!(
                "the training data has {examples}, and all of them are dropped now or were dropped before"
            ))
            .fix("end the run instead: `drop(run);`")
    }
}
