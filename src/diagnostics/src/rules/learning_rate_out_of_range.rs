//! SC0501 `learning-rate-out-of-range`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A learning rate far from those that BERT is tuned with.
#[derive(Clone, Debug)]
pub struct LearningRateOutOfRange {
    /// The optimizer as written: `AdamW::new(1e-3)`.
    pub optimizer: String,
    /// The highest rate of the schedule.
    pub rate: f64,
    /// The optimizer was named by a text, and so has Keras's default rate.
    pub by_name: bool,
    /// Whether the weights are those of a checkpoint, which such steps destroy.
    pub is_pretrained: bool,
}

impl LearningRateOutOfRange {
    /// From this rate on a pretrained BERT is usually destroyed.
    pub const HIGH: f64 = 1e-3;
    /// From this rate on Adam destroys any weights, also new ones.
    pub const HIGHEST: f64 = 1.0;
    /// Below this rate nothing is learned in any run of usual length.
    pub const LOW: f64 = 1e-7;
}

impl Rule for LearningRateOutOfRange {
    const PAGE: RulePage = RulePage {
        code: "SC0501",
        name: "learning-rate-out-of-range",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A pretrained model under Adam or AdamW whose highest rate is 1e-3 or more, or below 1e-7. Also any \
                model under these optimizers with a rate of 1 or more. If only the head is trainable, any rate below \
                1 is accepted.",
        why: "At 1e-3, Keras's default, the first steps destroy the pretrained weights: the loss stays near \
              ln(classes) and all predictions become one class (reported by SC0517). Far below 1e-6 nothing \
              changes within a few epochs.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = \"adam\", \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0501"),
    };

    fn diagnostic(&self) -> Diagnostic {
        if !self.is_pretrained {
            return self.for_new_weights();
        }
        let rate = self.rate;
        // The user's own, with another rate.
        let optimizer = self.optimizer.split("::").next().unwrap_or("AdamW");
        let message = if rate >= Self::HIGH {
            format!(
                "the rate {rate:e} is {:.0} to {:.0} times BERT's usual 2e-5 … 5e-5",
                rate / 5e-5,
                rate / 2e-5
            )
        } else if rate > 0.0 {
            format!(
                "the rate {rate:e} is {:.0} times below BERT's usual 2e-5",
                2e-5 / rate
            )
        } else {
            "the rate is 0 at every step: nothing will be learned".to_owned()
        };
        let why = if rate >= Self::HIGH {
            "such steps destroy the pretrained weights; most runs end with all predictions in one class"
        } else {
            "such steps do not change the weights visibly within a few epochs"
        };
        let mut diagnostic = Self::start(message)
            .label(Place::argument("compile", "optimizer"), "sets this rate")
            .why(why);
        if self.by_name {
            diagnostic = diagnostic.why("an optimizer given as a string has Keras's default rate");
        }
        diagnostic.evidence("in force", self.optimizer.clone())
            .fix(format!(
                "use a rate from 2e-5 to 5e-5 with warm-up: `{optimizer}::new(warmup_linear(5e-5, 0.1))`"
            ))
            .fix("to train the head alone at 1e-3: `model.freeze(\"bert\")?` before `compile!`")
            .tensorflow(Quote::of("SC0501"))
    }
}

impl LearningRateOutOfRange {
    /// The card of a model that no checkpoint has filled.
    fn for_new_weights(&self) -> Diagnostic {
        let rate = self.rate;
        let optimizer = self.optimizer.split("::").next().unwrap_or("Adam");
        Self::start(format!("a rate of {rate:?} is too high for {optimizer}"))
            .label(Place::argument("compile", "optimizer"), "sets this rate")
            .why(format!(
                "{optimizer} changes every weight by about the rate at every step, and weights are around 0.1"
            ))
            .evidence("in force", self.optimizer.clone())
            .fix(format!("use a rate from 1e-3 to 1e-2: `{optimizer}::new(1e-3)`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_factor() {
        let check = |rate: f64, expected: &str| {
            let facts = LearningRateOutOfRange {
                optimizer: format!("AdamW::new({rate:e})"),
                rate,
                by_name: false,
                is_pretrained: true,
            };
            let message = facts.diagnostic().message;
            assert!(message.contains(expected), "{message}");
        };
        check(1e-3, "20 to 50 times");
        check(1e-8, "2000 times below");
        check(0.0, "nothing will be learned");
    }
}
