//! SC0507 `decay-of-all-weights`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Weight decay on variables that BERT's recipe leaves alone.
#[derive(Clone, Debug)]
pub struct DecayOfAllWeights {
    /// The decay.
    pub decay: f64,
    /// Biases and LayerNorm that decay too.
    pub also: Vec<String>,
    /// Variables in all.
    pub variables: usize,
}

impl Rule for DecayOfAllWeights {
    const PAGE: RulePage = RulePage {
        code: "SC0507",
        name: "decay-of-all-weights",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "An AdamW that decays biases and LayerNorm, because of `decay_all_parameters(true)` or an \
                `exclude_from_weight_decay([…])` that does not name them. By default they are excluded.",
        why: "Weight decay regularizes the weights of matrix products. A bias and a LayerNorm scale have another \
              role, and pulling them to 0 makes the model worse. BERT's own optimizer excludes `LayerNorm`, \
              `layer_norm` and `bias`.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5).decay_all_parameters(true), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0507"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "weight decay {} also applies to {} of {} tensors (biases, LayerNorm) that BERT excludes",
            self.decay,
            self.also.len(),
            self.variables
        ))
        .label(
            Place::argument("compile", "optimizer"),
            "biases and LayerNorm decay too",
        )
        .why("pulling a bias or a LayerNorm scale to 0 makes the model worse, not simpler")
        .evidence("for example", text::names(&self.also, 3))
        .fix("remove `decay_all_parameters(true)`")
        .fix("or exclude them by name: `.exclude_from_weight_decay([\"bias\", \"LayerNorm\"])`")
        .tensorflow(Quote::of("SC0507"))
    }
}
