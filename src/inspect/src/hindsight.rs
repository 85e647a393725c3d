//! What is seen of a step that is replayed or comes: every output of a layer and every gradient, with the bits of the run.

use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_bert::taps::{Sighting, Taps};
use stratoscope_diagnostics::Result;

use super::Inspection;

use stratoscope_report::inspection::{Direction, Probe, Statistics};

impl Inspection<'_> {
    /// Runs the batch of the step with this index forward and backward, and returns all that is seen of it, in the order of
    /// computing, replica by replica.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn probes(&self, micro_batch: usize, call: &str) -> Result<Vec<Probe>> {
        let step = self.number();
        let replicas = self.step.replicas.len();
        let seen: Vec<Arc<Mutex<Vec<Probe>>>> = (0..replicas).map(|_| Arc::default()).collect();
        let taps = seen.iter().enumerate().map(|(replica, seen)| {
            let seen = Arc::clone(seen);
            Taps::of_layers(move |sighting| {
                let probe = probe(sighting, (step, micro_batch, replica));
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(probe);
            })
        });
        let taps: Vec<Taps> = taps.collect();
        self.watched(micro_batch, &self.batches[micro_batch], &taps, call)?;
        let mut all: Vec<Probe> = Vec::new();
        for own in &seen {
            all.append(&mut own.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(all)
    }
}

fn probe(sighting: &Sighting<'_>, (step, micro_batch, replica): (u64, usize, usize)) -> Probe {
    Probe {
        name: sighting.layer.to_owned(),
        step,
        direction: match sighting.is_gradient {
            true => Direction::Backward,
            false => Direction::Forward,
        },
        micro_batch,
        replica,
        shape: sighting.shape.to_vec(),
        elements: sighting.elements.to_vec(),
        statistics: Statistics::of(sighting.elements),
    }
}
