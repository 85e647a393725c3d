//! A training loop by hand: gradients of a batch as a value, to be added, divided, looked at and applied.
//! `fit!` does all of it by itself; this is for those who want to see what it does, and what goes wrong
//! when one does it oneself (SC0506).
//!
//! ```no_run
//! # use stratoscope_train::{BertForSequenceClassification, by_hand::Gradients};
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! # let (train, _) = stratoscope_data::debian_sections()?;
//! # let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
//! let mut sum = Gradients::zeros();
//! for index in 0..4 {
//!     sum += model.gradients(&train.skip(8 * index).take(8))?;
//! }
//! println!("{}", model.apply(sum / 4.0)?);
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul};
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_data::{Batch, Dataset};
use stratoscope_diagnostics::rules::{
    DropoutOff, DroppedMicroBatches, NoLoss, NotCompiled, ReplicaGradientsSummed,
};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::device::name_of;
use stratoscope_strategy::{ReplicaId, origin};

use crate::context::interrupt::{self, Listening};
use crate::context::warnings::notice;
use crate::loss::Loss;
use crate::model::compile::Compiled;
use crate::model::evaluate::{failed, interrupted, parts, read};
use crate::model::held::Held;
use crate::model::{Model, State};
use crate::network::Network;
use crate::optimizer::{OptimizerState, Squares, sum_of_squares};
use crate::prepare;
use crate::run::watch::Moment;
use crate::schedule::short;
use crate::step::Trainer;

/// What a loop by hand has done since its last step.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    /// Gradients for training computed since the model was made; each has a number of its own.
    computed: u64,
    /// How many there were at the last step.
    at_last_step: u64,
    /// How often replica 0's network was lent since a call last used all replicas, and in which cell.
    lent: (u32, Option<u64>),
}

/// How often replica 0's network is lent in one cell before that is taken for a loop.
const CALLS_OF_A_LOOP: u32 = 4;

impl ByHand {
    /// A call that uses all replicas begins.
    pub(crate) fn uses_all_replicas(&mut self) {
        self.lent = (0, None);
    }

    /// `with_network` lends the network of replica 0. Whether this makes a loop that leaves the other
    /// replicas idle (SC0203): true once per loop.
    pub(crate) fn lends(&mut self, replicas: usize) -> bool {
        let cell = origin::current_cell();
        if self.lent.1 != cell {
            self.lent = (0, cell);
        }
        self.lent.0 += 1;
        replicas > 1 && self.lent.0 == CALLS_OF_A_LOOP
    }
}

/// The gradient of a model's mean loss over a batch, or what was made of several: sums, multiples.
#[derive(Clone, Default)]
pub struct Gradients {
    /// By variable: its name, and the gradient's elements.
    values: Vec<(ParamId, String, Tensor<1>)>,
    /// The numbers of the batches in it.
    batches: Vec<u64>,
    /// What those were multiplied with, added up: 1 for one batch, and for the mean of several.
    weight: f64,
    /// The mean losses of those batches, in their order.
    losses: Vec<f64>,
    /// Computed without dropout.
    without_dropout: bool,
}

impl Gradients {
    /// Nothing yet: what a loop begins to add to.
    pub fn zeros() -> Self {
        Self::default()
    }

    /// The norm over all variables, √Σg².
    pub fn norm(&self) -> f64 {
        let squares = self.values.iter().map(|(_, _, value)| squares(value));
        squares.sum::<f64>().sqrt()
    }

    /// The mean of the losses of the batches in it.
    pub fn loss(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len() as f64
    }

    /// How many batches are in it.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Variable and norm of its gradient, in the order of the network.
    pub fn norms(&self) -> Vec<(String, f64)> {
        let norms = self.values.iter();
        norms
            .map(|(_, name, value)| (name.clone(), squares(value).sqrt()))
            .collect()
    }

    /// What it holds, and where.
    pub(crate) fn held(&self) -> Held {
        let size = |value: &Tensor<1>| value.shape().num_elements() * value.dtype().size();
        let bytes: usize = self.values.iter().map(|(_, _, value)| size(value)).sum();
        let mut devices: Vec<String> = Vec::new();
        for (_, _, value) in &self.values {
            let name = name_of(&value.device());
            if !devices.contains(&name) {
                devices.push(name);
            }
        }
        Held {
            bytes: bytes as u64,
            devices,
        }
    }

    /// The elements of every gradient, read from the device.
    pub(crate) fn elements(&self) -> impl Iterator<Item = f32> {
        self.values.iter().flat_map(|(_, _, value)| {
            let data = value.clone().into_data().convert::<f32>();
            data.iter::<f32>().collect::<Vec<_>>()
        })
    }

    fn scaled(mut self, factor: f64) -> Self {
        for (_, _, value) in &mut self.values {
            *value = value.clone().mul_scalar(factor as f32);
        }
        self.weight *= factor;
        self
    }
}

fn squares(value: &Tensor<1>) -> f64 {
    match sum_of_squares(value.clone()) {
        Squares::Known(sum) => sum,
        Squares::OnDevice(sum) => f64::from(sum.into_scalar::<f32>()),
    }
}

impl Add for Gradients {
    type Output = Self;

    /// The sum, variable by variable. One that only one side has stays as it is.
    fn add(mut self, other: Self) -> Self {
        let mut added: HashMap<ParamId, (String, Tensor<1>)> = HashMap::new();
        let mut order = Vec::new();
        for (id, name, value) in other.values {
            order.push(id);
            added.insert(id, (name, value));
        }
        for (id, _, value) in &mut self.values {
            if let Some((_, other)) = added.remove(id) {
                *value = value.clone() + other;
            }
        }
        for id in order {
            if let Some((name, value)) = added.remove(&id) {
                self.values.push((id, name, value));
            }
        }
        self.batches.extend(other.batches);
        self.losses.extend(other.losses);
        self.weight += other.weight;
        self.without_dropout |= other.without_dropout;
        self
    }
}

impl AddAssign for Gradients {
    fn add_assign(&mut self, other: Self) {
        *self = std::mem::take(self) + other;
    }
}

impl Mul<f64> for Gradients {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        self.scaled(factor)
    }
}

impl Div<f64> for Gradients {
    type Output = Self;

    fn div(self, divisor: f64) -> Self {
        self.scaled(1.0 / divisor)
    }
}

impl fmt::Display for Gradients {
    /// `gradient of 4 batches, together × 1: norm 2.31, loss 2.0794`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = stratoscope_render::text::count(self.batches.len(), "batch");
        let count = count.replace("batchs", "batches");
        write!(
            f,
            "gradient of {count}, together × {:.4}: norm {:.4e}, loss {:.4}",
            self.weight,
            self.norm(),
            self.loss()
        )
    }
}

impl fmt::Debug for Gradients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A step that was made by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The norm of the gradient as it was given.
    pub norm: f64,
    /// What `global_clipnorm` multiplied it with; 1 where it did nothing.
    pub factor: f64,
    /// The learning rate.
    pub rate: f64,
    /// Batches in the gradient.
    pub batches: usize,
    /// Optimizer steps since `compile!`, this one included.
    pub step: u64,
}

impl fmt::Display for Applied {
    /// `step 1: gradient norm 3.2e0, clipped to 1e0 (× 0.3125), rate 5e-5, from 4 batches`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: gradient norm {:.4e}", self.step, self.norm)?;
        if self.factor < 1.0 {
            let clipped = self.norm * self.factor;
            write!(f, ", clipped to {clipped:.4e} (× {:.4})", self.factor)?;
        }
        let batches = match self.batches {
            1 => "1 batch".to_owned(),
            count => format!("{count} batches"),
        };
        write!(f, ", rate {}, from {batches}", short(self.rate))
    }
}

impl<N: Network> Model<N> {
    /// The gradient of the mean loss over all examples of `batch`, with dropout, as a step of `fit!`
    /// computes it: each replica has its part, and their gradients are averaged by examples. Weights
    /// stay as they are.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss; what is wrong with the data;
    /// SC0520 if it is interrupted; SC0907 if a device fails.
    pub fn gradients(&self, batch: &Dataset) -> Result<Gradients> {
        (N::calls().gradients)(self, batch, true)
    }

    /// The same without dropout, as it must not be used for training: for comparing, and to see what
    /// a loop without `training=True` computes (SC0509).
    ///
    /// # Errors
    /// As [`Self::gradients`].
    pub fn evaluation_gradients(&self, batch: &Dataset) -> Result<Gradients> {
        (N::calls().gradients)(self, batch, false)
    }

    pub(crate) fn gradients_in(&self, data: &Dataset, training: bool) -> Result<Gradients> {
        let _listening = Listening::begin();
        let mut state = self.state();
        let loss = loss_of(&state, "gradients")?;
        let encoded =
            prepare::encode(&state.files, &state.head_written(), data, None, "gradients")?;
        let batch = encoded.batch(encoded.len())?.next();
        let number = state.by_hand.computed;
        // A gradient without dropout is for looking at: no loop waits for it.
        state.by_hand.computed += u64::from(training);
        state.by_hand.uses_all_replicas();
        match batch {
            Some(batch) => of_batch(&state, batch, loss, number, training),
            None => Ok(Gradients::zeros()),
        }
    }

    /// One optimizer step with this gradient, on all replicas, with the rule, rate and clipping of
    /// `compile!`. A schedule that spans a run has none here: its highest rate is taken.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled; SC0121 in a callback of its own run; SC0505 for a
    /// gradient that is not finite; SC0506 and SC0509, where they are denied.
    pub fn apply(&self, gradients: Gradients) -> Result<Applied> {
        (N::calls().apply)(self, gradients)
    }

    pub(crate) fn apply_here(&self, gradients: Gradients) -> Result<Applied> {
        let mut state = self.free_state("apply")?;
        loss_of(&state, "apply")?;
        let norm = gradients.norm();
        tell(&state.by_hand, &gradients, norm, state.replicas.len())?;
        state.by_hand.at_last_step = state.by_hand.computed;

        let copies = state.replicas.unsharded().iter();
        let alike = copies.map(|copy| as_parameters(copy, &gradients)).collect();
        let undecayed = Arc::new(state.undecayed());
        let state = &mut *state;
        let Some(compiled) = &mut state.compiled else {
            return Err(not_compiled("apply"));
        };
        compiled.states.resize_with(
            state.replicas.storage_devices().len(),
            OptimizerState::default,
        );
        let made = compiled.states.first().map_or(0, OptimizerState::steps);
        let rate = rate(compiled, made);
        if !norm.is_finite() {
            let moment = Moment {
                step: made,
                epoch: 0,
                rate,
                last_loss: Some(gradients.loss()),
                last_norm: None,
                rows: Vec::new(),
            };
            return Err(moment.not_finite("gradient norm", norm, None));
        }
        let factor = compiled.optimizer.clipping.global_factor(norm);
        Trainer::of(state, &undecayed, "apply")?.step_alike(alike, norm, rate)?;
        state.forget_apart();
        state.has_learnt = true;
        state.enter_in_ledger();
        Ok(Applied {
            norm,
            factor,
            rate,
            batches: gradients.batches.len(),
            step: made + 1,
        })
    }
}

fn not_compiled(call: &str) -> Box<stratoscope_diagnostics::Diagnostic> {
    NotCompiled {
        call: call.to_owned(),
    }
    .error()
}

fn loss_of<N: Network>(state: &State<N>, call: &str) -> Result<Loss> {
    let compiled = state.compiled.as_ref().ok_or_else(|| not_compiled(call))?;
    compiled.loss.ok_or_else(|| NoLoss.error())
}

fn rate(compiled: &Compiled, made: u64) -> f64 {
    let schedule = compiled.optimizer.schedule;
    match schedule.spans_the_run() {
        true => schedule.named_rate(),
        false => schedule.rate(made, made + 1),
    }
}

/// Forward and backward on every replica, and the mean by examples.
fn of_batch<N: Network>(
    state: &State<N>,
    batch: Batch,
    loss: Loss,
    number: u64,
    training: bool,
) -> Result<Gradients> {
    let replicas = &state.replicas;
    let precision = state.policy.precision();
    let devices: Vec<Device> = replicas
        .devices()
        .iter()
        .map(|device| device.training())
        .collect();
    let stop = interrupt::at_once();
    let given_up = stop.clone();
    let work = move |ReplicaId(index): ReplicaId, network: &N, part: Option<Batch>| {
        let Some(part) = part else {
            return (GradientsParams::new(), 0, Ok(0.0));
        };
        let mode = match training {
            true => Mode::Train {
                seed: 0,
                step: number,
                replica: index as u32,
            },
            false => Mode::Eval,
        };
        let forward = || network.logits(&part, mode, &devices[index]);
        let logits = stop.during(|| precision.during(forward));
        if stop.is_given_up() {
            return (GradientsParams::new(), 0, Ok(0.0));
        }
        let sum = loss.sum(logits.clone(), &part.labels);
        let mean = sum.clone().div_scalar(part.size() as f64);
        let gradients = stop.during(|| mean.backward());
        let gradients = GradientsParams::from_grads(gradients, network);
        let loss = read(Some(sum.inner()), logits.inner()).map(|answer| answer.loss);
        (gradients, part.size(), loss)
    };
    replicas.begin_step();
    let done = replicas.compute_each_replica(parts(&batch, replicas.len()), work)?;
    if given_up.is_given_up() {
        return Err(interrupted("gradients", 0, batch.size()));
    }
    let (mut gradients, mut shares, mut sum) = (Vec::new(), Vec::new(), 0.0);
    for ((own, share, loss), device) in done.into_iter().zip(replicas.devices()) {
        gradients.push(own);
        shares.push(share);
        sum += loss.map_err(|reason| failed(&device.name, &reason))?;
    }
    let mut reduced = replicas.all_reduce(gradients, &shares)?;
    let names = replicas.first().parameters().into_iter();
    let names = names.map(|known| (known.id, known.name)).collect();
    let mut flat = Flat {
        gradients: reduced.swap_remove(0),
        names,
        found: Vec::new(),
    };
    replicas.first().visit(&mut flat);
    Ok(Gradients {
        values: flat.found,
        batches: vec![number],
        weight: 1.0,
        losses: vec![sum / batch.size() as f64],
        without_dropout: !training,
    })
}

/// Takes gradients apart into a list.
struct Flat {
    gradients: GradientsParams,
    names: HashMap<ParamId, String>,
    found: Vec<(ParamId, String, Tensor<1>)>,
}

impl ModuleVisitor for Flat {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let count = gradient.shape().num_elements();
            let name = self.names.get(&param.id).cloned().unwrap_or_default();
            self.found.push((param.id, name, gradient.reshape([count])));
        }
    }
}

/// The gradients as the optimizer takes them, each where its variable is.
fn as_parameters<M: Module>(module: &M, gradients: &Gradients) -> GradientsParams {
    struct Shaped<'a> {
        values: HashMap<ParamId, &'a Tensor<1>>,
        shaped: GradientsParams,
    }
    impl ModuleVisitor for Shaped<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(&value) = self.values.get(&param.id) {
                let value = value.clone().to_device(&param.lazy_device().inner());
                let shape = param.lazy_shape();
                self.shaped.register::<D>(param.id, value.reshape(shape));
            }
        }
    }
    let values = gradients.values.iter().map(|(id, _, value)| (*id, value));
    let mut shaped = Shaped {
        values: values.collect(),
        shaped: GradientsParams::new(),
    };
    module.visit(&mut shaped);
    shaped.shaped
}

/// SC0506, SC0509 and SC0514.
fn tell(by_hand: &ByHand, gradients: &Gradients, norm: f64, replicas: usize) -> Result<()> {
    let mut inside: Vec<u64> = gradients.batches.clone();
    inside.retain(|&number| number >= by_hand.at_last_step);
    inside.sort_unstable();
    inside.dedup();
    let (computed, applied) = (
        (by_hand.computed - by_hand.at_last_step) as usize,
        inside.len(),
    );
    // A sum of four with the weight four was not divided; any other weight may be meant.
    let count = gradients.batches.len();
    let undivided = count > 1 && (gradients.weight - count as f64).abs() < 1e-6 * count as f64;
    if undivided && replicas > 1 && count == replicas && applied == computed {
        let rule = ReplicaGradientsSummed { replicas, norm };
        notice(rule.diagnostic())?;
    } else if applied < computed || undivided {
        let rule = DroppedMicroBatches {
            computed,
            applied,
            weight: gradients.weight,
            norm,
        };
        notice(rule.diagnostic())?;
    }
    if gradients.without_dropout {
        notice(DropoutOff::Mode.diagnostic())?;
    }
    Ok(())
}
