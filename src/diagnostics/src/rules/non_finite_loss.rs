//! SC0505 `non-finite-loss`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A loss, gradient or weight that is not a finite number.
#[derive(Clone, Debug)]
pub struct NonFiniteLoss {
    /// What is not finite: `loss`, `gradient`, `weight`.
    pub quantity: String,
    /// Its value: NaN or an infinity.
    pub value: f64,
    /// The optimizer step, counted from 0.
    pub step: usize,
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The first layer where it was seen, if it was looked for.
    pub first_in: Option<String>,
    /// The learning rate at that step.
    pub learning_rate: Option<f64>,
    /// The last finite loss.
    pub last_loss: Option<f64>,
    /// The norm of all gradients at the step before, if it was computed.
    pub gradient_norm: Option<f64>,
    /// Rows of the dataset in the batch, counted from 0.
    pub rows: Vec<usize>,
}

impl Rule for NonFiniteLoss {
    const PAGE: RulePage = RulePage {
        code: "SC0505",
        name: "non-finite-loss",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A loss, gradient or weight that is NaN or infinite. Training stops at the first non-finite loss \
                or gradient, before the weights are updated, and checks every weight after an update.",
        why: "One step with a NaN makes every weight that it updates NaN, on every replica, and the run \
              continues without an error.",
        bad: "compile!(model, optimizer = SGD::new(1e30), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        good: "compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0505"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let value = match self.value {
            value if value.is_nan() => "NaN".to_owned(),
            value if value > 0.0 => "infinite".to_owned(),
            _ => "negative infinite".to_owned(),
        };
        let first = match &self.first_in {
            Some(layer) => format!("; first in `{layer}`"),
            None => String::new(),
        };
        // A weight is looked at when it has been written.
        let (when, why) = match self.quantity.as_str() {
            "weight" => ("after", "every loss from here on would be NaN"),
            _ => (
                "before",
                "an update with a non-finite value would make every weight that it changes NaN",
            ),
        };
        let mut diagnostic = Self::start(format!(
            "the {} is {value} at step {}{first}",
            self.quantity, self.step
        ))
        .label(
            Place::call("fit"),
            format!("stopped in epoch {}, {when} the update", self.epoch + 1),
        )
        .why(why);
        if let Some(rate) = self.learning_rate {
            diagnostic = diagnostic.evidence("learning rate", format!("{rate:.3e}"));
        }
        if let Some(loss) = self.last_loss {
            diagnostic = diagnostic.evidence("last finite loss", format!("{loss:.4}"));
        }
        if let Some(norm) = self.gradient_norm {
            diagnostic = diagnostic.evidence("gradient norm before", format!("{norm:.3e}"));
        }
        if !self.rows.is_empty() {
            let rows: Vec<String> = self.rows.iter().take(8).map(usize::to_string).collect();
            let more = if self.rows.len() > 8 { ", …" } else { "" };
            diagnostic =
                diagnostic.evidence("rows of the batch", format!("{}{more}", rows.join(", ")));
        }
        if let Some(rate) = self.learning_rate.filter(|&rate| rate > 1e-2) {
            diagnostic = diagnostic.why(format!(
                "a rate of {rate:e} is high: Keras's default is 1e-3 for Adam and 0.01 for SGD, and BERT is \
                 fine-tuned with 2e-5 to 5e-5"
            ));
        }
        if self.quantity == "weight" {
            diagnostic =
                diagnostic.fix("create or load the model again, or load an earlier checkpoint");
        }
        diagnostic
            .fix("lower the learning rate; a pretrained BERT needs 2e-5 to 5e-5")
            .fix("clip the gradients: `.global_clipnorm(1.0)` on the optimizer")
            .tensorflow(Quote::of("SC0505"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_where_and_when() {
        let facts = NonFiniteLoss {
            quantity: "loss".into(),
            value: f64::NAN,
            step: 37,
            epoch: 0,
            first_in: Some("encoder.layer.3".into()),
            learning_rate: Some(1.0),
            last_loss: Some(2.5),
            gradient_norm: None,
            rows: (0..12).collect(),
        };
        let diagnostic = facts.clone().diagnostic();
        assert_eq!(
            diagnostic.message,
            "the loss is NaN at step 37; first in `encoder.layer.3`"
        );
        assert!(
            diagnostic.why[1].starts_with("a rate of 1e0 is high"),
            "{:?}",
            diagnostic.why
        );
        let usual = NonFiniteLoss {
            learning_rate: Some(1e-3),
            ..facts
        };
        assert_eq!(usual.diagnostic().why.len(), 1);
    }
}
