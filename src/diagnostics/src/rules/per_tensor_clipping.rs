//! SC0508 `clip-per-tensor`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// `clipnorm`, which many take for a clip of the global norm.
#[derive(Clone, Debug)]
pub struct ClipPerTensor {
    /// The limit of each tensor's norm.
    pub clipnorm: f64,
    /// Tensors that are trained.
    pub tensors: usize,
}

impl Rule for ClipPerTensor {
    const PAGE: RulePage = RulePage {
        code: "SC0508",
        name: "clip-per-tensor",
        severity: Severity::Note,
        stage: Stage::Compile,
        finds: "`clipnorm(…)` on an optimizer: it clips each tensor's gradient on its own.",
        why: "The clip of BERT's recipe is of the norm over all gradients together, `global_clipnorm(1.0)`; it \
              keeps the direction of the step. With `clipnorm` large tensors are cut and small ones are not, \
              and the whole may still be √(number of tensors) times the limit.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5).clipnorm(1.0), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).global_clipnorm(1.0), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0508"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let most = self.clipnorm * (self.tensors as f64).sqrt();
        Self::start(format!(
            "`clipnorm({:?})` clips each tensor; BERT's clip is `global_clipnorm`",
            self.clipnorm
        ))
        .label(
            Place::argument("compile", "optimizer"),
            "each tensor's norm, on its own",
        )
        .why(format!(
            "with {} the norm over all of them may still be {most:.1}",
            text::count(self.tensors, "tensor")
        ))
        .fix(format!(
            "write `.global_clipnorm({:?})` if the whole gradient was meant",
            self.clipnorm
        ))
        .tensorflow(Quote::of("SC0508"))
    }
}
