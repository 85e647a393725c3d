//! What layers put out: `run.activations("encoder.layer.3.*")`.

use std::sync::{Arc, Mutex, PoisonError};

use stratoscope_bert::taps::Taps;
use stratoscope_diagnostics::Result;

use super::Inspection;
use super::tensors::statistics;

use stratoscope_bert::pattern::matches;
use stratoscope_diagnostics::problem;
use stratoscope_report::inspection::{Statistics, TensorRow, TensorStatistics};

/// What the taps of one replica have found, in the order of computing.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Vec<TensorRow>>>);

impl Found {
    /// Taps that keep the statistics of what matches.
    fn taps(&self, pattern: &str) -> Taps {
        let (found, pattern) = (self.clone(), pattern.to_owned());
        Taps::new(
            move |name| matches(&pattern, name),
            move |name, shape, elements| found.add(name, shape, statistics(elements)),
        )
    }

    fn add(&self, name: &str, shape: &[usize], statistics: Statistics) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match rows.iter_mut().find(|row| row.name == name) {
            // A layer that is used more than once, or another micro-batch.
            Some(row) => row.statistics.merge(&statistics),
            None => rows.push(TensorRow {
                name: name.to_owned(),
                shape: shape.to_vec(),
                statistics,
                by_replica: Vec::new(),
                compared_norm: None,
            }),
        }
    }

    fn rows(&self) -> Vec<TensorRow> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.clone()
    }
}

/// The rows of all replicas by name, in the order of replica 0, which always has examples.
fn together(found: &[Found]) -> Vec<TensorRow> {
    let each: Vec<Vec<TensorRow>> = found.iter().map(Found::rows).collect();
    let mut rows = each.first().cloned().unwrap_or_default();
    for row in &mut rows {
        let own = |rows: &Vec<TensorRow>| {
            let own = rows.iter().find(|it| it.name == row.name);
            own.map_or_else(Statistics::empty, |it| it.statistics.clone())
        };
        let by_replica: Vec<Statistics> = each.iter().map(own).collect();
        for other in &by_replica[1..] {
            row.statistics.merge(other);
        }
        if by_replica.len() > 1 {
            row.by_replica = by_replica;
        }
    }
    rows
}

impl Inspection<'_> {
    /// Statistics of what layers compute for the examples of the coming step, with its dropout masks.
    ///
    /// # Errors
    /// SC0105 for a pattern that matches nothing; SC0520 if it is interrupted, SC0907 if a device fails.
    pub fn activations(&self, pattern: &str) -> Result<TensorStatistics> {
        let title = self.title(&format!("activations `{pattern}`"));
        if self.batches.is_empty() {
            return Ok(TensorStatistics::none(title));
        }
        let replicas = self.step.replicas.len();
        let found: Vec<Found> = (0..replicas).map(|_| Found::default()).collect();
        let taps: Vec<Taps> = found.iter().map(|own| own.taps(pattern)).collect();
        for (index, batch) in self.batches.iter().enumerate() {
            let outputs = self.outputs(index, batch, true, &taps, "activations")?;
            // The outputs of the network have a name in every network, whether its layers are known or not.
            for (own, (part, outputs)) in found.iter().zip(&outputs) {
                let width = outputs.outputs.len() / part.size().max(1);
                if matches(pattern, OUTPUTS) {
                    own.add(
                        OUTPUTS,
                        &[part.size(), width],
                        Statistics::of(&outputs.outputs),
                    );
                }
            }
        }
        let rows = together(&found);
        if rows.is_empty() {
            return Err(self.nothing_matches(pattern)?);
        }
        let mut notes =
            vec!["computed with the dropout masks of this step; padding is included".to_owned()];
        if rows.iter().all(|row| row.name == OUTPUTS) && pattern.contains('*') {
            notes.push(
                "the layers of this network are not known: `tap(\"name\", tensor)` in its `logits` hands out a tensor"
                    .to_owned(),
            );
        }
        Ok(TensorStatistics::new(
            title,
            rows,
            self.replica_names(),
            notes,
        ))
    }

    /// SC0105 with the names that there are.
    fn nothing_matches(&self, pattern: &str) -> Result<Box<stratoscope_diagnostics::Diagnostic>> {
        let found = Found::default();
        if let Some(batch) = self.batches.first() {
            let all = [found.taps("*")];
            self.outputs(
                0,
                &batch.slice(0..1.min(batch.size())),
                false,
                &all,
                "activations",
            )?;
        }
        let rows = found.rows();
        let names = rows.iter().map(|row| row.name.as_str());
        let names = names.chain(std::iter::once(OUTPUTS));
        Ok(problem::unknown_tensor(pattern, names.collect()))
    }
}

/// The name of what a network puts out in the end.
const OUTPUTS: &str = "outputs";
