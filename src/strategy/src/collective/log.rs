//! The log of a model's collectives: counters since the model was made, the latest records, and the transfers of the
//! last optimizer step.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Operation;
use super::patterns::TransferLog;
use super::transfer::{Collective, CrossDeviceOps};

/// What is remembered of a collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveRecord {
    /// What was done.
    pub operation: Operation,
    /// The communication pattern.
    pub ops: CrossDeviceOps,
    /// Its number, counted from 1.
    pub number: u64,
    /// How many replicas took part.
    pub replicas: usize,
    /// How many tensors.
    pub tensors: usize,
    /// The size of the tensors of one replica.
    pub bytes: u64,
    /// How many bytes went from one replica's device to another's.
    pub moved_bytes: u64,
    /// Time on the host; the GPU may still be running when it ends.
    pub host_time: Duration,
}

/// How many records are kept. The counters are not limited.
const KEPT: usize = 256;

/// The collectives of one model. A clone is the same log.
#[derive(Clone, Debug, Default)]
pub struct Collectives(Arc<Mutex<Log>>);

#[derive(Clone, Debug, Default)]
struct Log {
    recent: VecDeque<CollectiveRecord>,
    /// Since the current optimizer step began.
    this_step: Vec<Collective>,
    last_step: Vec<Collective>,
    total: u64,
    totals: CollectiveTotals,
}

/// Counters since the model was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveTotals {
    /// All-reduces of gradients, to every replica or to the device with the variables.
    pub all_reduces: u64,
    /// Sums of gradients of which each replica got its rows.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reduce_scatters: u64,
    /// Rows of variables that each replica sent to all others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub all_gathers: u64,
    /// Averages of parameters.
    pub parameter_averages: u64,
    /// Pushes: gradients that one replica sent without waiting for the others.
    pub pushes: u64,
    /// Summed over all pushes: how many updates the variables had received since the replica fetched them. Divided by
    /// [`Self::pushes`] it is the mean staleness of asynchronous training.
    pub staleness: u64,
    /// Bytes that the collectives worked on, as counted on one replica.
    pub bytes: u64,
    /// Bytes that went from one device to another.
    pub moved_bytes: u64,
}

/// What most strategies have none of is not written.
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Collectives {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a record and adds it to the counters.
    fn add(&self, mut record: CollectiveRecord) {
        let mut log = self.log();
        log.total += 1;
        record.number = log.total;
        let totals = &mut log.totals;
        match record.operation {
            Operation::AllReduce | Operation::Reduce => totals.all_reduces += 1,
            Operation::ReduceScatter => totals.reduce_scatters += 1,
            Operation::AllGather => totals.all_gathers += 1,
            Operation::Average => totals.parameter_averages += 1,
            Operation::Push => totals.pushes += 1,
            Operation::Fetch | Operation::Broadcast => {}
        }
        totals.bytes += record.bytes;
        totals.moved_bytes += record.moved_bytes;
        if log.recent.len() == KEPT {
            log.recent.pop_front();
        }
        log.recent.push_back(record);
    }

    /// Collectives from here on belong to a new step.
    pub(crate) fn begin_step(&self) {
        self.log().this_step.clear();
    }

    /// Adds a collective of the current step.
    pub(crate) fn in_step(&self, collective: Collective) {
        let mut log = self.log();
        log.this_step.push(collective);
        log.last_step = log.this_step.clone();
    }

    /// Counts a push whose gradients were computed from variables this many updates old.
    pub(crate) fn stale(&self, updates: u64) {
        self.log().totals.staleness += updates;
    }

    /// Counts a collective and keeps its transfers.
    pub(crate) fn done(&self, done: Done, since: Instant) {
        let Done {
            operation,
            collective,
            tensors,
        } = done;
        self.add(CollectiveRecord {
            operation,
            ops: collective.ops,
            number: 0,
            replicas: collective.replicas,
            tensors,
            bytes: collective.payload_bytes,
            moved_bytes: collective.moved_bytes(),
            host_time: since.elapsed(),
        });
        if operation != Operation::Broadcast {
            self.in_step(collective);
        }
    }

    /// Runs work whose collectives are not those of training: afterwards the log is as it was.
    pub fn unlogged<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restored<'a>(&'a Collectives, Option<Log>);
        impl Drop for Restored<'_> {
            fn drop(&mut self) {
                if let Some(before) = self.1.take() {
                    *self.0.log() = before;
                }
            }
        }
        let before = self.log().clone();
        let _restored = Restored(self, Some(before));
        work()
    }

    /// The latest collectives, oldest first; at most 256.
    pub fn recent(&self) -> Vec<CollectiveRecord> {
        self.log().recent.iter().cloned().collect()
    }

    /// The collectives of the last optimizer step that had any, in their order; with one replica there
    /// are none.
    pub fn last_step(&self) -> Vec<Collective> {
        self.log().last_step.clone()
    }

    /// Counters since the model was made.
    pub fn totals(&self) -> CollectiveTotals {
        self.log().totals
    }
}

/// A collective that was done.
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) collective: Collective,
    pub(crate) tensors: usize,
}

impl Done {
    pub(super) fn new(
        operation: Operation,
        ops: CrossDeviceOps,
        replicas: usize,
        bytes: u64,
        log: TransferLog,
        tensors: usize,
    ) -> Self {
        let collective = Collective {
            name: operation.payload_name().to_owned(),
            ops,
            replicas,
            payload_bytes: bytes,
            transfers: log.transfers(),
        };
        Self {
            operation,
            collective,
            tensors,
        }
    }
}
