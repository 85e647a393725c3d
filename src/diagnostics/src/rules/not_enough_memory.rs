//! SC0601 `not-enough-memory`.

use super::out_of_memory::SHARD;
use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A run that is planned to need more memory than there is.
#[derive(Clone, Debug)]
pub struct NotEnoughMemory {
    /// Examples of the global batch.
    pub batch_size: usize,
    /// Tokens of the longest row.
    pub length: usize,
    /// Bytes that the run is going to ask for, in words: `26 GB`.
    pub needed: String,
    /// Bytes that are free, in words.
    pub free: String,
    /// Part and size, in words.
    pub parts: Vec<(String, String)>,
    /// The largest batch that fits, if one does.
    pub fits: Option<usize>,
    /// What the run would need with `recompute = true`, in words, and whether that fits; none where it is so already, or the
    /// network cannot.
    pub recomputed: Option<(String, bool)>,
    /// Replicas keep copies of all that they could divide.
    pub are_copies: bool,
}

impl Rule for NotEnoughMemory {
    const PAGE: RulePage = RulePage {
        code: "SC0601",
        name: "not-enough-memory",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A run that will need more memory than its devices have free. Weights, gradients and moments are \
                exact; activations are computed from the outputs that the layers keep. The free memory changes, so \
                this is a warning and not an error.",
        why: "Without memory the operating system ends the cell process, and every variable of the notebook is \
              lost; a GPU fails in the middle of a step. `memory_plan(&model, 32, 128)` shows the parts \
              beforehand. `cpu(0).memory_limit(1000)` declares how much of a device may be used, like \
              TensorFlow's `LogicalDeviceConfiguration(memory_limit=1000)`: a batch that passes it is divided \
              (SC0608).",
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
               loss = SparseCategoricalCrossentropy { from_logits: true }, gradient_accumulation_steps = 16)?;\n\
               });\n\
               fit!(model, train, batch_size = 32)?;",
        tensorflow: tensorflow::page("SC0601"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let fits = match self.fits {
            Some(batch) => format!("; a batch of {batch} fits"),
            None => String::new(),
        };
        let mut diagnostic = Self::start(format!(
            "a batch of {} × {} tokens needs about {}, and {} are free{fits}",
            self.batch_size, self.length, self.needed, self.free
        ))
        .label(Place::call("fit"), "will need this much")
        .why(
            "activations grow with the batch and the length; weights, gradients and moments do not",
        );
        for (part, size) in &self.parts {
            diagnostic = diagnostic.evidence(part.clone(), size.clone());
        }
        if let Some(batch) = self.fits {
            diagnostic = diagnostic.fix(format!(
                "write `batch_size = {batch}`, and `gradient_accumulation_steps = {}` in `compile!` for the \
                 same step",
                self.batch_size.div_ceil(batch.max(1))
            ));
        }
        if let Some((needed, fits)) = &self.recomputed {
            let fits = if *fits { ", which fits" } else { "" };
            diagnostic = diagnostic.fix(format!(
                "write `recompute = true`: layers are computed again in the backward pass, and the batch needs about {needed}{fits}"
            ));
        }
        if self.length > 64 {
            diagnostic = diagnostic.fix("truncate the texts: `max_length = 64`");
        }
        if self.are_copies {
            diagnostic = diagnostic.fix(SHARD);
        }
        diagnostic
            .fix("freeze variables that need no training: `model.freeze(\"bert.embeddings\")?`")
            .tensorflow(Quote::of("SC0601"))
    }
}
