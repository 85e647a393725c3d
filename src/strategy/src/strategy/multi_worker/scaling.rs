//! How a strategy would do on another number of workers.

use stratoscope_diagnostics::Result;

use super::MultiWorkerMirroredStrategy;
use crate::scaling::{self, ScalingOptions, ScalingPrediction};

impl MultiWorkerMirroredStrategy {
    /// What a step would cost on 1, 2, 4, … `workers`: its time, the shares of computing and communication, the efficiency,
    /// and how often a snapshot is worth its time. The numbers come from the latest run under this strategy, from `options`,
    /// or are assumed; the prediction says which is which. Nothing is run.
    ///
    /// # Errors
    /// SC0915 for a number outside its range, and for one that is neither measured nor given.
    pub fn predict_scaling(
        &self,
        workers: usize,
        options: ScalingOptions,
    ) -> Result<ScalingPrediction> {
        scaling::predict(self.team(), workers, &options)
    }
}
