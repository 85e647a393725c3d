//! SC0508 `per-tensor-clipping`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// `clipnorm`, which many take for a clip of the global norm.
#[derive(Clone, Debug)]
pub struct PerTensorClipping {
    /// The limit of each tensor's norm.
    pub clipnorm: f64,
    /// Tensors that are trained.
    pub tensors: usize,
}

impl Rule for PerTensorClipping {
    const PAGE: RulePage = RulePage {
        code: "SC0508",
        name: "per-tensor-clipping",
        severity: Severity::Note,
        stage: Stage::Compile,
        finds: "`clipnorm(…)` on an optimizer: it clips the gradient of each tensor separately.",
        why: "BERT's recipe clips the norm over all gradients, `global_clipnorm(1.0)`, which keeps the direction \
              of the step. `clipnorm` scales down only tensors with a large gradient, and the global norm may \
              still be √(number of tensors) times the limit.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5).clipnorm(1.0), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).global_clipnorm(1.0), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0508"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let most = self.clipnorm * (self.tensors as f64).sqrt();
        Self::start(format!(
            "`clipnorm({:?})` clips each tensor separately; BERT uses `global_clipnorm`",
            self.clipnorm
        ))
        .label(
            Place::argument("compile", "optimizer"),
            "the norm of each tensor",
        )
        .why(format!(
            "with {} the global norm may still be {most:.1}",
            text::count(self.tensors, "tensor")
        ))
        .fix(format!(
            "write `.global_clipnorm({:?})` if the global norm was meant",
            self.clipnorm
        ))
        .tensorflow(Quote::of("SC0508"))
    }
}
