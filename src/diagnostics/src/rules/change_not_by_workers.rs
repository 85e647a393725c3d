//! SC0733 `change-not-by-workers`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Interventions in a run whose replicas are computed by other processes.
#[derive(Clone, Debug)]
pub struct ChangeNotByWorkers {
    /// The call: `what_if`.
    pub call: String,
    /// The changes, in words.
    pub changes: Vec<String>,
}

impl Rule for ChangeNotByWorkers {
    const PAGE: RulePage = RulePage {
        code: "SC0733",
        name: "change-not-by-workers",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.what_if(…)` that changes activations, gradients or weights of a run whose replicas are computed by worker \
                processes.",
        why: "Workers have their own copies of the weights and compute their own gradients. Only the batches and the \
              dropout rate of a step travel to them: labels, example weights and `it.dropout(…)` can be changed.",
        bad: "let run = start!(model, train.take(64), batch_size = 32)?;\n\
              run.what_if(|it| it.gradients(\"classifier.*\").scale(0.0))?",
        good: "let run = start!(model, train.take(64), batch_size = 32)?;\n\
               run.what_if(|it| it.label(0, \"games\"))?",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn diagnostic(&self) -> Diagnostic {
        Self::start("worker processes compute this run, and they cannot make this change")
            .label(Place::call(&self.call), "nothing is changed")
            .evidence("changes", text::names(&self.changes, 6))
            .why("only labels, example weights and the dropout rate of a step travel to workers")
            .fix("make the change in a run on one machine: `MirroredStrategy::new()?`")
    }
}
