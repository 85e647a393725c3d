//! The workers of a model, as its steps see them: requests, answers, and what goes wrong with them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stratoscope_data::Batch;
use stratoscope_diagnostics::Diagnostic;
use stratoscope_workers::{Collective, Fault, Precision, Team, processor_time};

use super::message::{ReplicaBatch, Request, Response};
use super::wire::WirePass;
use crate::backward::Pass;
use crate::forward::{BatchOutputs, PartOutputs};
use stratoscope_network::Blueprint;

/// The least of so many is the time of a barrier; the first one waits for the workers.
const BARRIERS: u64 = 12;

/// The processes of a model's other replicas, as its steps see them.
pub struct Remote {
    pub team: Arc<Team>,
    /// Tells the models of a job apart.
    pub model: u64,
    pub blueprint: Blueprint,
    /// The group that has the values; 0: nobody has them.
    pub generation: u64,
    /// Which values it has.
    pub synced: u64,
    /// The workers of the group, and the replicas of each; those of this process come first.
    pub seats: Vec<usize>,
    pub ranges: Vec<Range<usize>>,
    /// The batches of the step that is going on.
    pub log: Vec<Logged>,
    /// Whether the group has gradients that were reduced.
    pub is_reduced: bool,
    /// Numbers the collectives.
    pub collectives: u64,
    pub compared_at: u64,
    /// When the update of the step that is going on began.
    pub updates_since: Option<Instant>,
}

/// A batch of the step that is going on, to be computed again if it must be.
#[derive(Clone)]
pub struct Logged {
    pub batch: Batch,
    pub shares: Vec<usize>,
    pub pass: Pass,
}

/// What went wrong at a worker, or in the group as a whole.
pub struct Broken {
    pub seat: Option<usize>,
    pub fault: Fault,
}

impl Broken {
    pub fn at(seat: usize) -> impl Fn(Fault) -> Self {
        move |fault| Self {
            seat: Some(seat),
            fault,
        }
    }

    pub fn of_group(fault: Fault) -> Self {
        Self { seat: None, fault }
    }
}

/// What is tried with the group may end with the run's own error, or be tried again with another group.
pub(crate) type Attempt<T> = std::result::Result<T, Failed>;

pub enum Failed {
    Run(Box<Diagnostic>),
    Group(Broken),
}

impl From<Box<Diagnostic>> for Failed {
    fn from(problem: Box<Diagnostic>) -> Self {
        Self::Run(problem)
    }
}

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Self {
        Self::Group(broken)
    }
}

impl Remote {
    pub fn new(team: Arc<Team>, blueprint: Blueprint) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            team,
            model: NEXT.fetch_add(1, Ordering::Relaxed),
            blueprint,
            generation: 0,
            synced: 0,
            seats: Vec::new(),
            ranges: Vec::new(),
            log: Vec::new(),
            is_reduced: false,
            collectives: 0,
            compared_at: 0,
            updates_since: None,
        }
    }

    /// The replicas of this process.
    pub fn own(&self) -> Range<usize> {
        self.ranges.first().cloned().unwrap_or(0..0)
    }

    /// The workers and their replicas.
    pub fn others(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ranges = self.ranges.iter().skip(1).cloned();
        self.seats.iter().copied().zip(ranges)
    }

    pub fn next_collective(&mut self) -> u64 {
        self.collectives += 1;
        self.collectives
    }

    /// Sends a request to a worker.
    pub fn send(
        &self,
        seat: usize,
        number: u64,
        request: &Request,
    ) -> std::result::Result<(), Broken> {
        let sent = request
            .encoded()
            .and_then(|bytes| self.team.send(seat, number, bytes));
        sent.map_err(Broken::at(seat))
    }

    /// The answer of a worker. It may take as long as the worker gives signs of life.
    pub fn answer(&self, seat: usize, number: u64) -> std::result::Result<Response, Broken> {
        let answer = self.team.answer(seat, number, &|| false);
        let response = answer.and_then(|bytes| Response::decoded(&bytes));
        response.map_err(Broken::at(seat))
    }

    /// The same request for all, with its answers.
    pub fn ask_all(&self, request: &Request) -> std::result::Result<Vec<Response>, Broken> {
        let number = self.team.next_number();
        for &seat in &self.seats {
            self.send(seat, number, request)?;
        }
        let answers = self.seats.iter().map(|&seat| self.answer(seat, number));
        answers.collect()
    }

    /// Sends every worker its parts of a batch, and returns the number of the request.
    pub fn send_parts(
        &mut self,
        parts: &[Option<Batch>],
        logged: &Logged,
        begins: bool,
    ) -> std::result::Result<u64, Broken> {
        self.is_reduced = false;
        let number = self.team.next_number();
        let wire = WirePass::of(&logged.pass);
        for (seat, range) in self.others() {
            let of_replica = |replica: usize| {
                parts[replica].as_ref().map(|part| ReplicaBatch {
                    replica,
                    share: logged.shares[replica],
                    batch: part.clone(),
                })
            };
            let request = Request::Batch {
                begins,
                pass: wire.clone(),
                parts: range.filter_map(of_replica).collect(),
            };
            self.send(seat, number, &request)?;
        }
        Ok(number)
    }

    /// What the workers have computed for the parts that are `elsewhere`, added to `outputs`, and for how long, added to
    /// `computed`.
    pub fn take_outputs(
        &self,
        number: u64,
        mut elsewhere: Vec<Option<Batch>>,
        outputs: &mut BatchOutputs,
        computed: &mut Vec<(usize, usize, Duration)>,
    ) -> std::result::Result<(), Broken> {
        for (seat, range) in self.others() {
            let refused = |what: &str| Broken::at(seat)(Fault::Refused(what.to_owned()));
            let Response::Outputs(found, seconds) = self.answer(seat, number)? else {
                return Err(refused("another answer"));
            };
            let busy = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let parts = elsewhere[range.clone()].iter().flatten();
            computed.push((seat, parts.map(|part| part.rows.len()).sum(), busy));
            let mut found = found.into_iter();
            for replica in range {
                let Some(part) = elsewhere[replica].take() else {
                    continue;
                };
                let output = found.next().filter(|it| it.replica == replica);
                let output = output.ok_or_else(|| refused("the outputs of other parts"))?;
                let output = PartOutputs {
                    outputs: output.outputs,
                    loss: output.loss,
                    squares: None,
                };
                outputs.push((part, output));
            }
        }
        Ok(())
    }

    /// Measures how long a message without content takes from one member to the next one. A barrier ends at the chief
    /// when a number has gone around once, over as many hops as there are members.
    pub fn measure_hop(&mut self) -> std::result::Result<(), Broken> {
        if self.seats.is_empty() {
            return Ok(());
        }
        let first = self.collectives + 1;
        self.collectives += BARRIERS;
        let number = self.team.next_number();
        let request = Request::Barriers {
            first,
            count: BARRIERS,
        };
        for &seat in &self.seats {
            self.send(seat, number, &request)?;
        }
        let measured = self.team.together(|chain| {
            let mut least = Duration::MAX;
            for collective in first..first + BARRIERS {
                let since = Instant::now();
                chain.barrier(collective)?;
                least = least.min(since.elapsed());
            }
            Ok(least)
        });
        let least = measured.map_err(Broken::of_group)?;
        for &seat in &self.seats {
            self.answer(seat, number)?;
        }
        let members = self.seats.len() as u32 + 1;
        self.team.count(|tally| tally.hop = Some(least / members));
        Ok(())
    }

    /// All-reduces `rows`, the values of this process, with the workers that were asked to: what each member has sent.
    pub fn all_reduced(
        &self,
        number: u64,
        collective: u64,
        rows: &mut [Vec<f32>],
        precision: Precision,
    ) -> std::result::Result<Vec<(usize, u64)>, Broken> {
        let bytes = rows.first().map_or(0, Vec::len) * precision.bytes();
        let (since, processor) = (Instant::now(), processor_time());
        let reduced = self.team.together(|chain| {
            let before = chain.bytes_sent();
            chain.all_reduce(collective, rows, precision)?;
            Ok(chain.bytes_sent() - before)
        });
        let mut sent = vec![(0, reduced.map_err(Broken::of_group)?)];
        let (wall, processor) = (since.elapsed(), processor_time() - processor);
        self.team.count(|tally| {
            let exchanges = &mut tally.exchanges;
            exchanges.count += 1;
            exchanges.wall += wall;
            exchanges.processor += processor;
            exchanges.bytes += bytes as u64;
            exchanges.members = self.seats.len() + 1;
        });
        for &seat in &self.seats {
            let Response::Exchanged(bytes) = self.answer(seat, number)? else {
                return Err(Broken::at(seat)(Fault::Refused(
                    "another answer".to_owned(),
                )));
            };
            sent.push((seat, bytes));
        }
        Ok(sent)
    }

    /// The group is formed anew before anything else is tried. A worker whose work fails is taken for lost.
    pub fn give_up(&mut self, broken: &Broken) {
        self.generation = 0;
        match (broken.seat, &broken.fault) {
            (Some(seat), Fault::Failed(_) | Fault::Refused(_)) => {
                self.team.lose(seat, broken.fault.clone());
            }
            _ => self.team.dissolve(),
        }
    }
}
