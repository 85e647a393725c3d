//! The numbers of the latest optimizer steps: for the card of a stop, for conditions, and for `run.update_ratios()`.

use std::collections::VecDeque;
use std::sync::Arc;

use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;

use super::{At, Hook};
use crate::breakpoints::accuracy;
use stratoscope_metrics::metric::correct;
use stratoscope_report::run_report::{LayerRatio, StepPoint};
use stratoscope_step::StepRecorded;
use stratoscope_step::forward::BatchOutputs;

/// The number of steps that are kept.
pub(crate) const RECENT: usize = 20;

/// Keeps the numbers of the latest steps, in [`Progress::recent`](crate::progress::Progress::recent).
#[derive(Default)]
pub struct RecentSteps;

/// The latest optimizer steps of a run.
#[derive(Clone, Default)]
pub struct Recent {
    points: VecDeque<StepPoint>,
    /// How much each of the latest steps has changed the layers, where that is measured.
    ratios: VecDeque<StepRatios>,
    /// The best accuracy that [`ACCURACY_STEPS`](crate::breakpoints::ACCURACY_STEPS) steps had.
    pub best_accuracy: Option<f64>,
    coming: Answered,
}

/// How much an optimizer step has changed the layers.
#[derive(Clone)]
pub struct StepRatios {
    /// The number of the step.
    pub step: u64,
    /// The update ratio of each layer.
    pub layers: Arc<[LayerRatio]>,
}

/// The examples of the coming step, and how many of them are answered right, where outputs are classes.
#[derive(Clone, Copy, Default)]
struct Answered {
    right: Option<usize>,
    examples: usize,
}

impl Recent {
    /// What a checkpoint has kept: the latest of these steps. How much they have changed the layers is not kept.
    pub fn of(points: Vec<StepPoint>, best_accuracy: Option<f64>) -> Self {
        let points = points.into_iter().rev().take(RECENT).rev();
        Self {
            points: points.collect(),
            best_accuracy,
            ..Self::default()
        }
    }

    /// The latest steps, the oldest first.
    pub fn points(&self) -> impl Iterator<Item = StepPoint> + '_ {
        self.points.iter().copied()
    }

    /// The latest steps whose changes were measured, the oldest first.
    pub fn ratios(&self) -> &VecDeque<StepRatios> {
        &self.ratios
    }

    /// The share of the examples of the coming step that are answered right.
    pub(crate) fn accuracy_of_the_coming(&self) -> Option<f64> {
        let Answered { right, examples } = self.coming;
        let right = right.filter(|_| examples > 0);
        right.map(|right| right as f64 / examples as f64)
    }

    fn add(&mut self, step: u64, made: &StepRecorded) {
        let point = StepPoint {
            step,
            loss: made.loss,
            gradient_norm: made.norm,
            learning_rate: made.rate,
            accuracy: self.accuracy_of_the_coming(),
        };
        keep(&mut self.points, point);
        if !made.ratios.is_empty() {
            let layers = Arc::clone(&made.ratios);
            keep(&mut self.ratios, StepRatios { step, layers });
        }
        let now = accuracy(self.points.iter().map(|point| point.accuracy));
        self.best_accuracy = match (now, self.best_accuracy) {
            (Some(now), Some(best)) => Some(now.max(best)),
            (now, best) => now.or(best),
        };
    }
}

/// Adds the latest, and drops the oldest of more than [`RECENT`].
fn keep<T>(latest: &mut VecDeque<T>, item: T) {
    if latest.len() == RECENT {
        latest.pop_front();
    }
    latest.push_back(item);
}

impl Hook for RecentSteps {
    fn before_step(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        at.run.progress.recent.coming = Answered::default();
        Ok(())
    }

    fn computed(
        &mut self,
        at: At<'_, '_, '_, '_>,
        batch: &Batch,
        outputs: &BatchOutputs,
    ) -> Result<()> {
        let classes = at.lease.files.classes();
        let threshold = at.run.settings.loss.threshold();
        let right = outputs
            .iter()
            .map(|(part, output)| correct(&part.labels, &output.outputs, classes, threshold));
        let right: Option<usize> = right.sum();
        let coming = &mut at.run.progress.recent.coming;
        if let Some(right) = right {
            coming.right = Some(coming.right.unwrap_or(0) + right);
        }
        coming.examples += batch.size();
        Ok(())
    }

    fn updated(&mut self, at: At<'_, '_, '_, '_>, made: &StepRecorded) -> Result<()> {
        let step = at.lease.step.steps;
        at.run.progress.recent.add(step, made);
        Ok(())
    }
}
