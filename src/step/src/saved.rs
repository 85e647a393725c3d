//! [`SavedStep`]: all that an optimizer step changes, at a moment between two steps. Stepping on after
//! [`StepState::restore`] gives the same bits on the CPU as stepping on at that moment.
//!
//! Tensors are shared with the state. On the CPU the next update then writes to new memory and leaves the shared one to
//! the saved state: a copy of each tensor that the step changes, made while the update reads it anyway, and none of
//! tensors that do not change, such as those of frozen layers. A copy made at once costs the same memory and one pass
//! more. On a GPU every update writes new buffers, so that sharing costs memory only.

use std::collections::HashMap;

use burn::module::ParamId;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::SavedValues;

use super::exchange::LocalSgdState;
use super::loss_scale::LossScale;
use super::{LossSum, StepState};
use stratoscope_metrics::metric::Tallies;
use stratoscope_network::AnyNetwork;
use stratoscope_optim::OptimizerState;
use stratoscope_report::counters::Counters;

/// All that an optimizer step changes, but gradients: between two steps there are none.
#[derive(Clone)]
pub struct SavedStep {
    /// The variables of all replicas.
    pub values: SavedValues<AnyNetwork>,
    /// The optimizer's state of each replica.
    pub moments: Vec<OptimizerState>,
    /// The scale of the loss under `mixed_float16`.
    pub loss_scale: LossScale,
    /// Where local SGD stands.
    pub local: LocalSgdState,
    /// The counts of the epoch's metrics.
    pub tallies: Option<Tallies>,
    /// Batches that were computed.
    pub batches: u64,
    /// Optimizer steps that were made.
    pub steps: u64,
    /// What was counted so far.
    pub counters: Counters,
    /// The bytes of each variable's gradient in the latest exchange.
    pub gradient_bytes: HashMap<ParamId, u64>,
    /// Examples and tokens of each replica in the latest batch.
    pub last_batch: Vec<(usize, usize)>,
}

impl SavedStep {
    /// The size of all tensors and counts in bytes, as if nothing were shared.
    pub fn bytes(&self) -> u64 {
        let moments = self.moments.iter().map(OptimizerState::all_bytes);
        let tallies = self.tallies.as_ref().map_or(0, Tallies::bytes);
        self.values.bytes() + moments.sum::<u64>() + tallies
    }
}

impl StepState {
    /// The state of this moment, between two optimizer steps.
    pub fn saved(&self) -> SavedStep {
        SavedStep {
            values: self.replicas.saved_values(),
            moments: self.moments.clone(),
            loss_scale: self.loss_scale,
            local: self.local.clone(),
            tallies: self.tallies.clone(),
            batches: self.batches,
            steps: self.steps,
            counters: self.counters,
            gradient_bytes: self.gradient_bytes.clone(),
            last_batch: self.last_batch.clone(),
        }
    }

    /// Puts a state back. Gradients of micro-batches since the last optimizer step are dropped.
    ///
    /// # Errors
    /// SC0915 for the state of a model with other variables; then nothing has changed.
    pub fn restore(&mut self, saved: &SavedStep) -> Result<()> {
        self.replicas.restore_values(&saved.values)?;
        self.since.forget();
        self.accumulated.clear();
        self.accumulated_loss = LossSum::default();
        self.moments.clone_from(&saved.moments);
        self.loss_scale = saved.loss_scale;
        self.local = saved.local.clone();
        self.tallies.clone_from(&saved.tallies);
        self.batches = saved.batches;
        self.steps = saved.steps;
        self.counters = saved.counters;
        self.gradient_bytes.clone_from(&saved.gradient_bytes);
        self.last_batch.clone_from(&saved.last_batch);
        Ok(())
    }
}
