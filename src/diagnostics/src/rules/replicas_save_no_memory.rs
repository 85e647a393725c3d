//! SC0603 `replicas-save-no-memory`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Replicas or executions in the hope of less memory. What was hoped for is in no text.
#[derive(Clone, Copy, Debug)]
pub struct ReplicasSaveNoMemory;

impl Rule for ReplicasSaveNoMemory {
    const PAGE: RulePage = RulePage {
        code: "SC0603",
        name: "replicas-save-no-memory",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mirrored strategy, or `steps_per_execution`, used to fit a model that is too large for one \
                device.",
        why: "Every replica has a full copy of each mirrored variable, of its gradient and of both moments. Only the \
              batch is split, and with it the activations. On logical devices of one machine, the activations of all \
              replicas add up to the same memory.",
        bad: "let strategy = MirroredStrategy::logical(4)?; // a quarter of the memory each?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true }, gradient_accumulation_steps = 4)?;\n\
               fit!(model, train, batch_size = 8)?; // the step of 32, the activations of 8",
        tensorflow: tensorflow::page("SC0603"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("the first cell is valid too; the intention behind it is not visible in its text");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("each replica holds a full copy of the model")
            .why("only the batch is split; weights, gradients and moments are not")
            .fix("use smaller batches with `gradient_accumulation_steps`: the same step in less memory")
    }
}
