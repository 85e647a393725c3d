//! Where numbers have grown: the coming step beside the same batch with the weights of an earlier step.

use std::collections::HashMap;

use stratoscope_diagnostics::Result;

use super::super::Inspection;
use super::super::trace::{inputs, spreads};
use super::{Traced, Why};

use stratoscope_optim::Clipping;
use stratoscope_report::html::rate;
use stratoscope_report::inspection::Grown;

/// Below so many times the lowest loss of a step nobody speaks of a spike.
pub const WORTH_A_LOOK: f64 = 1.5;
/// A loss that is so many times that of the earlier weights is a spike.
const SPIKE: f64 = 2.0;
/// An output whose root mean square is so many times the earlier one has grown.
const GROWTH: f64 = 2.0;

/// Of an operation: the part of the network, its name, and the how manieth of this name it is.
type Key = (String, Option<String>, usize);

/// What the first batch of a step computes, with some weights.
pub struct Reference {
    /// Steps that had been made.
    step: u64,
    /// The mean loss of the batch.
    pub loss: f64,
    traced: Vec<Traced>,
}

impl Inspection<'_> {
    /// What the first batch of the coming step computes with the weights of this moment.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn reference(&self) -> Result<Option<Reference>> {
        let Some(batch) = self.batches.first() else {
            return Ok(None);
        };
        let traced = self.traced(0, batch)?;
        let examples: usize = traced.iter().map(|own| own.part.size()).sum();
        let loss: f64 = traced.iter().map(|own| own.outputs.loss).sum();
        Ok(Some(Reference {
            step: self.step.steps,
            loss: loss / examples.max(1) as f64,
            traced,
        }))
    }

    /// Adds to the answer of a step whose values are all finite where they have grown since an earlier step, if the loss
    /// of the same batch has.
    pub fn with_growth(&self, mut why: Why, now: &Reference, earlier: &Reference) -> Why {
        if !(now.loss > SPIKE * earlier.loss.abs() && now.loss.is_finite()) {
            return why;
        }
        let (Some(own), Some(before)) = (now.traced.first(), earlier.traced.first()) else {
            return why;
        };
        let spread: HashMap<Key, f64> = spreads(&before.seen);
        let ratio = |key: &Key, now: f64| {
            let before = spread.get(key).copied().filter(|it| *it > 0.0)?;
            Some((now / before, before))
        };
        let mut times: HashMap<(&str, Option<&str>), usize> = HashMap::new();
        let mut grown: Option<(usize, f64, f64)> = None;
        for (at, tapped) in own.seen.iter().enumerate() {
            if tapped.is_gradient || tapped.is_input || tapped.part == "loss" {
                continue;
            }
            let place = (tapped.part.as_str(), tapped.operation.as_deref());
            let time = times.entry(place).or_default();
            let key = (tapped.part.clone(), tapped.operation.clone(), *time);
            *time += 1;
            // Scores of padding are no number of the network.
            if tapped.operation.as_deref() == Some("mask") {
                continue;
            }
            let Some((ratio, before)) = ratio(&key, tapped.row.statistics.rms) else {
                continue;
            };
            if ratio > GROWTH {
                grown = Some((at, ratio, before));
                break;
            }
        }
        let clips = !matches!(self.settings.compiled.optimizer.clipping, Clipping::None);
        let rate = rate(self.step.rate(self.settings));
        why.fixes.push(match clips {
            true => format!("turn back with `run.rewind({})` and lower the learning rate, now {rate}", earlier.step),
            false => format!(
                "turn back with `run.rewind({})`, lower the learning rate, now {rate}, and set `global_clipnorm(1.0)`",
                earlier.step
            ),
        });
        why.causes.push(format!(
            "the weights: the same batch has the loss {:.4} with those after step {}, and {:.4} now{}",
            earlier.loss,
            earlier.step,
            now.loss,
            if clips { "" } else { "; gradients are not clipped" }
        ));
        let Some((at, _, before)) = grown else {
            return why;
        };
        let tapped = &own.seen[at];
        let mut trail: Vec<_> = inputs(&own.seen, at).map(|it| it.row.clone()).collect();
        trail.push(tapped.row.clone());
        why.trail = trail;
        let name = self.place(tapped);
        let what = tapped
            .operation
            .as_ref()
            .map_or_else(|| format!("`{name}`"), |it| format!("`{it}` in `{name}`"));
        why.verdict = format!(
            "no NaN, but the loss has grown; the first operation whose values have grown is {what}"
        );
        why.grown = Some(Grown {
            operation: tapped.operation.clone(),
            name,
            now: tapped.row.statistics.rms,
            before,
            step: earlier.step,
            loss: (now.loss, earlier.loss),
        });
        why
    }
}
