//! The arguments of `compile!` with every default filled in and every value checked.

use std::collections::HashSet;

use burn::module::ParamId;

use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::Metric;
use stratoscope_optim::Optimizer;

/// How a model is trained. It does not change until the next `compile!`.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// How gradients become updates.
    pub optimizer: Optimizer,
    /// `None`: a model that only predicts.
    pub loss: Option<Loss>,
    /// What is measured beside the loss.
    pub metrics: Vec<Metric>,
    /// Batches from one return to the host to the next.
    pub steps_per_execution: u64,
    /// Batches of an optimizer step.
    pub gradient_accumulation_steps: u64,
    /// Optimizer steps between two averages of the parameters; 1: gradients are averaged at every step.
    pub sync_every: u64,
    /// The variables that were frozen.
    pub frozen: HashSet<ParamId>,
}
