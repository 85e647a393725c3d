//! Local SGD by worker processes: each worker updates the copies of its replicas with their own gradients and moments, and
//! from time to time the weights of all are averaged, in the order and with the bits of replicas in one process.
//!
//! **The chief's state is whole** whenever anything but the loop looks at it: it has the weights and moments of all
//! replicas. An average leaves the same weights everywhere, and moments that differ; those are gathered with it. Before a
//! pause, a callback, an epoch's end, a snapshot or a checkpoint between two averages, weights and moments are gathered
//! ([`StepState::gather`]).
//!
//! **What a lost worker had is computed again**: all go back to the last state that was whole, and the steps since then are
//! repeated with their batches, dropout masks and learning rates ([`Since`]). So the bits are those of an undisturbed run.
//! Where no worker answers, the chief repeats the steps of all replicas by itself.

use std::time::Instant;

use burn::optim::GradientsParams;
use stratoscope_bert::ops::Stop;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::SavedValues;
use stratoscope_strategy::collective::Operation;
use stratoscope_workers::{Collective, Fault, Precision};

use super::message::{KeptBy, Request, Response, StatePart};
use super::{Attempt, Broken, Failed, Logged, flat, ranges, unstable};
use crate::finite::NonFinite;
use crate::loss_scale::LossScale;
use crate::{StepSettings, StepState};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::{OptimizerState, global_norm};

/// The steps since the chief's state was whole.
#[derive(Default)]
pub struct Since {
    /// That state; none before the workers have it.
    whole: Option<(SavedValues<AnyNetwork>, Vec<OptimizerState>)>,
    steps: Vec<Made>,
}

impl Since {
    /// The chief's state is whole, or was replaced.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// A step that each replica has made by itself.
struct Made {
    batches: Vec<Logged>,
    rate: f64,
    settings: StepSettings,
}

/// The gradients of each replica, nothing for those of other processes; their norms; and the variable with a gradient that
/// is no number, where another process found one.
pub type Measured = (Vec<GradientsParams>, Vec<f64>, Option<NonFinite>);

fn refused(seat: usize, what: &str) -> Broken {
    Broken::at(seat)(Fault::Refused(what.to_owned()))
}

impl StepState {
    /// Whether the replicas of the workers step alone.
    pub(super) fn is_local_sgd(&self) -> bool {
        self.replicas.copies() > 1
    }

    /// Whether this process computes a replica.
    pub fn computes(&self, replica: usize) -> bool {
        let remote = self.workers.as_ref();
        remote.is_none_or(|remote| remote.own().contains(&replica))
    }

    /// The gradients of each replica where it is, and the norms of all.
    ///
    /// # Errors
    /// SC0809 where too few workers are left.
    pub(crate) fn measure_with_workers(&mut self) -> Result<Measured> {
        self.persistently(|state| state.measured_by_all())
    }

    fn measured_by_all(&mut self) -> Attempt<Measured> {
        let scale = self.loss_scale.scale();
        let gradients = self.own_gradients();
        let network = self.replicas.structure();
        let own = |(replica, gradients)| match self.computes(replica) {
            true => global_norm(network, gradients),
            false => 0.0,
        };
        let mut norms: Vec<f64> = gradients.iter().enumerate().map(own).collect();
        let remote = self.remote();
        let answers = remote.ask_all(&Request::Norms { scale })?;
        let mut found = None;
        for ((seat, range), answer) in remote.others().zip(answers) {
            let Response::Norms(measured) = answer else {
                return Err(refused(seat, "another answer").into());
            };
            for norm in measured {
                if !range.contains(&norm.replica) {
                    return Err(refused(seat, "the gradients of another replica").into());
                }
                norms[norm.replica] = norm.norm;
                found = found.or(norm.bad.map(|(name, value)| NonFinite { name, value }));
            }
        }
        remote.is_reduced = true;
        let seats = remote.seats.clone();
        remote.team.count(|tally| {
            for member in std::iter::once(0).chain(seats) {
                tally.of(member).steps += 1;
            }
        });
        Ok((gradients, norms, found))
    }

    /// Each replica updates its own weights, those of this process among them. `inputs` are their gradients and norms.
    pub(crate) fn begin_own_updates(&mut self, rate: f64, settings: &StepSettings) {
        if self.workers.is_some() {
            self.workers_update_own(rate, settings);
        }
    }

    /// The updates are made: the step is kept until the state is whole again.
    pub(crate) fn own_updates_made(&mut self, rate: f64, settings: &StepSettings) {
        if self.workers.is_none() {
            return;
        }
        self.workers_have_updated();
        let batches = std::mem::take(&mut self.remote().log);
        self.since.steps.push(Made {
            batches,
            rate,
            settings: settings.clone(),
        });
    }

    /// Whether workers have steps that this process has not.
    pub(crate) fn is_behind(&self) -> bool {
        !self.since.steps.is_empty()
    }

    /// Where all begin who have just come together: the state that was whole last, and the steps since then once more.
    pub(super) fn begins_whole(&mut self) -> Result<()> {
        match &self.since.whole {
            Some((values, moments)) if !self.since.steps.is_empty() => {
                self.moments.clone_from(moments);
                self.replicas.restore_values(values)
            }
            _ => {
                self.now_whole();
                Ok(())
            }
        }
    }

    fn now_whole(&mut self) {
        self.since = Since {
            whole: Some((self.replicas.saved_values(), self.moments.clone())),
            steps: Vec::new(),
        };
    }

    /// Makes the steps again that were made since the state was whole.
    pub(super) fn repeat_steps(&mut self) -> Attempt<()> {
        let steps = std::mem::take(&mut self.since.steps);
        let repeated = steps.iter().try_for_each(|made| self.repeat(made));
        self.since.steps = steps;
        repeated
    }

    fn repeat(&mut self, made: &Made) -> Attempt<()> {
        self.accumulated.clear();
        let never = Stop::when(|| false);
        for logged in &made.batches {
            self.batch_by_all(logged, &never)?;
        }
        let Some(Logged { shares, pass, .. }) = made.batches.first() else {
            return Ok(());
        };
        // The scale of the loss may be another one by now.
        let now = std::mem::replace(&mut self.loss_scale, LossScale::from_parts((pass.scale, 0)));
        let measured = self.measured_by_all();
        self.loss_scale = now;
        let (gradients, norms, _) = measured?;
        self.workers_update_own(made.rate, &made.settings);
        let inputs = self.own_inputs(gradients, norms, shares);
        self.update(inputs, made.rate, &made.settings, true)?;
        self.workers_have_updated();
        Ok(())
    }

    /// Every replica gets the mean of the weights of all, and this process the moments of all.
    ///
    /// # Errors
    /// SC0809 where too few workers are left.
    pub(crate) fn average_with_workers(&mut self, examples: &[usize]) -> Result<()> {
        let start = Instant::now();
        let size = self.persistently(|state| state.averaged_by_all(examples))?;
        self.replicas
            .reduced_by_workers(Operation::Average, size, start);
        Ok(())
    }

    fn averaged_by_all(&mut self, examples: &[usize]) -> Attempt<(usize, usize)> {
        let total: usize = examples.iter().sum();
        let weight = |replica: usize| (examples[replica] as f64 / total.max(1) as f64) as f32;
        let since = Instant::now();
        let own = self.workers.as_ref().map_or(0..0, super::Remote::own);
        let row = |replica| flat::trainable(&self.replicas.modules()[replica], weight(replica));
        let rows: stratoscope_workers::Outcome<Vec<_>> = own.map(row).collect();
        let mut rows = rows.map_err(Broken::of_group)?;
        let remote = self.remote();
        let collective = remote.next_collective();
        let number = remote.team.next_number();
        for (seat, range) in remote.others() {
            let weights = range.map(|replica| (replica, weight(replica))).collect();
            let request = Request::Average {
                collective,
                weights,
            };
            remote.send(seat, number, &request)?;
        }
        let sent = remote.all_reduced(number, collective, &mut rows, Precision::Float32)?;
        remote.team.count(|tally| {
            tally.wall += since.elapsed();
            for (member, bytes) in sent {
                tally.of(member).bytes += bytes;
            }
        });
        let others = self.gathered(StatePart::Moments)?;
        // This process changes when all others have.
        let row = rows.swap_remove(0);
        let average = |module: &AnyNetwork| flat::with_trainable(module, &row);
        let averaged: stratoscope_workers::Outcome<Vec<AnyNetwork>> =
            self.replicas.modules().iter().map(average).collect();
        let averaged = averaged.map_err(Broken::of_group)?;
        self.replicas.modules_mut().clone_from_slice(&averaged);
        for (replica, _, moments) in others {
            self.moments[replica] = moments;
        }
        self.has_all();
        let variables = flat::variables(self.replicas.first());
        let tensors = variables.iter().filter(|it| it.trainable).count();
        Ok((row.len(), tensors))
    }

    /// What this process has now is what all have.
    fn has_all(&mut self) {
        self.now_whole();
        let changes = self.replicas.changes();
        self.remote().synced = changes;
    }

    /// What the replicas of the workers have.
    fn gathered(&mut self, part: StatePart) -> Attempt<Vec<(usize, AnyNetwork, OptimizerState)>> {
        let remote = self.remote();
        let collective = remote.next_collective();
        let number = remote.team.next_number();
        for &seat in &remote.seats {
            remote.send(seat, number, &Request::Gather { collective, part })?;
        }
        let rows = remote
            .team
            .together(|chain| chain.gather(collective, &[]))
            .map_err(Broken::of_group)?;
        let remote = &*remote;
        let mut found = Vec::new();
        for ((seat, range), row) in remote.others().zip(rows) {
            let Response::Gathered(kept, bytes) = remote.answer(seat, number)? else {
                return Err(refused(seat, "another answer").into());
            };
            if !kept.iter().map(|it| it.replica).eq(range) {
                return Err(refused(seat, "what other replicas have").into());
            }
            remote.team.count(|tally| tally.of(seat).bytes += bytes);
            found.push((seat, kept, row));
        }
        let mut states = Vec::new();
        for (seat, kept, row) in found {
            states.extend(self.read(&kept, &row, part).map_err(Broken::at(seat))?);
        }
        Ok(states)
    }

    fn read(
        &self,
        kept: &[KeptBy],
        row: &[f32],
        part: StatePart,
    ) -> stratoscope_workers::Outcome<Vec<(usize, AnyNetwork, OptimizerState)>> {
        let variables = flat::variables(self.replicas.first());
        let trainable: Vec<bool> = variables.iter().map(|it| it.trainable).collect();
        let other = || Fault::Refused("what replicas of another network have".to_owned());
        let (mut rest, mut states) = (row, Vec::new());
        for kept in kept {
            if !kept.is_of(variables.len()) {
                return Err(other());
            }
            let length = flat::length(&variables, &kept.tensors, part);
            let (own, after) = rest.split_at_checked(length).ok_or_else(other)?;
            rest = after;
            let network = self.replicas.modules()[kept.replica].clone();
            let (network, moments) = flat::with_values(network, own, kept, part, &trainable);
            states.push((kept.replica, network, moments));
        }
        match rest.is_empty() {
            true => Ok(states),
            false => Err(other()),
        }
    }

    /// Makes the state of this process whole, where workers have made steps alone: they send what they have, or this
    /// process repeats the steps.
    ///
    /// # Errors
    /// What goes wrong in this process.
    pub fn gather(&mut self) -> Result<()> {
        if !self.is_behind() || self.workers.is_none() {
            return Ok(());
        }
        let is_current = self.remote().generation != 0;
        let gathered = match is_current {
            true => self.gathered(StatePart::All),
            false => Err(Broken::of_group(Fault::Aborted).into()),
        };
        match gathered {
            Ok(states) => {
                for (replica, network, moments) in states {
                    self.replicas.modules_mut()[replica] = network;
                    self.moments[replica] = moments;
                }
                self.has_all();
                Ok(())
            }
            Err(Failed::Run(problem)) => Err(problem),
            Err(Failed::Group(broken)) => {
                self.remote().give_up(&broken);
                self.repeat_here()
            }
        }
    }

    /// This process computes all replicas.
    fn repeat_here(&mut self) -> Result<()> {
        let replicas = self.replicas.len();
        let remote = self.remote();
        remote.generation = 0;
        remote.seats.clear();
        remote.ranges = ranges(replicas, 1);
        let repeated = self.begins_whole().map_err(Failed::from);
        let repeated = repeated
            .and_then(|()| self.repeat_steps())
            .and_then(|()| self.repeat_batches());
        match repeated {
            Ok(()) => {
                self.now_whole();
                Ok(())
            }
            Err(Failed::Run(problem)) => Err(problem),
            Err(Failed::Group(broken)) => Err(unstable(broken.fault.to_string())),
        }
    }
}
