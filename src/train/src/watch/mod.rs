//! Watches a run for what would otherwise go wrong in silence. `before` looks at the settings when the data
//! is known, [`Watch`] at what the loop computes. (`step::finite` checks gradients and weights.)
//!
//! Everything here only looks: no number of the run depends on it. A warning is shown once a run.

mod before;

use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::{
    DoubleSoftmax, LossWithoutLogits, MajorityCollapse, NoProbabilities, NonFiniteLoss,
    Probabilities,
};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_arguments::context::warnings::notice;
use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::{Predicted, Tally};
use stratoscope_network::AnyNetwork;
use stratoscope_report::history::Evaluation;
use stratoscope_step::forward::PartOutputs;

pub(crate) use before::Before;
pub use before::new_head;

/// Optimizer steps before one answer for everything is a finding: a fresh head answers so for a while.
const PATIENCE: u64 = 50;
/// How far from 1 a row of probabilities may add up, in float32.
const ROUNDING: f64 = 1e-4;

/// What a run has looked at so far.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Whether the outputs of a batch were checked.
    pub outputs_seen: bool,
    /// Whether a model that always gives one answer was reported.
    pub collapse_reported: bool,
    /// The highest learning rate so far.
    pub highest_rate: f64,
}

impl Watch {
    /// Looks at the outputs of the first batch, where `compile!` could not know what they are.
    /// SC0302, SC0303.
    ///
    /// # Errors
    /// SC0302 or SC0303, where it is denied.
    pub fn outputs(
        &mut self,
        network: &AnyNetwork,
        loss: Option<Loss>,
        outputs: &[(Batch, PartOutputs)],
    ) -> Result<()> {
        if std::mem::replace(&mut self.outputs_seen, true) || network.output_activation().is_some()
        {
            return Ok(());
        }
        let finding = loss.and_then(|loss| match loss.from_logits()? {
            true => softmax_twice(loss, outputs),
            false => no_probabilities(loss, outputs),
        });
        finding.map_or(Ok(()), notice)
    }

    /// Remembers the rate of a step.
    pub fn rate(&mut self, rate: f64) {
        self.highest_rate = self.highest_rate.max(rate);
    }

    /// Looks at the predictions of an epoch: those of the validation data, or without any those of
    /// the training data. SC0517.
    ///
    /// # Errors
    /// SC0517, where it is denied.
    pub(crate) fn epoch(&mut self, ended: &EpochOf<'_>) -> Result<()> {
        if self.collapse_reported || !(ended.steps >= PATIENCE || ended.is_last) {
            return Ok(());
        }
        let (counts, split, loss) = match ended.validation {
            Some(validation) => (&validation.predictions, "validation", validation.loss),
            None => (
                &ended.training.predictions(),
                "training",
                ended.training_loss,
            ),
        };
        let Some(finding) = collapse(counts, split, loss, ended, self.highest_rate) else {
            return Ok(());
        };
        self.collapse_reported = true;
        notice(finding)
    }
}

/// An epoch that is over.
pub(crate) struct EpochOf<'a> {
    /// Counted from 0.
    pub epoch: u64,
    /// Whether no other follows.
    pub is_last: bool,
    /// Optimizer steps of the run so far.
    pub steps: u64,
    pub training: &'a Tally,
    pub training_loss: f64,
    pub validation: Option<&'a Evaluation>,
    pub label_names: &'a [String],
    /// The optimizer's type: `AdamW`.
    pub optimizer: &'a str,
    /// Whether the weights came from a checkpoint.
    pub pretrained: bool,
}

fn softmax_twice(loss: Loss, outputs: &[(Batch, PartOutputs)]) -> Option<Diagnostic> {
    let mut first = None;
    let mut examples = 0;
    for (part, own) in outputs {
        let width = own.outputs.len() / part.size().max(1);
        // One output between 0 and 1 is an ordinary logit.
        if width < 2 {
            return None;
        }
        for row in own.outputs.chunks_exact(width) {
            let sum: f64 = row.iter().copied().map(f64::from).sum();
            if row.iter().any(|&share| share < 0.0) || (sum - 1.0).abs() > ROUNDING {
                return None;
            }
            examples += 1;
            first.get_or_insert_with(|| row.to_vec());
        }
    }
    let first = first?;
    let rule = DoubleSoftmax {
        loss: loss.name().to_owned(),
        classes: first.len(),
        outputs: Probabilities::Seen { first, examples },
    };
    Some(rule.diagnostic())
}

fn no_probabilities(loss: Loss, outputs: &[(Batch, PartOutputs)]) -> Option<Diagnostic> {
    let values = || outputs.iter().flat_map(|(_, own)| &own.outputs);
    let lowest = values().copied().fold(f32::INFINITY, f32::min);
    let highest = values().copied().fold(f32::NEG_INFINITY, f32::max);
    let rounding = ROUNDING as f32;
    if lowest >= -rounding && highest <= 1.0 + rounding {
        return None;
    }
    let rule = LossWithoutLogits {
        loss: loss.name().to_owned(),
        binary: matches!(loss, Loss::BinaryCrossentropy(_)),
        outputs: NoProbabilities::Seen {
            lowest,
            highest,
            examples: outputs.iter().map(|(part, _)| part.size()).sum(),
        },
    };
    Some(rule.diagnostic())
}

fn collapse(
    counts: &Predicted,
    split: &str,
    loss: f64,
    ended: &EpochOf<'_>,
    rate: f64,
) -> Option<Diagnostic> {
    let examples: u64 = counts.labels.iter().sum();
    let class = counts
        .predictions
        .iter()
        .position(|&count| count == examples)?;
    let classes = counts.labels.iter().filter(|&&count| count > 0).count();
    let name = ended.label_names.get(class).cloned();
    let rule = MajorityCollapse {
        class: name.unwrap_or_else(|| class.to_string()),
        examples,
        of_this_class: counts.labels[class],
        classes,
        split: split.to_owned(),
        epoch: ended.epoch,
        rate,
        loss,
        steps: ended.steps,
        optimizer: ended.optimizer.to_owned(),
        pretrained: ended.pretrained,
    };
    rule.check()
}

/// Where a run was when something was not finite.
pub struct Moment {
    /// Optimizer steps that were made.
    pub step: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// The learning rate.
    pub rate: f64,
    /// The loss of the step before.
    pub last_loss: Option<f64>,
    /// The norm of the gradient of the step before.
    pub last_norm: Option<f64>,
    /// The rows of the batch.
    pub rows: Vec<usize>,
}

impl Moment {
    /// SC0505, naming the variable where it was seen first, if one is known.
    pub fn not_finite(
        self,
        quantity: &str,
        value: f64,
        first_in: Option<String>,
    ) -> Box<Diagnostic> {
        let rule = NonFiniteLoss {
            quantity: quantity.to_owned(),
            value,
            step: self.step as usize,
            epoch: self.epoch as usize,
            first_in,
            learning_rate: Some(self.rate),
            last_loss: self.last_loss,
            gradient_norm: self.last_norm,
            rows: self.rows,
        };
        rule.error()
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_data::Labels;

    use super::*;
    use stratoscope_metrics::loss::SparseCategoricalCrossentropy;

    fn computed(outputs: &[f32], width: usize) -> Vec<(Batch, PartOutputs)> {
        let rows = outputs.len() / width;
        let batch = Batch {
            ids: vec![0; rows],
            mask: vec![1; rows],
            type_ids: vec![0; rows],
            features: Vec::new(),
            labels: Labels::Classes(vec![0; rows]),
            rows: (0..rows).collect(),
            seq: 1,
            choices: 1,
            by_worker: None,
            weights: None,
        };
        let part = PartOutputs {
            outputs: outputs.to_vec(),
            loss: 0.0,
            squares: None,
        };
        vec![(batch, part)]
    }

    #[test]
    fn probabilities_are_distinguished_from_logits() {
        let loss = Loss::SparseCategoricalCrossentropy(SparseCategoricalCrossentropy {
            from_logits: true,
        });
        let check = |outputs: &[f32], width, found| {
            let finding = softmax_twice(loss, &computed(outputs, width));
            assert_eq!(finding.is_some(), found, "{outputs:?}");
        };
        check(&[0.75, 0.25, 0.5, 0.5], 2, true);
        check(&[0.75, 0.25, 0.5, 0.6], 2, false);
        check(&[1.5, -0.5, 0.5, 0.5], 2, false);
        check(&[1.0, 1.0], 1, false);
    }

    #[test]
    fn logits_are_distinguished_from_probabilities() {
        let loss = Loss::SparseCategoricalCrossentropy(SparseCategoricalCrossentropy {
            from_logits: false,
        });
        let check = |outputs: &[f32], width, message: Option<&str>| {
            let finding =
                no_probabilities(loss, &computed(outputs, width)).map(|finding| finding.message);
            assert_eq!(finding.as_deref(), message, "{outputs:?}");
        };
        // They need not add up to 1: the loss divides by their sum.
        check(&[0.75, 0.25, 0.5, 0.9], 2, None);
        check(&[0.0, 1.0], 1, None);
        let message = "outputs from -0.500 to 1.500 are not probabilities; `from_logits` is false";
        check(&[1.5, -0.5, 0.5, 0.5], 2, Some(message));
        let message = "outputs from 0.250 to 3.000 are not probabilities; `from_logits` is false";
        check(&[0.25, 3.0], 1, Some(message));
    }

    #[test]
    fn one_answer_for_all_is_a_collapse() {
        let names = ["games", "net", "math"].map(str::to_owned);
        let check = |labels: [u64; 3], predictions: [u64; 3], steps, is_last, expected: bool| {
            let validation = Evaluation {
                loss: 1.1,
                metrics: Vec::new(),
                examples: labels.iter().sum::<u64>() as usize,
                seconds: 0.1,
                low_is_good: Vec::new(),
                cut: None,
                other_length: None,
                predictions: Predicted {
                    labels: labels.to_vec(),
                    predictions: predictions.to_vec(),
                    ..Predicted::default()
                },
            };
            let ended = EpochOf {
                epoch: 0,
                is_last,
                steps,
                training: &Tally::of_classes(3),
                training_loss: 1.2,
                validation: Some(&validation),
                label_names: &names,
                optimizer: "AdamW",
                pretrained: false,
            };
            let counts = &validation.predictions;
            let finding = collapse(counts, "validation", 1.1, &ended, 2e-3);
            let waits = !(steps >= PATIENCE || is_last);
            assert_eq!(
                finding.is_some() && !waits,
                expected,
                "{labels:?} {predictions:?}"
            );
            if let Some(finding) = finding {
                let message = "all 30 validation predictions are `net` after epoch 1";
                assert_eq!(finding.message, message);
                assert!(
                    !format!("{finding:?}").contains("pretrained"),
                    "{finding:?}"
                );
            }
        };
        check([10, 10, 10], [0, 30, 0], 60, false, true);
        check([10, 10, 10], [0, 30, 0], 6, true, true);
        check([10, 10, 10], [0, 30, 0], 6, false, false);
        check([10, 10, 10], [1, 29, 0], 60, false, false);
        check([0, 30, 0], [0, 30, 0], 60, false, false);
        check([3, 3, 3], [0, 9, 0], 60, false, false);
    }
}
