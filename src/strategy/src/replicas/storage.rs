//! Where the variables of a module are stored: the one difference between the strategies.
//!
//! | storage | strategies | stored modules | memory for P parameters, R replicas |
//! | --- | --- | --- | --- |
//! | mirrored | `OneDevice`, `Mirrored`, `Tpu`, none | one per replica | R · P |
//! | central | `CentralStorage`, `ParameterServer` without a partitioner | one | P |
//! | per process | `MultiWorkerMirrored` | one in each process | R · P over all processes, P in this one |
//! | sharded | `ParameterServer` with a partitioner, `Mirrored` with `Shard::Parameters` | one per server or replica, with its rows | P, over all of them |
//! | sharded, by slices | `ModelParallel` | one per device, with its slices; the first one's of each replica has all that is not cut | R · P, over all of them |
//! | sharded, by stages | `Pipeline` | one per stage of each replica, with the variables of its layers | R · P, over all of them |
//! | sharded, with copies | `Mirrored` with `Shard::Optimizer` or `Gradients` | one per replica, with the rows that it updates: a part of its copy | R · P |
//!
//! Replicas of central and sharded variables fetch a copy before they compute. Those with copies get the rows that the others
//! have updated after each update.

use std::ops::Range;
use std::sync::OnceLock;

use burn::module::Module;
use burn::optim::GradientsParams;
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;

use super::Replicas;
use crate::copy;
use crate::device::LogicalDevice;
use crate::shards::{self, Homes};
use crate::strategy::distribution::Storing;
use crate::strategy::{Shard, Strategy};
use crate::variable::{VariableKind, VariableRecord};

/// What [`Replicas::modules`] holds.
pub(super) enum Storage<M> {
    /// A full copy on every replica; one replica is the simplest case.
    Mirrored,
    /// A full copy in the process of every worker, of which the one of this process is here. With local SGD the copies of
    /// all are stored here ([`Replicas::store_all`]), as if they were mirrored.
    PerProcess,
    /// One copy of each variable.
    Central {
        /// The device of each variable.
        homes: Homes,
    },
    /// Each server has the rows of the variables that are assigned to it; without servers each replica, or each stage of a
    /// pipeline, whose variables are whole.
    Sharded {
        /// The devices of each variable's rows.
        homes: Homes,
        /// What replicas divide among them, where they are the homes.
        shard: Option<Shard>,
        /// How many times all rows are stored: once for each replica of several devices, else once. `homes` are those of
        /// the first time; each further time is on as many devices after those before.
        copies: usize,
        /// The full modules, one or one of each replica, joined when they were first needed after a change.
        joined: OnceLock<Vec<M>>,
    },
}

impl<M> Storage<M> {
    /// The storage of these variables under a strategy.
    pub(super) fn of(strategy: Option<&Strategy>, records: &[VariableRecord]) -> Self {
        let storing = strategy.map(Strategy::storing);
        if storing == Some(Storing::CopiesInProcesses) {
            return Self::PerProcess;
        }
        if strategy.is_none_or(Strategy::has_copies) {
            return Self::Mirrored;
        }
        let divides_layers = storing == Some(Storing::ByLayers);
        let (copies, of_a_copy) = match strategy.filter(|_| divides_layers) {
            Some(strategy) => (strategy.replicas().len(), strategy.devices_of_a_replica()),
            None => (1, usize::MAX),
        };
        let home = |record: &VariableRecord| {
            let mut parts = record.parts();
            parts.retain(|part| part.home < of_a_copy);
            (record.param, parts)
        };
        let homes = records.iter().map(home).collect();
        let is_sharded = |record: &VariableRecord| record.kind == VariableKind::Sharded;
        let shard = strategy.and_then(Strategy::shard);
        match divides_layers || shard.is_some() || records.iter().any(is_sharded) {
            false => Self::Central { homes },
            true => Self::Sharded {
                homes,
                shard,
                copies,
                joined: OnceLock::new(),
            },
        }
    }

    /// The device of each variable's rows, where a variable is stored once.
    pub(super) fn homes(&self) -> Option<&Homes> {
        match self {
            Self::Mirrored | Self::PerProcess => None,
            Self::Central { homes } | Self::Sharded { homes, .. } => Some(homes),
        }
    }

    /// Forgets what was computed from the stored values.
    pub(super) fn values_changed(&mut self) {
        if let Self::Sharded { joined, .. } = self {
            *joined = OnceLock::new();
        }
    }

    /// The same storage of other values.
    pub(super) fn for_other_values(&self) -> Self {
        match self {
            Self::Mirrored => Self::Mirrored,
            Self::PerProcess => Self::PerProcess,
            Self::Central { homes } => Self::Central {
                homes: homes.clone(),
            },
            Self::Sharded {
                homes,
                shard,
                copies,
                ..
            } => Self::Sharded {
                homes: homes.clone(),
                shard: *shard,
                copies: *copies,
                joined: OnceLock::new(),
            },
        }
    }

    /// What one of the stored modules is called in messages.
    pub(super) fn module_name(&self) -> &'static str {
        match self {
            Self::Mirrored => "replica",
            Self::PerProcess | Self::Central { .. } => "copy",
            Self::Sharded { .. } => "device with shards",
        }
    }
}

/// The rows of a variable, or its columns, that one of the modules of a copy has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPart {
    /// Which of the [modules of a copy](Replicas::modules_of_a_copy).
    pub module: usize,
    /// The rows.
    pub rows: Range<usize>,
    /// What `rows` counts: 0 for rows, 1 for columns.
    pub axis: usize,
}

impl<M: Module + 'static> Replicas<M> {
    /// Where the rows of each variable are among the modules of a copy, in the order of the records. A variable that is not
    /// divided is one part.
    pub fn stored_parts(&self) -> Vec<Vec<StoredPart>> {
        let homes = self.storage.homes().filter(|_| self.is_sharded());
        let parts = |record: &VariableRecord| match homes.and_then(|it| it.get(&record.param)) {
            None => vec![StoredPart {
                module: 0,
                rows: 0..record.num_rows(),
                axis: 0,
            }],
            Some(parts) => {
                let parts = parts.iter().map(|part| StoredPart {
                    module: part.home - self.first_home(),
                    rows: part.rows.clone(),
                    axis: part.axis,
                });
                parts.collect()
            }
        };
        self.records.iter().map(parts).collect()
    }

    /// The devices of [`Self::modules`]: every replica, one device, every server, every stage, or every device with slices.
    pub fn storage_devices(&self) -> &[LogicalDevice] {
        if let Some(stages) = &self.stages {
            return &stages.devices;
        }
        if !self.sliced_over.is_empty() {
            return &self.sliced_over;
        }
        match (&self.storage, self.servers.as_slice()) {
            (Storage::Mirrored, _) => &self.devices,
            (Storage::PerProcess, _) | (Storage::Central { .. }, []) => &self.devices[..1],
            // Servers are shares of one processor, so one module holds the variables of all of them; the
            // server of each variable is in its record.
            (Storage::Central { .. }, servers) => &servers[..1],
            (Storage::Sharded { .. }, []) => &self.devices,
            (Storage::Sharded { .. }, servers) => servers,
        }
    }

    /// All full copies: one per replica if the variables are mirrored, else one, also where each replica has all variables on
    /// several devices. Shards are joined as in [`Self::first`].
    pub fn unsharded(&self) -> &[M] {
        match &self.storage {
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => &self.modules,
            Storage::Sharded { joined, .. } => joined.get_or_init(|| {
                let full = self.joined_copies();
                full.expect("devices whose memory could be written can be read")
            }),
        }
    }

    /// The full copies of sharded variables: of each replica that keeps one, or of the first device with shards.
    pub(super) fn joined_copies(&self) -> Result<Vec<M>> {
        let devices = match self.keeps_copies() {
            true => &self.devices[..],
            false => &self.storage_devices()[..1],
        };
        devices.iter().map(|it| self.full_copy(0, it)).collect()
    }

    /// How many of [`Self::modules`] have all variables together: 1 where each is a full copy.
    pub fn modules_of_a_copy(&self) -> usize {
        self.storage_devices().len() / self.copies().max(1)
    }

    /// The modules and the devices that have a copy of all variables together.
    fn of_copy(&self, copy: usize) -> (&[M], &[LogicalDevice]) {
        let each = self.modules_of_a_copy();
        let own = copy * each..(copy + 1) * each;
        (&self.modules[own.clone()], &self.storage_devices()[own])
    }

    /// Whether replicas keep full copies of variables of which each updates some rows.
    pub(super) fn keeps_copies(&self) -> bool {
        matches!(self.shard(), Some(Shard::Optimizer | Shard::Gradients))
    }

    /// The number of the first device that may store shards, as in [`crate::VariableRecord::homes`].
    pub(super) fn first_home(&self) -> usize {
        match self.servers.is_empty() {
            true => 0,
            false => self.len(),
        }
    }

    /// The gradients of each module of a copy, from the gradients of all variables: unchanged, or split into the rows of each
    /// server, or into the slices of each device.
    pub fn scatter(&self, copy: usize, gradients: GradientsParams) -> Vec<GradientsParams> {
        match &self.storage {
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => vec![gradients],
            Storage::Sharded { homes, .. } => {
                let (first, (_, devices)) = (self.first_home(), self.of_copy(copy));
                shards::scatter(self.structure(), homes, first, devices, gradients)
            }
        }
    }

    /// What is to be stored of a module: a copy for every storage device, or its rows.
    pub(super) fn copies_of(&self, module: &M) -> Result<Vec<M>> {
        let devices = self.storage_devices().iter();
        match &self.storage {
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => {
                devices.map(|device| copy::module(module, device)).collect()
            }
            Storage::Sharded { homes, .. } => (0..self.modules_of_a_copy())
                .cycle()
                .map(|home| self.first_home() + home)
                .zip(devices)
                .map(|(home, device)| shards::split(module, homes, home, device))
                .collect(),
        }
    }

    /// Under worker processes: whether this process stores the copies of all replicas, or that of its own alone. Local SGD
    /// needs all, since replicas that step alone differ. The copies share their memory until they do. Does nothing under
    /// other strategies.
    pub fn store_all(&mut self, all: bool) {
        let storing = self.strategy.as_ref().map(Strategy::storing);
        if storing != Some(Storing::CopiesInProcesses) {
            return;
        }
        match (&self.storage, all) {
            (Storage::PerProcess, true) => {
                self.storage = Storage::Mirrored;
                self.modules = vec![self.modules[0].clone(); self.devices.len()];
            }
            (Storage::Mirrored, false) => {
                self.storage = Storage::PerProcess;
                self.modules.truncate(1);
            }
            _ => return,
        }
        self.values_changed();
    }

    /// A full copy of the variables, on a device, from one of those that are stored.
    pub(super) fn full_copy(&self, copy: usize, device: &LogicalDevice) -> Result<M> {
        match &self.storage {
            Storage::Mirrored | Storage::PerProcess | Storage::Central { .. } => {
                copy::module(&self.modules[0], device)
            }
            Storage::Sharded { homes, .. } => {
                let (own, _) = self.of_copy(copy);
                shards::join(&own[0], own, homes, self.first_home(), device)
            }
        }
    }
}
