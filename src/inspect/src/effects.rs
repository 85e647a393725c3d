//! What the coming step will do, in numbers that can be compared with those of the same step after a change: its loss, the
//! outputs of its examples, the norm of its gradient and the size of its update by layer.

use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_bert::taps::Taps;
use stratoscope_diagnostics::Result;

use super::Inspection;
use super::tensors::{merged, of_differences};
use stratoscope_report::inspection::{ExampleView, layer_of};

/// What the name of a layer's attention probabilities ends with, [B, N, S, S].
const PROBABILITIES: &str = "probabilities";
/// What attention computes on its way and hands out only if it is wanted.
const ON_THE_WAY: [&str; 4] = ["query", "key", "value", "sum"];

/// What the coming step will do.
#[derive(Clone, Debug, PartialEq)]
pub struct StepEffects {
    /// The mean over the examples, with the dropout masks of the step.
    pub loss: f64,
    /// The examples of the step with what the model makes of them, in the order of `run.batch()`.
    pub examples: Vec<ExampleView>,
    /// Over all gradients, before clipping; the largest one where replicas step alone.
    pub gradient_norm: f64,
    /// The norm of what the update adds to each layer, in the order of the network; where replicas step alone that of the
    /// first.
    pub updates: Vec<(String, f64)>,
}

/// An output that a layer hands out.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownOutput {
    /// The name of the layer, as taps see it.
    pub name: String,
    /// Attention heads whose outputs lie in it side by side, where it is that of attention.
    pub heads: Option<usize>,
}

impl Inspection<'_> {
    /// Computes the step without making it.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn effects(&self, call: &str) -> Result<StepEffects> {
        let batch = self.batch()?;
        let (step, replicas) = (self.step, &self.step.replicas);
        let (mode, shares) = (self.settings.exchange, self.shares());
        let own = self.computed(call)?;
        let exchanged = step.coming_exchange(own, mode, self.settings, &shares)?;
        let gradient_norm = exchanged.norm();
        let after = step.coming_modules(exchanged, mode, self.settings);
        let one_copy = replicas.modules().iter().take(replicas.modules_of_a_copy());
        let pairs = one_copy.zip(&after);
        let mut each: Vec<_> = pairs.map(|(old, new)| of_differences(old, new)).collect();
        let changed = match replicas.is_sharded() {
            true => merged(each),
            false => each.swap_remove(0),
        };
        let mut updates: Vec<(String, f64)> = Vec::new();
        for record in replicas.records().iter().filter(|it| it.trainable) {
            let Some(statistics) = changed.get(&record.param) else {
                continue;
            };
            let (name, square) = (layer_of(&record.name), statistics.norm.powi(2));
            match updates.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += square,
                None => updates.push((name.to_owned(), square)),
            }
        }
        for (_, norm) in &mut updates {
            *norm = norm.sqrt();
        }
        Ok(StepEffects {
            loss: batch.loss,
            examples: batch.examples,
            gradient_norm,
            updates,
        })
    }

    /// The outputs that the layers of the network hand out.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn known_outputs(&self, call: &str) -> Result<Vec<KnownOutput>> {
        let seen = Arc::<Mutex<Vec<(String, Vec<usize>)>>>::default();
        let sink = Arc::clone(&seen);
        let taps = Taps::new(
            |name| {
                let last = name.rsplit('.').next().unwrap_or(name);
                !ON_THE_WAY.contains(&last)
            },
            move |name, shape, _| {
                let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push((name.to_owned(), shape.to_vec()));
            },
        );
        if let Some(batch) = self.batches.first() {
            self.outputs(0, &batch.slice(0..1), false, &[taps], call)?;
        }
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        let heads = |name: &str| {
            let probabilities = format!("{name}.{PROBABILITIES}");
            let found = seen.iter().find(|(other, _)| *other == probabilities);
            found.and_then(|(_, shape)| shape.get(1).copied())
        };
        let outputs = seen
            .iter()
            .filter(|(name, _)| !name.ends_with(PROBABILITIES));
        let mut known: Vec<KnownOutput> = Vec::new();
        for (name, _) in outputs {
            if known.iter().all(|it| it.name != *name) {
                known.push(KnownOutput {
                    heads: heads(name),
                    name: name.clone(),
                });
            }
        }
        Ok(known)
    }
}
