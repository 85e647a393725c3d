//! A step whose replicas are processes. This process, the chief, drives the run; the others do what a step asks of a
//! replica: forward and backward on their parts of a batch, the all-reduce, the update. What travels at each step are the
//! rows of the batch, the outputs for the metrics, and, between neighbors, gradients.
//!
//! **The replicas are logical.** Their number is that of the strategy and does not change. Each process computes those of
//! a range, and the all-reduce adds replica after replica in the order of their numbers, whoever computes them; dropout
//! masks are functions of the replica's number. So a run has the bits of `MirroredStrategy` with as many logical devices,
//! also when a worker is lost in it and the others compute its replicas.
//!
//! **The chief's state is the truth.** When a worker is lost or comes, what was computed for the step that is going on is
//! given up everywhere. A new group is formed, gets the chief's weights and moments, and computes the batches of the step
//! again. Nobody updates before the all-reduce has succeeded for all (the answers to [`Request::Exchange`]). Whatever
//! else changes the chief's values between two steps, such as a rewind, a fork, an edit or `restore`, is noticed by
//! [`Replicas::changes`](stratoscope_strategy::Replicas::changes), and the values are sent anew.

mod exchange;
mod flat;
mod host;
mod local;
mod message;
mod notices;
mod remote;
mod wire;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use stratoscope_bert::ops::Stop;
use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::{ModelCannotTravel, TooFewWorkers};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::Strategy;
use stratoscope_strategy::strategy::Workers;
use stratoscope_workers::{Fault, NotFormed, Outcome};

use self::message::Response;
use self::remote::{Attempt, Broken, Failed, Logged};
use super::StepState;
use super::backward::{Pass, forward_backward_of};
use super::forward::{BatchOutputs, interrupted};
use stratoscope_arguments::context::interrupt;
use stratoscope_network::Files;

pub use self::host::{Host, Hosted, Replica, host};
pub(crate) use self::local::Since;
pub use self::message::{ModelRequest, Request};
pub use self::notices::bytes_sent;
pub(crate) use self::remote::Remote;

/// How often a step is tried while workers come and go.
const MOST_ATTEMPTS: usize = 30;

/// After so many optimizer steps the copies of all workers are compared.
const COMPARED_EVERY: u64 = 100;

/// Contiguous ranges of `replicas` for `members` processes; the last ones have one more where it does not divide.
fn ranges(replicas: usize, members: usize) -> Vec<Range<usize>> {
    (0..members)
        .map(|member| member * replicas / members..(member + 1) * replicas / members)
        .collect()
}

/// SC0809, for a group that does not hold.
fn unstable(reason: String) -> Box<Diagnostic> {
    TooFewWorkers {
        alive: 1,
        least: 2,
        waited: String::new(),
        reason,
    }
    .error()
}

fn not_formed(problem: NotFormed) -> Box<Diagnostic> {
    match problem {
        NotFormed::TooFew {
            alive,
            least,
            waited,
        } => TooFewWorkers {
            alive,
            least,
            waited: format!("{:.1} s", waited.as_secs_f64()),
            reason: String::new(),
        }
        .error(),
        NotFormed::Unconnected(fault) => unstable(fault.to_string()),
        NotFormed::Interrupted => interrupted("fit", 0, 0),
    }
}

impl StepState {
    /// From now on steps are computed by the processes of the strategy, where it has processes.
    ///
    /// # Errors
    /// SC0810 for a network that they cannot build.
    pub fn takes_workers(&mut self, files: &dyn Files) -> Result<()> {
        let team = self.replicas.strategy().and_then(Strategy::team);
        let Some(team) = team.filter(|team| self.workers.is_none() && team.size() > 1) else {
            return Ok(());
        };
        let blueprint = match (self.replicas.first().blueprint(files), &self.made_by) {
            (Some(known), _) => Ok(known),
            (None, Some(made)) => made.blueprint().map_err(Some),
            (None, None) => Err(None),
        };
        let blueprint = blueprint.map_err(|reason| {
            let model = files.model_name().to_owned();
            ModelCannotTravel { model, reason }.error()
        })?;
        self.workers = Some(Remote::new(Arc::clone(team), blueprint));
        Ok(())
    }

    /// What the workers do is counted from here on.
    pub fn counts_anew(&self) {
        if let Some(remote) = &self.workers {
            remote.team.count(|tally| *tally = tally.begun_anew());
        }
    }

    /// The workers and what they have done, where there are several.
    pub fn workers_now(&self) -> Option<Workers> {
        let remote = self.workers.as_ref()?;
        Some(Workers::of(&remote.team))
    }

    /// The step's own view of the workers; there is one wherever this is called.
    fn remote(&mut self) -> &mut Remote {
        self.workers.as_mut().expect("the caller has looked")
    }

    /// [`StepState::accumulate`] by workers.
    ///
    /// # Errors
    /// SC0809 where too few workers are left, and what goes wrong in this process.
    pub(super) fn accumulate_with_workers(
        &mut self,
        batch: &Batch,
        shares: &[usize],
        pass: Pass,
        stop: &Stop,
    ) -> Result<Option<BatchOutputs>> {
        if self.accumulated.is_empty() {
            self.remote().log.clear();
        }
        let logged = Logged {
            batch: batch.clone(),
            shares: shares.to_vec(),
            pass,
        };
        self.persistently(|state| {
            let Some(outputs) = state.batch_by_all(&logged, stop)? else {
                // Others have added the batch that is given up.
                state.remote().generation = 0;
                return Ok(None);
            };
            state.remote().log.push(logged.clone());
            Ok(Some(outputs))
        })
    }

    /// Tries with one group after the other; each has the values and the batches of the step before it is tried.
    fn persistently<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Attempt<T>) -> Result<T> {
        let mut reason = String::new();
        for _ in 0..MOST_ATTEMPTS {
            let tried = match self.joined() {
                Ok(()) => attempt(self),
                Err(failed) => Err(failed),
            };
            match tried {
                Ok(done) => return Ok(done),
                Err(Failed::Run(problem)) => {
                    self.remote().generation = 0;
                    return Err(problem);
                }
                Err(Failed::Group(broken)) => {
                    reason = broken.fault.to_string();
                    self.remote().give_up(&broken);
                }
            }
        }
        Err(unstable(reason))
    }

    /// All who are there form a group, have the values and have computed the batches of the step so far.
    fn joined(&mut self) -> Attempt<()> {
        let team = Arc::clone(&self.remote().team);
        let formed = team.form(&interrupt::requested).map_err(not_formed)?;
        self.tell_of_workers()?;
        let changes = self.replicas.changes();
        let replicas = self.replicas.len();
        let remote = self.remote();
        let is_ours = team.claim(remote.model);
        if is_ours && remote.generation == formed.generation && remote.synced == changes {
            return Ok(());
        }
        let is_new = remote.generation != formed.generation;
        remote.generation = formed.generation;
        remote.ranges = ranges(replicas, formed.seats.len() + 1);
        remote.seats = formed.seats;
        remote.is_reduced = false;
        let is_local = self.is_local_sgd();
        if is_local {
            self.begins_whole()?;
        }
        self.send_values()?;
        if is_new {
            self.remote().measure_hop()?;
        }
        if is_local {
            self.repeat_steps()?;
        }
        let changes = self.replicas.changes();
        self.remote().synced = changes;
        self.repeat_batches()
    }

    /// Computes the batches of the step that is going on, as far as it was.
    fn repeat_batches(&mut self) -> Attempt<()> {
        let log = std::mem::take(&mut self.remote().log);
        self.accumulated.clear();
        let never = Stop::when(|| false);
        let computed = log
            .iter()
            .try_for_each(|logged| self.batch_by_all(logged, &never).map(drop));
        self.remote().log = log;
        computed
    }

    /// A batch forward and backward, each part where its replica is computed.
    fn batch_by_all(&mut self, logged: &Logged, stop: &Stop) -> Attempt<Option<BatchOutputs>> {
        let Logged {
            batch,
            shares,
            pass,
        } = logged;
        let begins = self.accumulated.is_empty();
        let since = Instant::now();
        let mut parts = batch.split(self.replicas.len());
        let number = self.remote().send_parts(&parts, logged, begins)?;
        let own = self.remote().own();
        let mut elsewhere: Vec<Option<Batch>> = parts.iter().map(|_| None).collect();
        for (replica, part) in parts.iter_mut().enumerate() {
            if !own.contains(&replica) {
                elsewhere[replica] = part.take();
            }
        }
        let examples: usize = parts.iter().flatten().map(|part| part.rows.len()).sum();
        let own_since = Instant::now();
        let accumulated = std::mem::take(&mut self.accumulated);
        let (accumulated, outputs) = forward_backward_of(
            &self.replicas,
            accumulated,
            parts,
            shares,
            pass.clone(),
            stop,
        )?;
        self.accumulated = accumulated;
        let Some(mut outputs) = outputs else {
            if begins {
                self.accumulated.clear();
            }
            return Ok(None);
        };
        let mut computed = vec![(0, examples, own_since.elapsed())];
        let remote = self.remote();
        remote.take_outputs(number, elsewhere, &mut outputs, &mut computed)?;
        remote.team.count(|tally| {
            tally.wall += since.elapsed();
            for (member, examples, busy) in computed {
                let done = tally.of(member);
                done.examples += examples as u64;
                done.busy += busy;
            }
        });
        Ok(Some(outputs))
    }
}

/// What a worker answers to, wherever its work fails.
pub fn failed(reason: impl ToString) -> Fault {
    Fault::Failed(reason.to_string())
}

/// The bytes of an answer.
pub fn answered(response: &Response) -> Outcome<Vec<u8>> {
    response.encoded()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_replica_has_one_process() {
        for replicas in 1..9 {
            for members in 1..=replicas {
                let ranges = ranges(replicas, members);
                let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
                assert_eq!(all, (0..replicas).collect::<Vec<_>>());
                assert!(ranges.iter().all(|range| !range.is_empty()));
            }
        }
    }
}
