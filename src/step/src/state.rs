//! [`StepState`]: all that an optimizer step reads and changes, and the step itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use burn::module::ParamId;
use burn::optim::GradientsParams;
use stratoscope_bert::ops::Stop;
use stratoscope_bert::parallel::computed_in_slices;
use stratoscope_bert::recompute::parameters_of_parts;
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::Replicas;

use super::accumulated::Accumulated;
use super::backward::forward_backward;
use super::changed::StepChange;
use super::exchange::{ExchangeMode, Exchanged, LocalSgdState};
use super::finite::NonFinite;
use super::forward::BatchOutputs;
use super::loss_scale::LossScale;
use super::timed::{DeviceWork, PassTimer, device_work};
use super::workers::{Remote, Since};
use stratoscope_arguments::Compiled;
use stratoscope_arguments::class_weight::ClassWeights;
use stratoscope_arguments::context::mixed_precision::Policy;
use stratoscope_metrics::loss::Loss;
use stratoscope_metrics::metric::Tallies;
use stratoscope_network::AnyNetwork;
use stratoscope_network::made::Made;
use stratoscope_optim::OptimizerState;
use stratoscope_optim::schedule::span::Span;
use stratoscope_report::counters::Counters;
use stratoscope_report::pipeline::PipelineStep;
use stratoscope_report::run_report::LayerRatio;

/// What stays the same from step to step.
#[derive(Clone)]
pub struct StepSettings {
    /// The settings of `compile!`.
    pub compiled: Arc<Compiled>,
    /// The loss.
    pub loss: Loss,
    /// How replicas are combined.
    pub exchange: ExchangeMode,
    /// The parameters that weight decay leaves alone.
    pub undecayed: Arc<HashSet<ParamId>>,
    /// What the rate of a parameter is multiplied with, where it is not 1.
    pub layer_factors: Arc<HashMap<ParamId, f64>>,
    /// What each example counts in the loss, by its class.
    pub class_weights: Option<ClassWeights>,
    /// Fixes the dropout masks.
    pub seed: u64,
    /// Optimizer steps of the whole run, and how far a schedule over it is at each.
    pub span: Span,
    /// What the schedule's rate is multiplied with.
    pub rate_factor: f64,
    /// Whether layers are computed once more in the backward pass.
    pub recompute: bool,
    /// Whether each step records how much it changes the weights.
    pub measures_updates: bool,
    /// The rate of every dropout, where the run has changed it.
    pub dropout: Option<f64>,
    /// What is changed about the step that comes, or is running.
    pub change: Option<Arc<StepChange>>,
}

/// A batch with its number in the run, which is that of its dropout masks.
#[derive(Clone, Copy, Debug)]
pub struct NumberedBatch<'a> {
    /// Its number in the run: that of its dropout masks.
    pub number: u64,
    /// The batch.
    pub batch: &'a Batch,
}

/// The sum of the losses of some examples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossSum {
    /// The sum of the losses.
    pub sum: f64,
    /// How many there are.
    pub examples: usize,
    /// How many examples they count as ([`Batch::counted`]): in whole steps, as many as there are.
    counted: f64,
}

impl LossSum {
    /// Of the examples of whole steps.
    pub fn of_steps(sum: f64, examples: usize) -> Self {
        Self {
            sum,
            examples,
            counted: examples as f64,
        }
    }

    /// Adds the loss of a batch.
    pub fn add(&mut self, loss: f64, batch: &Batch) {
        self.sum += loss;
        self.examples += batch.size();
        self.counted += batch.counted();
        // Weights of tokens are rounded, but the batches of a step count together as many examples as they have.
        const ROUNDING: f64 = 1e-6;
        let whole = self.counted.round();
        if (self.counted - whole).abs() <= ROUNDING * whole {
            self.counted = whole;
        }
    }

    /// The mean over the examples, or over their tokens with a class. 0 for examples without such tokens.
    pub fn mean(self) -> f64 {
        match self.examples > 0 && self.counted == 0.0 {
            true => 0.0,
            false => self.sum / self.counted,
        }
    }
}

/// All that an optimizer step reads and changes.
pub struct StepState {
    /// The weights: a copy on every replica, one central copy, or rows on servers.
    pub replicas: Replicas<AnyNetwork>,
    /// What the layers compute in: the global policy when the model was made.
    pub policy: Policy,
    /// The optimizer's moments, one set for each copy of the variables.
    pub moments: Vec<OptimizerState>,
    /// What the loss is multiplied by.
    pub loss_scale: LossScale,
    /// How far replicas that step alone have moved since their parameters were averaged.
    pub local: LocalSgdState,
    /// What metrics are computed from: the counts of the epoch that is running, or was the last.
    pub tallies: Option<Tallies>,
    /// The gradients of the micro-batches since the last optimizer step, per replica.
    pub accumulated: Vec<Accumulated>,
    /// Σ g² over them under the scale of the loss, where it was read with the outputs of the last of those batches.
    pub squares: Option<f64>,
    /// The loss over those batches.
    pub accumulated_loss: LossSum,
    /// Batches since the run began: the number of the dropout masks.
    pub batches: u64,
    /// Optimizer steps since the run began.
    pub steps: u64,
    /// What the run has counted.
    pub counters: Counters,
    /// The bytes of each gradient, per replica, at the first optimizer step since `compile!`.
    pub gradient_bytes: HashMap<ParamId, u64>,
    /// Examples and tokens of each replica's part of the last batch; none before the first.
    pub last_batch: Vec<(usize, usize)>,
    /// Whether the layers were computed once more in its backward pass.
    pub recomputed: bool,
    /// What the stages of a pipeline did in it.
    pub pipeline: Option<PipelineStep>,
    /// The function that has made the network, where one has.
    pub made_by: Option<Made>,
    /// The processes that compute the other replicas, where they have processes.
    pub workers: Option<Remote>,
    /// What they have done, with local SGD, since this process had the state of all replicas.
    pub since: Since,
    /// Notes when each replica computes what, while a profile is made.
    pub timer: Option<Arc<PassTimer>>,
}

/// What an optimizer step would do, before any weight has changed.
pub enum Proposed {
    /// The gradients are there, and [`StepState::accept`] applies them.
    Update(Proposal),
    /// A gradient overflowed under the scale of the loss: nothing is updated, the next scale is smaller.
    Skipped,
    /// A gradient is not finite: nothing is updated.
    NotFinite {
        /// Where.
        found: NonFinite,
        /// The learning rate of the step.
        rate: f64,
        /// The loss of the step.
        loss: f64,
        /// The norm of the gradient.
        norm: f64,
    },
}

/// The gradients of a step, exchanged and finite, with the numbers that are known before the update.
pub struct Proposal {
    /// What became of the gradients.
    pub exchanged: Exchanged,
    /// The mean loss over the examples of the step.
    pub loss: f64,
    /// The learning rate.
    pub rate: f64,
    /// The norm over all gradients before clipping.
    pub norm: f64,
}

/// An optimizer step that was made.
#[derive(Clone, Debug)]
pub struct StepRecorded {
    /// Updates of the weights: 1, or one for each replica that pushed.
    pub updates: u64,
    /// The mean loss over the examples of the step, before the update.
    pub loss: f64,
    /// The learning rate.
    pub rate: f64,
    /// The norm over all gradients before clipping.
    pub norm: f64,
    /// How much it has changed each layer; empty where that is not measured, as on a GPU.
    pub ratios: Arc<[LayerRatio]>,
    /// Whether the change of every variable with a gradient was measured and is finite: then all weights that the update
    /// has changed are finite.
    pub are_weights_finite: bool,
}

/// Replicas that divide the weights among them gather those of a layer when it computes, where the network can compute its
/// layers one by one. Devices with slices of the layers compute with them, where all of a layer is cut as it has to be.
pub fn gathered_in_parts(mut replicas: Replicas<AnyNetwork>) -> Replicas<AnyNetwork> {
    if !replicas.sliced_over().is_empty() {
        let cut = replicas.records().iter().filter(|it| !it.rows.is_empty());
        let axes = cut.map(|record| (record.param, record.axis)).collect();
        let parts = computed_in_slices(replicas.structure(), &axes);
        replicas.gather_in_parts(parts);
        return replicas;
    }
    if replicas.structure().can_recompute() {
        let parts = parameters_of_parts(replicas.structure());
        replicas.gather_in_parts(parts);
    }
    replicas
}

impl StepState {
    /// Weights without anything that belongs to a training run.
    pub fn new(replicas: Replicas<AnyNetwork>, policy: Policy) -> Self {
        Self {
            replicas: gathered_in_parts(replicas),
            policy,
            moments: Vec::new(),
            loss_scale: LossScale::of(policy),
            local: LocalSgdState::default(),
            tallies: None,
            accumulated: Vec::new(),
            squares: None,
            accumulated_loss: LossSum::default(),
            batches: 0,
            steps: 0,
            counters: Counters::default(),
            gradient_bytes: HashMap::new(),
            last_batch: Vec::new(),
            recomputed: false,
            pipeline: None,
            made_by: None,
            workers: None,
            since: Since::default(),
            timer: None,
        }
    }

    /// Drops all that training has left but the weights: `compile!` begins anew.
    pub fn reset(&mut self, tallies: Tallies) {
        self.begin_run(0, 0);
        self.moments.clear();
        self.replicas.values_changed();
        self.ensure_moments();
        self.loss_scale = LossScale::of(self.policy);
        self.local = LocalSgdState::default();
        self.since.forget();
        self.tallies = Some(tallies);
        self.gradient_bytes.clear();
        self.last_batch.clear();
        self.pipeline = None;
    }

    /// A run begins, or ends with an error: gradients of an earlier one are dropped, and it is counted from these
    /// numbers of batches and steps.
    pub fn begin_run(&mut self, batches: u64, steps: u64) {
        self.accumulated.clear();
        self.accumulated_loss = LossSum::default();
        self.batches = batches;
        self.steps = steps;
        self.counters = Counters::default();
    }

    /// One set of moments for each copy of the variables. A panic in an update, as of a GPU without memory, loses
    /// the moments it was changing.
    pub fn ensure_moments(&mut self) {
        let copies = self.replicas.storage_devices().len();
        self.moments.resize_with(copies, OptimizerState::default);
    }

    /// Optimizer steps since `compile!`.
    pub fn steps_since_compile(&self) -> u64 {
        self.moments.first().map_or(0, OptimizerState::steps)
    }

    /// The learning rate of the next optimizer step. Schedules over the run count its steps, others all steps since
    /// `compile!`.
    pub fn rate(&self, settings: &StepSettings) -> f64 {
        let schedule = settings.compiled.optimizer.schedule;
        let step = match schedule.spans_the_run() {
            true => settings.span.position(self.steps),
            false => self.steps_since_compile(),
        };
        schedule.rate(step, settings.span.planned()) * settings.rate_factor
    }

    /// Runs a batch forward and backward on all replicas and adds its gradients to those of the step. `shares` are the
    /// examples that each replica sees in the whole step. `None` where the batch was given up, because an interrupt came
    /// and it took long: then nothing has changed.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn accumulate(
        &mut self,
        settings: &StepSettings,
        NumberedBatch { number, batch }: NumberedBatch<'_>,
        shares: &[usize],
        stop: &Stop,
    ) -> Result<Option<BatchOutputs>> {
        let is_first = self.accumulated.is_empty();
        if is_first {
            self.replicas.begin_step();
        }
        let mut pass = self.coming_pass(settings, number);
        pass.timer.clone_from(&self.timer);
        self.squares = None;
        if self.workers.is_some() {
            self.recomputed = settings.recompute;
            return self.accumulate_with_workers(batch, shares, pass, stop);
        }
        let accumulated = std::mem::take(&mut self.accumulated);
        let (accumulated, outputs) =
            forward_backward(&self.replicas, accumulated, batch, shares, pass, stop)?;
        self.recomputed = settings.recompute || self.replicas.gathers_in_parts();
        self.squares = match outputs.as_deref() {
            Some([(_, only)]) => only.squares,
            _ => None,
        };
        if outputs.is_some() || !is_first {
            self.accumulated = accumulated;
        }
        Ok(outputs)
    }

    /// The optimizer step at the end of a group of micro-batches, up to its update: the gradients are exchanged and
    /// looked at, no weight has changed.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn propose(&mut self, settings: &StepSettings, shares: &[usize]) -> Result<Proposed> {
        let loss = std::mem::take(&mut self.accumulated_loss).mean();
        // The mean gradient over all examples of the step; or each replica's own.
        let timer = self.timer.clone();
        let (exchanged, norm) = device_work(timer, DeviceWork::Exchange, || -> Result<_> {
            let exchanged = self.exchange(settings.exchange, shares)?;
            let exchanged = settings.changed(self.replicas.structure(), exchanged);
            let norm = exchanged.norm();
            Ok((exchanged, norm))
        })?;
        if !norm.is_finite() && self.loss_scale.skips() {
            self.skip(settings.exchange);
            return Ok(Proposed::Skipped);
        }
        let rate = self.rate(settings);
        if let Err(found) = exchanged.check_finite(self.replicas.structure()) {
            return Ok(Proposed::NotFinite {
                found,
                rate,
                loss,
                norm,
            });
        }
        Ok(Proposed::Update(Proposal {
            exchanged,
            loss,
            rate,
            norm,
        }))
    }

    /// The update of a proposed step: clip, update the moments, move the weights. With `wait` the devices have
    /// finished when it returns.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn accept(
        &mut self,
        proposal: Proposal,
        settings: &StepSettings,
        wait: bool,
    ) -> Result<StepRecorded> {
        let Proposal {
            exchanged,
            loss,
            rate,
            norm,
        } = proposal;
        // Of one copy of the variables, which all copies are equal to after an all-reduce.
        let gradients = match settings.exchange {
            ExchangeMode::AllReduce => exchanged.gradients.first().map(GradientsParams::len),
            ExchangeMode::LocalSgd { .. } | ExchangeMode::Push => None,
        };
        let timer = self.timer.clone();
        let update = || self.apply(exchanged, rate, settings, wait);
        let (updates, changes) = device_work(timer, DeviceWork::Update, update)?;
        let are_all_measured = gradients == Some(changes.len());
        let are_finite = changes.iter().all(|(_, change)| change.is_finite());
        Ok(StepRecorded {
            updates,
            loss,
            rate,
            norm,
            are_weights_finite: are_all_measured && are_finite,
            ratios: self.by_layer(changes).into(),
        })
    }

    /// Leaves the update out and makes the scale of the loss smaller.
    fn skip(&mut self, mode: ExchangeMode) {
        self.loss_scale.skipped();
        self.counters.skipped_steps += 1;
        let reduced = mode == ExchangeMode::AllReduce && self.replicas.len() > 1;
        self.counters.all_reduces += u64::from(reduced);
    }
}

impl StepState {
    /// The replicas of a local SGD run as they are between two averages.
    pub fn unaveraged(&self) -> Option<(LocalSgdState, Vec<AnyNetwork>)> {
        let is_apart = self.local.steps > 0;
        is_apart.then(|| (self.local.clone(), self.replicas.modules().to_vec()))
    }

    /// Gives the replicas back their own weights.
    pub fn restore_unaveraged(&mut self, (local, modules): (LocalSgdState, Vec<AnyNetwork>)) {
        self.local = local;
        self.since.forget();
        self.replicas.modules_mut().clone_from_slice(&modules);
    }
}
