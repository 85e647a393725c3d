//! SC0108 `callback-per-execution`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A callback of batches in a model whose executions hold several.
#[derive(Clone, Debug)]
pub struct CallbackPerExecution {
    /// Batches of an execution.
    pub steps_per_execution: u64,
    /// Batches of an epoch.
    pub batches_per_epoch: u64,
    /// How many of the callbacks listen to batches.
    pub callbacks: usize,
}

impl Rule for CallbackPerExecution {
    const PAGE: RulePage = RulePage {
        code: "SC0108",
        name: "callback-per-execution",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "A callback with batch events, in a model compiled with `steps_per_execution` above 1.",
        why: "Callbacks run between two executions: a callback gets the range of batches and their mean loss \
              once per execution. Logging each batch, or stopping at an exact batch, needs executions of one \
              batch.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\n\
              scope!(strategy, {\n    \
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true }, steps_per_execution = 4)?;\n\
              });\n\
              fit!(model, train.take(64), batch_size = 8, \
              callbacks = [on_batch_end(|batches| println!(\"{:.3}\", batches.loss))])?;",
        good: "let strategy = MirroredStrategy::logical(2)?;\n\
               scope!(strategy, {\n    \
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(model, train.take(128), batch_size = 32, \
               callbacks = [on_batch_end(|batch| println!(\"{:.3}\", batch.loss))])?;",
        tensorflow: tensorflow::page("SC0108"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let steps = self.steps_per_execution;
        let executions = self.batches_per_epoch.div_ceil(steps.max(1));
        let what = match self.callbacks {
            1 => "callback runs".to_owned(),
            several => format!("{several} callbacks run"),
        };
        Self::start(format!("{what} every {steps} batches"))
            .label(Place::call("fit"), "a callback has batch events")
            .why("callbacks run between two executions, and an execution has `steps_per_execution` batches")
            .evidence(
                "per epoch",
                format!(
                    "{} for {}",
                    text::count(executions as usize, "call"),
                    batches(self.batches_per_epoch)
                ),
            )
            .fix("read `first_batch` and `batches` of the event: the range of the execution")
            .fix("or compile with `steps_per_execution = 1` to be called after every batch")
            .tensorflow(Quote::of("SC0108"))
    }
}

fn batches(number: u64) -> String {
    match number {
        1 => "1 batch".to_owned(),
        _ => format!("{} batches", text::thousands(number as usize)),
    }
}
