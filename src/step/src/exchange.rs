//! How replicas combine their gradients.
//!
//! | mode | what is exchanged | the update |
//! | --- | --- | --- |
//! | all-reduce | the mean gradient over all examples | every copy of the variables makes the same update |
//! | local SGD (`sync_every` > 1) | nothing; from time to time the mean of the *parameters* | each replica updates its own copy with its own moments |
//! | push (asynchronous parameter servers) | one replica's gradient at a time | each gradient is an update of the one copy |
//!
//! Local SGD: Stich 2019, "Local SGD converges fast and communicates little".

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{ReplicaId, Replicas, Strategy};

use super::StepState;
use super::finite::{NonFinite, gradients_are_finite};
use super::loss_scale::unscaled;
use stratoscope_network::AnyNetwork;
use stratoscope_optim::global_norm;
use stratoscope_report::counters::Exchange;

/// How the replicas of a run exchange. Decided once, when the run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeMode {
    /// The gradients are averaged over the replicas at every step.
    AllReduce,
    /// Local SGD: the parameters are averaged after every so many steps.
    LocalSgd {
        /// Steps from one average to the next.
        sync_every: u64,
    },
    /// Asynchronous parameter servers: every replica's gradient is applied on its own.
    Push,
}

impl ExchangeMode {
    /// Averaging parameters needs several copies of them.
    pub fn of(replicas: &Replicas<AnyNetwork>, sync_every: u64) -> Self {
        if sync_every > 1 && replicas.copies() > 1 {
            Self::LocalSgd { sync_every }
        } else if replicas.strategy().is_some_and(Strategy::is_asynchronous) {
            Self::Push
        } else {
            Self::AllReduce
        }
    }

    /// How a run in this mode counts. `full` and `last` are the examples of the largest batch of a group of
    /// micro-batches, and of the last group of an epoch: a replica without an example pushes nothing.
    pub fn counted(self, replicas: usize, (full, last): (usize, usize)) -> Exchange {
        let workers = |examples: usize| examples.min(replicas) as u64;
        match self {
            Self::AllReduce => Exchange::AllReduce,
            Self::LocalSgd { sync_every } => Exchange::Average { every: sync_every },
            Self::Push => Exchange::Push {
                each: workers(full),
                last: workers(last),
            },
        }
    }
}

/// How far the replicas of a local SGD run have moved since their parameters were averaged.
#[derive(Clone, Debug, Default)]
pub struct LocalSgdState {
    /// Optimizer steps.
    pub steps: u64,
    /// Examples of each replica.
    pub examples: Vec<usize>,
}

/// The gradients of an optimizer step, ready to be applied.
pub struct Exchanged {
    /// One for every copy of the variables, all the same; or one for every replica, each its own.
    pub gradients: Vec<GradientsParams>,
    /// The norm of each; of the first alone where all are the same.
    pub norms: Vec<f64>,
    /// The examples of each replica.
    pub shares: Vec<usize>,
    /// A gradient of another process that is no number.
    pub elsewhere: Option<NonFinite>,
}

impl Exchanged {
    /// The norm over all gradients; the largest one where replicas step alone. Not finite where one is not.
    pub fn norm(&self) -> f64 {
        let largest = |most: f64, &norm: &f64| match norm.is_nan() {
            true => norm,
            false if most.is_nan() => most,
            false => most.max(norm),
        };
        self.norms.iter().fold(0.0, largest)
    }

    /// The variable whose gradient is not finite, if there is one.
    pub(super) fn check_finite(&self, network: &AnyNetwork) -> std::result::Result<(), NonFinite> {
        let mut each = self.gradients.iter().zip(&self.norms);
        each.try_for_each(|(gradients, &norm)| gradients_are_finite(network, gradients, norm))?;
        self.elsewhere.clone().map_or(Ok(()), Err)
    }
}

impl StepState {
    /// The gradients to apply, from those that have accumulated: their mean over the replicas, weighted by
    /// `shares`, the examples of each; or each replica's own.
    pub(super) fn exchange(&mut self, mode: ExchangeMode, shares: &[usize]) -> Result<Exchanged> {
        let (gradients, different) = match (&self.workers, mode) {
            (Some(_), ExchangeMode::LocalSgd { .. }) => return self.exchange_nothing(shares),
            (Some(_), _) => (vec![self.reduce_with_workers(shares)?], 1),
            (None, _) => {
                let gradients = self.own_gradients();
                match mode {
                    ExchangeMode::AllReduce => (self.replicas.all_reduce(gradients, shares)?, 1),
                    ExchangeMode::LocalSgd { .. } | ExchangeMode::Push => (gradients, shares.len()),
                }
            }
        };
        if self.gradient_bytes.is_empty()
            && let Some(first) = gradients.first()
        {
            self.gradient_bytes = sizes(self.replicas.structure(), first);
        }
        // One replica's own gradients are those of the step, and their norm may be there already.
        let scale = self.loss_scale.scale();
        let known = self.squares.take().map(|squares| squares.sqrt() / scale);
        let norm =
            |gradients| known.unwrap_or_else(|| global_norm(self.replicas.structure(), gradients));
        Ok(Exchanged {
            norms: gradients.iter().take(different).map(norm).collect(),
            gradients,
            shares: shares.to_vec(),
            elsewhere: None,
        })
    }

    /// Local SGD by workers: the gradients stay where they are.
    fn exchange_nothing(&mut self, shares: &[usize]) -> Result<Exchanged> {
        let (gradients, norms, elsewhere) = self.measure_with_workers()?;
        if self.gradient_bytes.is_empty()
            && let Some(first) = gradients.first()
        {
            self.gradient_bytes = sizes(self.replicas.structure(), first);
        }
        Ok(Exchanged {
            gradients,
            norms,
            shares: shares.to_vec(),
            elsewhere,
        })
    }

    /// The gradients that each replica has accumulated, without the scale of the loss.
    pub(super) fn own_gradients(&mut self) -> Vec<GradientsParams> {
        let accumulated = std::mem::take(&mut self.accumulated);
        let scale = self.loss_scale.scale();
        let gradients = accumulated.into_iter().map(|mut sum| sum.take());
        gradients
            .map(|own| unscaled(self.replicas.structure(), own, scale))
            .collect()
    }

    /// Averages the parameters of replicas that have stepped alone since the last average; each has the weight of
    /// the examples it saw. Whatever ends a run, the replicas are equal afterwards.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn average_parameters(&mut self) -> Result<()> {
        let local = std::mem::take(&mut self.local);
        if local.steps == 0 {
            return Ok(());
        }
        if self.is_behind() {
            self.average_with_workers(&local.examples)?;
        } else {
            self.replicas.average(&local.examples)?;
            self.replicas.values_changed();
        }
        self.counters.parameter_averages += 1;
        Ok(())
    }

    /// Every replica fetches the parameters, where they are kept by asynchronous servers.
    pub(super) fn fetch_on_all(&mut self, mode: ExchangeMode) -> Result<()> {
        if mode == ExchangeMode::Push {
            for worker in 0..self.replicas.len() {
                self.replicas.fetch(ReplicaId(worker))?;
            }
        }
        Ok(())
    }
}

/// The bytes of every gradient.
fn sizes(network: &AnyNetwork, gradients: &GradientsParams) -> HashMap<ParamId, u64> {
    struct Sizes<'a>(&'a GradientsParams, HashMap<ParamId, u64>);
    impl ModuleVisitor for Sizes<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                let bytes = gradient.shape().num_elements() * gradient.dtype().size();
                self.1.insert(param.id, bytes as u64);
            }
        }
    }
    let mut sizes = Sizes(gradients, HashMap::new());
    network.visit(&mut sizes);
    sizes.1
}
