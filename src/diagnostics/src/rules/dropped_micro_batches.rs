//! SC0506 `dropped-micro-batches`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A loop by hand that does not make the mean of its micro-batches.
#[derive(Clone, Debug)]
pub struct DroppedMicroBatches {
    /// Gradients that were computed since the last step.
    pub computed: usize,
    /// How many of them are in what is applied.
    pub applied: usize,
    /// What the applied gradients are multiplied with, all together: 1 for a mean.
    pub weight: f64,
    /// The norm of what is applied.
    pub norm: f64,
}

impl Rule for DroppedMicroBatches {
    const PAGE: RulePage = RulePage {
        code: "SC0506",
        name: "dropped-micro-batches",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "`model.apply(…)` with fewer gradients than were computed since the last step, or with a sum of \
                several gradients that was not divided by their number.",
        why: "If the accumulator is created again for every micro-batch, only the last micro-batch counts, and it is \
              still divided by their number. With gradients of 1, 10, 100 and 1000 the step uses 250, not their mean \
              277.75. If the sum is not divided, the step is too large by that factor.",
        bad: "let mut sum = Gradients::zeros();\nfor (index, batch) in micro_batches.iter().enumerate() {\n    sum = model.gradients(batch)?; // a new sum each time\n    if index % 4 == 3 { println!(\"{}\", model.apply(sum.clone() / 4.0)?); }\n}",
        good: "let mut sum = Gradients::zeros();\nfor (index, batch) in micro_batches.iter().enumerate() {\n    sum += model.gradients(batch)?;\n    if index % 4 == 3 { println!(\"{}\", model.apply(sum.clone() / 4.0)?); }\n}",
        tensorflow: tensorflow::page("SC0506"),
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        "let micro_batches: Vec<Dataset> = (0..4).map(|index| train.skip(4 * index).take(4)).collect();",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let (computed, applied) = (self.computed, self.applied);
        let lost = computed.saturating_sub(applied);
        let message = if lost > 0 {
            format!("{lost} of {computed} micro-batches were discarded")
        } else {
            format!(
                "{applied} gradients were added but not divided: the step is {:.0} times too large",
                self.weight
            )
        };
        let why = if lost > 0 {
            "their gradients were computed but not applied"
        } else {
            "each is the mean over its own micro-batch; their mean is the sum divided by their number"
        };
        Self::start(message)
            .label(Place::call("apply"), "the step uses these gradients")
            .why(why)
            .evidence("gradients since the last step", computed.to_string())
            .evidence(
                "in this step",
                format!("{applied}, together times {:.3}", self.weight),
            )
            .evidence("norm of the step's gradient", format!("{:.4e}", self.norm))
            .fix("use `fit!`: `gradient_accumulation_steps = 4` in `compile!`")
            .fix("or create the sum before the loop, add to it in the loop, and divide once")
            .tensorflow(Quote::of("SC0506"))
    }
}
