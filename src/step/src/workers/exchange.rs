//! What the workers exchange: values, gradients, updates, checksums.

use std::collections::HashMap;
use std::time::Instant;

use burn::module::ParamId;
use burn::optim::GradientsParams;
use stratoscope_diagnostics::rules::WorkersDiffer;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::collective::Operation;
use stratoscope_strategy::{BackendKind, Checksum};
use stratoscope_workers::Collective;

use super::message::{KeptBy, ModelRequest, Request, Response, StatePart};
use super::wire::WireUpdate;
use super::{Attempt, Broken, COMPARED_EVERY, flat};

use crate::{StepSettings, StepState};
use stratoscope_optim::{OptimizerState, Update};

impl StepState {
    /// Gives all workers the network, its values and what the optimizer keeps.
    pub(super) fn send_values(&mut self) -> Attempt<()> {
        let variables = flat::variables(self.replicas.first());
        let none = OptimizerState::default();
        // One for all replicas; with local SGD one for each.
        let (mut row, mut kept) = (Vec::new(), Vec::new());
        for (replica, network) in self.replicas.modules().iter().enumerate() {
            let moments = self.moments.get(replica).unwrap_or(&none);
            let values = flat::values(network, moments, StatePart::All);
            let (values, tensors) = values.map_err(Broken::of_group)?;
            row.extend(values);
            kept.push(KeptBy {
                replica,
                tensors,
                steps: moments.steps(),
            });
        }
        let is_local = self.is_local_sgd();
        let policy = self.policy;
        let strategy = self.replicas.strategy();
        let device = strategy.and_then(|strategy| strategy.replicas().first());
        let backend = device.map_or(BackendKind::Flex, |device| device.backend);
        let remote = self.remote();
        remote.ask_all(&Request::Model(ModelRequest {
            number: remote.model,
            blueprint: remote.blueprint.clone(),
            policy,
            backend,
        }))?;
        let collective = remote.next_collective();
        let number = remote.team.next_number();
        for (seat, range) in remote.others() {
            let request = Request::Values {
                collective,
                lengths: variables.iter().map(|it| it.length).collect(),
                trainable: variables.iter().map(|it| it.trainable).collect(),
                kept: kept.clone(),
                alone: range.filter(|_| is_local).collect(),
            };
            remote.send(seat, number, &request)?;
        }
        let team = &remote.team;
        team.together(|chain| chain.broadcast(collective, &mut row))
            .map_err(Broken::of_group)?;
        for &seat in &remote.seats {
            remote.answer(seat, number)?;
        }
        Ok(())
    }

    /// The mean of the gradients of all replicas, weighted by `shares`, their examples.
    ///
    /// # Errors
    /// SC0809 where too few workers are left.
    pub(crate) fn reduce_with_workers(&mut self, shares: &[usize]) -> Result<GradientsParams> {
        let start = Instant::now();
        let (gradients, elements, tensors) =
            self.persistently(|state| state.reduced_by_all(shares))?;
        self.replicas
            .reduced_by_workers(Operation::AllReduce, (elements, tensors), start);
        self.accumulated.clear();
        Ok(gradients)
    }

    fn reduced_by_all(&mut self, shares: &[usize]) -> Attempt<(GradientsParams, usize, usize)> {
        let total: usize = shares.iter().sum();
        let weight = |replica: usize| (shares[replica] as f64 / total.max(1) as f64) as f32;
        let scale = self.loss_scale.scale();
        let since = Instant::now();
        let own = self.own_gradients();
        let network = self.replicas.structure();
        let present = match own.first() {
            Some(first) => flat::present(network, first),
            None => Vec::new(),
        };
        let range = self.workers.as_ref().map_or(0..0, super::Remote::own);
        let mut rows = Vec::with_capacity(range.len());
        for (replica, gradients) in own.into_iter().enumerate() {
            if range.contains(&replica) {
                let row = flat::weighted(network, gradients, &present, weight(replica));
                rows.push(row.map_err(Broken::of_group)?);
            }
        }
        let remote = self.remote();
        let precision = remote.team.communication().gradients;
        let collective = remote.next_collective();
        let number = remote.team.next_number();
        for (seat, range) in remote.others() {
            let request = Request::Exchange {
                collective,
                weights: range.map(|replica| (replica, weight(replica))).collect(),
                scale,
                present: present.clone(),
                precision,
            };
            remote.send(seat, number, &request)?;
        }
        let sent = remote.all_reduced(number, collective, &mut rows, precision)?;
        let team = &remote.team;
        team.count(|tally| {
            tally.wall += since.elapsed();
            for (member, bytes) in sent {
                let done = tally.of(member);
                done.steps += 1;
                done.bytes += bytes;
            }
        });
        remote.is_reduced = true;
        let row = rows.swap_remove(0);
        let gradients = flat::gradients(self.replicas.structure(), &row, &present);
        let tensors = present.iter().filter(|is_present| **is_present).count();
        Ok((gradients.map_err(Broken::of_group)?, row.len(), tensors))
    }

    /// Lets the workers make the update that this process is about to make. Who does not hear of it is lost, and its
    /// successor gets the values of this process.
    pub(crate) fn workers_update(&mut self, norm: f64, rate: f64, settings: &StepSettings) {
        let factor = settings.compiled.optimizer.clipping.global_factor(norm);
        self.workers_make(Request::Update, factor, rate, settings);
    }

    /// The same where each replica has gradients of its own, whose norms the workers know.
    pub(super) fn workers_update_own(&mut self, rate: f64, settings: &StepSettings) {
        self.workers_make(Request::UpdateOwn, 1.0, rate, settings);
    }

    fn workers_make(
        &mut self,
        request: fn(WireUpdate) -> Request,
        factor: f64,
        rate: f64,
        settings: &StepSettings,
    ) {
        if self
            .workers
            .as_ref()
            .is_none_or(|remote| !remote.is_reduced)
        {
            return;
        }
        let optimizer = &settings.compiled.optimizer;
        let update = Update {
            rule: optimizer.rule,
            clipping: optimizer.clipping,
            averaging: optimizer.averaging,
            factor,
            rate,
            undecayed: settings.undecayed.clone(),
            layer_factors: settings.layer_factors.clone(),
            is_measured: false,
        };
        let variables = flat::variables(self.replicas.structure());
        let request = request(WireUpdate::of(&update, &variables));
        let remote = self.remote();
        remote.updates_since = Some(Instant::now());
        let number = remote.team.next_number();
        for &seat in &remote.seats {
            if let Err(broken) = remote.send(seat, number, &request) {
                log_lost(remote, &broken);
            }
        }
    }

    /// This process has made the update, too: all have the same values.
    pub(crate) fn workers_have_updated(&mut self) {
        let changes = self.replicas.changes();
        if let Some(remote) = self.workers.as_mut().filter(|remote| remote.is_reduced) {
            remote.synced = changes;
            remote.is_reduced = false;
            let busy = remote.updates_since.take().map(|since| since.elapsed());
            remote.team.count(|tally| {
                tally.wall += busy.unwrap_or_default();
                tally.of(0).busy += busy.unwrap_or_default();
                tally.updating += busy.unwrap_or_default();
            });
        }
    }

    /// The checksums of the variables at each worker. Workers that do not have the present values yet get them first, unless a
    /// step is going on. A worker that cannot be reached has no copy: the next step reports it.
    pub fn sums_at_workers(&mut self) -> Vec<(usize, HashMap<ParamId, Checksum>)> {
        if self.workers.is_none() {
            return Vec::new();
        }
        if self.accumulated.is_empty() {
            self.remote().log.clear();
            let _ = self.persistently(|_| Ok(()));
        }
        let changes = self.replicas.changes();
        let remote = self.remote();
        if remote.generation == 0 || remote.synced != changes {
            return Vec::new();
        }
        let Ok(answers) = remote.ask_all(&Request::Checksums) else {
            return Vec::new();
        };
        let variables = flat::variables(self.replicas.first());
        let of_worker = |(&seat, answer): (&usize, Response)| {
            let Response::Checksums(sums) = answer else {
                return None;
            };
            let sums = variables.iter().zip(sums);
            Some((seat, sums.map(|(it, sum)| (it.id, Checksum(sum))).collect()))
        };
        let seats = self.remote().seats.clone();
        seats.iter().zip(answers).filter_map(of_worker).collect()
    }

    /// Compares the copies of all workers with this one's, every so many steps and when a run ends.
    ///
    /// # Errors
    /// SC0811 for a copy that differs.
    pub fn compare_workers(&mut self, at_the_end: bool) -> Result<()> {
        if self.local.steps > 0 {
            // Replicas that step alone differ until they are averaged.
            return Ok(());
        }
        let (steps, changes) = (self.steps, self.replicas.changes());
        let Some(remote) = &mut self.workers else {
            return Ok(());
        };
        let is_due = steps >= remote.compared_at + COMPARED_EVERY || steps < remote.compared_at;
        if remote.synced != changes || !(is_due || (at_the_end && steps > remote.compared_at)) {
            return Ok(());
        }
        remote.compared_at = steps;
        // Whoever is lost meanwhile is noticed by the next step.
        let Ok(answers) = remote.ask_all(&Request::Checksums) else {
            return Ok(());
        };
        let own = flat::checksums(self.replicas.first());
        let names = self.replicas.first().parameters();
        let remote = self.remote();
        for (&seat, answer) in remote.seats.iter().zip(answers) {
            let Response::Checksums(found) = answer else {
                continue;
            };
            let mut differ = own.iter().zip(&found).filter(|((_, own), sum)| own != *sum);
            if let Some(((id, _), _)) = differ.next() {
                let name = names.iter().find(|known| known.id == *id);
                let rule = WorkersDiffer {
                    worker: super::notices::name_of(&remote.team, seat),
                    variable: name.map_or_else(String::new, |known| known.name.clone()),
                    count: 1 + differ.count(),
                    step: steps,
                };
                remote.generation = 0;
                return Err(rule.error());
            }
        }
        Ok(())
    }
}

/// A worker that the message does not reach is lost; the next step notices.
fn log_lost(remote: &super::Remote, broken: &Broken) {
    if broken.seat.is_some() {
        remote.team.dissolve();
    }
}
