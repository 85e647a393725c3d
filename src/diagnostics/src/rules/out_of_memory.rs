//! SC0607 `out-of-memory`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A device without memory for what is to be computed on it.
#[derive(Clone, Debug)]
pub struct OutOfMemory {
    /// The device: `wgpu:0`.
    pub device: String,
    /// What needed it, in words: `16 examples × 64 tokens`; empty where only the device knows.
    pub work: String,
    /// Bytes that it needs and bytes that are allowed, in words, where a limit decided.
    pub limit: Option<(String, String)>,
    /// What the device said, in a line, where it decided.
    pub reason: Option<String>,
    /// Part and size, in words.
    pub parts: Vec<(String, String)>,
    /// It failed while it changed the weights.
    pub is_update: bool,
    /// Replicas keep copies of all that they could divide.
    pub are_copies: bool,
}

impl Rule for OutOfMemory {
    const PAGE: RulePage = RulePage {
        code: "SC0607",
        name: "out-of-memory",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A device that has no memory for a step, a prediction or a variable: the declared `memory_limit` is \
                exceeded, or an allocation fails. A run divides its batches first (SC0608). This error appears if \
                one example per replica is still too much, or if nothing can be divided.",
        why: "The kernel and all variables are still there, and a run waits before the step that was not made. \
              `memory_limit` is compared with the memory plan before each batch. Weights, gradients and moments are \
              exact, activations are estimated, and a custom network counts without activations. On a GPU the failed \
              allocation itself is also detected.",
        bad: "let small = OneDeviceStrategy::new(cpu(0).memory_limit(100))?; // megabytes\n\
              scope!(small, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                  compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              });\n\
              fit!(model, train)?; // weights, gradients and moments alone are 360 MB",
        good: "let enough = OneDeviceStrategy::new(cpu(0).memory_limit(1000))?;\n\
               scope!(enough, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(model, train)?;",
        tensorflow: tensorflow::page("SC0607"),
    };

    const NOT_RUN: Option<&'static str> = Some("the checkpoint of the tests fits into any limit");

    fn diagnostic(&self) -> Diagnostic {
        let work = match self.work.as_str() {
            "" => String::new(),
            work => format!(" for {work}"),
        };
        let limit = match &self.limit {
            Some((needed, limit)) => format!(": {needed} needed, limited to {limit}"),
            None => String::new(),
        };
        let lives = match self.is_update {
            true => {
                "the update failed while it changed the weights. A run of `start!` returns to the state before the step, and a note reports it; after `fit!` some weights of this model may be updated and others not. Everything else is unchanged"
            }
            false => "no weight was changed; the kernel and all variables are still there",
        };
        let mut diagnostic =
            Self::start(format!("{} is out of memory{work}{limit}", self.device)).why(lives);
        if let Some(reason) = &self.reason {
            diagnostic = diagnostic.evidence("message of the device", reason.clone());
        }
        for (part, size) in &self.parts {
            diagnostic = diagnostic.evidence(part.clone(), size.clone());
        }
        if self.is_update {
            diagnostic = diagnostic.fix(
                "after `fit!` continue from a checkpoint, `resume_from = \"…\"`, or load the model again",
            );
        }
        let place = match self.limit {
            Some(_) => "a larger `memory_limit`, or none",
            None => "free memory on the device: `drop(name);` for models that are no longer needed",
        };
        if self.are_copies {
            diagnostic = diagnostic.fix(SHARD);
        }
        diagnostic
            .fix(place)
            .fix("smaller batches: `batch_size = auto(32)` keeps a step of 32 examples and computes it in parts that fit")
            .fix("shorter texts: `max_length = 64`")
            .fix("fewer trained variables: `model.freeze(\"bert.embeddings\")?`")
            .tensorflow(Quote::of("SC0607"))
    }
}

/// What replicas can do that keep copies of moments, gradients and weights.
pub(super) const SHARD: &str = "divide what training keeps among the replicas: `MirroredStrategy::…?.shard(Shard::Optimizer)?`";

impl OutOfMemory {
    /// Whether a finding is one of these.
    pub fn is(found: &Diagnostic) -> bool {
        found.code == Self::PAGE.code
    }
}
