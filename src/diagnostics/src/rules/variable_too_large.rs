//! SC0609 `variable-too-large`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A variable that is larger than the largest buffer of the device it is to be placed on.
#[derive(Clone, Debug)]
pub struct VariableTooLarge {
    /// Its name.
    pub variable: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its size, in words.
    pub size: String,
    /// The device.
    pub device: String,
    /// The largest buffer that a kernel of the device can use, in words.
    pub limit: String,
    /// How many of the model's variables are too large.
    pub count: usize,
}

impl Rule for VariableTooLarge {
    const PAGE: RulePage = RulePage {
        code: "SC0609",
        name: "variable-too-large",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A variable that does not fit into one buffer of a wgpu adapter, such as the table of word embeddings \
                of a multilingual checkpoint. WebGPU guarantees 128 MiB. Real adapters offer more, and the limit of \
                the adapter applies. It is checked when the model is placed, before anything is computed.",
        why: "A kernel reads a variable through one binding (`max_storage_buffer_binding_size`, `max_buffer_size`). \
              This limit does not depend on the free memory, and smaller batches do not help. A worker computes with \
              the whole variable, even if parameter servers store it by rows.",
        bad: "let strategy = OneDeviceStrategy::new(wgpu(0))?; // its buffers end at 128 MiB\n\
              scope!(strategy, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"bert-base-multilingual-cased\", 8)?; // 367 MB\n\
              });",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;\n\
               scope!(strategy, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"bert-base-multilingual-cased\", 8)?;\n\
               });",
        tensorflow: tensorflow::page("SC0609"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("it needs an adapter with small buffers and a checkpoint of 700 MB");

    fn diagnostic(&self) -> Diagnostic {
        let others = match self.count {
            0 | 1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        Self::start(format!(
            "`{}` {:?} is {}, but the largest buffer of {} is {}{others}",
            self.variable, self.shape, self.size, self.device, self.limit
        ))
        .why("a kernel reads a variable through one buffer; nothing was computed, and all variables are still there")
        .fix("use the CPU: `OneDeviceStrategy::new(cpu(0))`, or `%device cpu` for models outside of a scope")
        .fix("a checkpoint with a smaller vocabulary, such as an English one")
        .fix("another adapter: `devices()` lists them")
    }
}
