//! SC0503 `warm-up-too-long`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A warm-up that does not end within the run.
#[derive(Clone, Debug)]
pub struct WarmUpTooLong {
    /// Steps of warm-up.
    pub warmup: u64,
    /// Optimizer steps of the run.
    pub steps: u64,
    /// The rate that the warm-up leads to.
    pub peak: f64,
    /// The highest rate of the run.
    pub reached: f64,
    /// The schedule as written.
    pub schedule: String,
}

impl Rule for WarmUpTooLong {
    const PAGE: RulePage = RulePage {
        code: "SC0503",
        name: "warm-up-too-long",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A warm-up that lasts as long as the run, or longer. A schedule without warm-up is not reported: \
                many good recipes have none.",
        why: "The rate is still rising when the run ends: the requested rate is never reached, and it never \
              decays. BERT's recipe warms up for a tenth of the run. Without warm-up, Adam takes its first steps \
              at the full rate, before its moments are good estimates; small datasets suffer most.",
        bad: "let cosine = CosineDecay::new(5e-5, 2000).warmup_steps(1000);\ncompile!(model, optimizer = AdamW::new(cosine), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train, epochs = 2, batch_size = 16)?;",
        good: "compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train, epochs = 2, batch_size = 16)?;",
        tensorflow: tensorflow::page("SC0503"),
    };

    const GIVEN: &'static [&'static str] = &["let train = train.take(48);"];

    fn diagnostic(&self) -> Diagnostic {
        let sign = if self.warmup > self.steps {
            "longer than"
        } else {
            "as long as"
        };
        Self::start(format!(
            "the warm-up of {} steps is {sign} the run of {}: the rate never comes down",
            self.warmup, self.steps
        ))
        .label(
            Place::call("fit"),
            format!("a run of {} optimizer steps", self.steps),
        )
        .why("the run ends while the rate is still rising")
        .evidence("schedule", self.schedule.clone())
        .evidence(
            "highest rate",
            format!("{:.3e} of the requested {:.3e}", self.reached, self.peak),
        )
        .fix("warm up for a tenth of the run: `warmup_linear(5e-5, 0.1)`")
        .tensorflow(Quote::of("SC0503"))
    }
}
