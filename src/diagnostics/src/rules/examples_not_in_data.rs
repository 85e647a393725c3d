//! SC0522 `examples-not-in-data`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Examples that are to be dropped from a run and that its training data does not have.
#[derive(Clone, Debug)]
pub struct ExamplesNotInData {
    /// The indices that do not exist, as written; none where none was given at all.
    pub unknown: Vec<String>,
    /// How many examples the training data has.
    pub examples: usize,
}

impl Rule for ExamplesNotInData {
    const PAGE: RulePage = RulePage {
        code: "SC0522",
        name: "examples-not-in-data",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.drop_examples([…])` with an index that the training data does not have, or with no index at all.",
        why: "Examples are named by their index in the training data, counted from 0, as `run.worst(10)`, `run.batch()` and \
              `run.data_map()` show it. With `validation_split` the training data is the part that is not split off.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32))?;\n\
              run.drop_examples([3, 32])?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32))?;\n\
               run.drop_examples([3, 31])?;\n\
               let history = run.finish()?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let examples = text::count(self.examples, "example");
        let message = match self.unknown.as_slice() {
            [] => "no example to drop".to_owned(),
            [one] => format!("there is no example {one} in the training data"),
            more => format!(
                "there are no examples {} in the training data",
                text::names(more, 6)
            ),
        };
        Self::start(message)
            .label(Place::call("drop_examples"), "nothing is dropped")
            .why(format!(
                "the training data has {examples}: 0 to {}",
                self.examples.saturating_sub(1)
            ))
            .fix("take the indices from `run.worst(10)?` or `run.data_map()?`: `example.row`")
    }
}
