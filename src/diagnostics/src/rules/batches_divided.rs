//! SC0608 `batches-divided`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A run whose device was out of memory, and that continues with smaller parts of a batch.
#[derive(Clone, Debug)]
pub struct BatchesDivided {
    /// The message of the error.
    pub found: String,
    /// Optimizer steps that were made before.
    pub step: u64,
    /// Examples of a batch.
    pub batch_size: usize,
    /// Examples that are computed at once from now on.
    pub part: usize,
}

impl Rule for BatchesDivided {
    const PAGE: RulePage = RulePage {
        code: "SC0608",
        name: "batches-divided",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "A step that does not fit into the memory of a device. The run continues: each batch is computed in \
                parts, and their gradients are added up before the update.",
        why: "The gradient is still the mean over the same examples, so the step is the same except for rounding. On \
              the CPU it has the same bits as a run that has this smaller `batch_size` and the matching \
              `gradient_accumulation_steps` from the start. Dropout masks are drawn for the parts. If a device has \
              free memory, smaller parts take longer. The history lists the change with its step.",
        bad: "let small = OneDeviceStrategy::new(cpu(0).memory_limit(1000))?; // megabytes\n\
              scope!(small, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                  compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              });\n\
              fit!(model, train, batch_size = 512)?;",
        good: "let small = OneDeviceStrategy::new(cpu(0).memory_limit(1000))?; // megabytes\n\
               scope!(small, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(model, train, batch_size = auto(512))?; // the parts are chosen before the first step",
        tensorflow: tensorflow::page("SC0608"),
    };

    const ONCE: bool = false;

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            found,
            step,
            batch_size,
            part,
        } = self;
        let parts = text::count(batch_size.div_ceil((*part).max(1)), "part");
        Self::start(format!(
            "{found}; from step {} on each batch of {batch_size} is computed in {parts} of {part}",
            step + 1
        ))
        .label(Place::call("fit"), "goes on with smaller parts")
        .why("the gradients of the parts are added up, so that each step is the mean over the same examples")
        .fix(format!(
            "`batch_size = auto({batch_size})` chooses the parts before the first step"
        ))
        .tensorflow(Quote::of("SC0608"))
    }
}
