//! Builds a report from replicas. Checksums are read from the devices; everything else is known without that.

use std::collections::HashMap;

use burn::module::{Module, ParamId};
use stratoscope_diagnostics::Result;

use super::PlacementReport;
use super::parts::{DeviceColumn, SlotState, StrategySummary, VariableCopy, VariableRow};
use super::timeline::Timeline;
use crate::checksum::Checksum;
use crate::device::LogicalDevice;
use crate::replicas::Replicas;
use crate::strategy::Strategy;
use crate::variable::VariableRecord;

impl PlacementReport {
    /// The report of a placed module, with the checksum of every copy.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn of<M: Module + 'static>(replicas: &Replicas<M>) -> Result<Self> {
        let strategy = replicas.strategy();
        let mut devices = match strategy {
            Some(strategy) => computing(strategy),
            None => columns(replicas.devices(), false),
        };
        devices.extend(strategy.into_iter().flat_map(servers));
        let row = |(record, sums): (&VariableRecord, Vec<Checksum>)| {
            VariableRow::of(record, false, copies(record, &sums))
        };
        let sums = replicas.checksums()?;
        let variables = replicas.records().iter().zip(sums).map(row).collect();
        let mut report = Self::empty(strategy, devices, variables);
        let (done, state) = match replicas.collectives().last_step() {
            none if none.is_empty() => (replicas.planned_collectives(), SlotState::Planned),
            done => (done, SlotState::Measured),
        };
        report.collectives = done.iter().map(|done| Timeline::of(done, state)).collect();
        report.totals = replicas.collectives().totals();
        Ok(report)
    }

    /// The report of a module that `strategy` did not place: its variables are outside of it, and the
    /// strategy's devices have no copy.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn unplaced<M: Module + 'static>(
        replicas: &Replicas<M>,
        strategy: &Strategy,
    ) -> Result<Self> {
        let mut devices = computing(strategy);
        devices.extend(servers(strategy));
        // The processor as a whole and the strategy's first share of it are the same memory.
        let held = replicas.devices();
        let same = |device: &LogicalDevice| {
            held.first()
                .is_some_and(|first| held.len() == 1 && first.burn == device.burn)
        };
        let first = match strategy.replicas().iter().position(same) {
            Some(column) => column,
            None => {
                let column = devices.len();
                devices.extend(columns(held, false));
                devices.extend(replicas.strategy().into_iter().flat_map(servers));
                column
            }
        };
        let row = |(record, sums): (&VariableRecord, Vec<Checksum>)| {
            let mut copies = copies(record, &sums);
            for copy in &mut copies {
                copy.device += first;
            }
            VariableRow::of(record, true, copies)
        };
        let sums = replicas.checksums()?;
        let variables = replicas.records().iter().zip(sums).map(row).collect();
        Ok(Self::empty(Some(strategy), devices, variables))
    }

    /// Leaves out what this process stores for replicas of other processes, which have copies of their own.
    pub fn without_copies_of_others(&mut self) {
        for row in &mut self.variables {
            row.copies.truncate(1);
        }
    }

    /// Adds the copies that another process has, at the device of a replica.
    pub fn add_copies(&mut self, replica: usize, sums: &HashMap<ParamId, Checksum>) {
        let mut devices = self.devices.iter();
        let Some(device) = devices.position(|it| it.replica == Some(replica)) else {
            return;
        };
        for row in &mut self.variables {
            let sum = row.param.and_then(|param| sums.get(&param));
            if let (Some(&checksum), None) = (sum, row.on(device)) {
                row.copies.push(VariableCopy {
                    device,
                    bytes: row.bytes,
                    rows: None,
                    axis: 0,
                    updated: None,
                    checksum,
                });
            }
        }
    }

    fn empty(
        strategy: Option<&Strategy>,
        devices: Vec<DeviceColumn>,
        variables: Vec<VariableRow>,
    ) -> Self {
        Self {
            title: None,
            strategy: strategy.map(summary),
            devices,
            variables,
            slots: Vec::new(),
            activations: None,
            shows_activations: false,
            collectives: Vec::new(),
            totals: Default::default(),
        }
    }
}

/// A copy at each of the variable's homes; of a sharded variable, its rows there.
fn copies(record: &VariableRecord, sums: &[Checksum]) -> Vec<VariableCopy> {
    let copies = record.homes.iter().zip(sums).enumerate();
    copies
        .map(|(index, (&device, &checksum))| VariableCopy {
            device,
            bytes: match record.rows.get(index) {
                Some(rows) => record.bytes_of(rows),
                None => record.bytes,
            },
            rows: record.rows.get(index).cloned(),
            axis: record.axis,
            updated: updated(record, device),
            checksum,
        })
        .collect()
}

/// The rows that a device updates of a variable that it has a copy of, where others update the rest.
fn updated(record: &VariableRecord, device: usize) -> Option<std::ops::Range<usize>> {
    if record.updated.is_empty() {
        return None;
    }
    let mut updated = record.updated.iter();
    let rows = updated.find(|(home, _)| *home == device);
    Some(rows.map_or(0..0, |(_, rows)| rows.clone()))
}

fn summary(strategy: &Strategy) -> StrategySummary {
    StrategySummary {
        name: strategy.name().to_owned(),
        label: strategy.label(),
        kind: strategy.kind(),
        description: strategy.to_string(),
        replicas: strategy.replicas().len(),
    }
}

fn columns(devices: &[LogicalDevice], in_strategy: bool) -> Vec<DeviceColumn> {
    let column = |device: &LogicalDevice| DeviceColumn {
        name: device.name.clone(),
        kind: device.kind,
        backend: device.backend,
        description: device.description.clone(),
        replica: in_strategy.then_some(device.id),
        server: None,
        stage: None,
        slice: None,
        capacity_bytes: device.capacity_bytes,
        shared_by: device.shared_by,
    };
    devices.iter().map(column).collect()
}

/// The devices that compute: replicas, or those of replicas of several devices: the stages of a pipeline, or those with slices of
/// the layers.
fn computing(strategy: &Strategy) -> Vec<DeviceColumn> {
    let (slices, stages) = (strategy.model_devices(), strategy.stages());
    if slices.is_empty() && stages.is_empty() {
        return columns(strategy.replicas(), true);
    }
    let (each, replicas) = (strategy.devices_of_a_replica(), strategy.replicas().len());
    let is_stage = slices.is_empty();
    let mut devices = columns(if is_stage { stages } else { slices }, false);
    for (index, device) in devices.iter_mut().enumerate() {
        let place = Some(index % each);
        (device.stage, device.slice) = if is_stage {
            (place, None)
        } else {
            (None, place)
        };
        device.replica = (replicas > 1).then_some(index / each);
    }
    devices
}

/// The devices that store variables and compute nothing.
fn servers(strategy: &Strategy) -> Vec<DeviceColumn> {
    let mut servers = columns(strategy.servers(), false);
    for (index, server) in servers.iter_mut().enumerate() {
        server.server = Some(index);
    }
    servers
}
