//! The placement report: which variable has how many bytes on which device, who made it, whether the
//! copies are equal, what the replicas do together. It is plain data, drawn three times: as HTML
//! for notebooks, as text for terminals, as JSON for programs.

mod fold;
mod html;
mod json;
mod plain;
mod units;

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::{Figure, Result, words};

use burn::module::{Module, ParamId};

use crate::checksum::Checksum;
use crate::collective::{Algorithm, CollectiveTotals, Operation};
use crate::device::{BackendKind, DeviceKind, LogicalDevice};
use crate::origin::Origin;
use crate::replicas::Replicas;
use crate::strategy::{Strategy, StrategyKind};
use crate::variable::{VariableKind, VariableRecord};

pub use self::units::bytes;

/// Whether a number was measured or follows from a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// Nothing is allocated yet; it will be at the first step.
    Planned,
    /// Allocated, with this size.
    Measured,
}

/// Something that training keeps beside each trainable variable: its gradient, a moment of Adam.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// `gradients`, `Adam m`.
    pub name: String,
    /// Planned or measured.
    pub state: SlotState,
}

/// The strategy that the report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategySummary {
    /// `mirrored`.
    pub name: String,
    /// `mirrored#1`.
    pub label: String,
    /// Its type.
    pub kind: StrategyKind,
    /// The strategy in a line.
    pub description: String,
    /// How many replicas it has.
    pub replicas: usize,
}

/// A device of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceColumn {
    /// `cpu:0`.
    pub name: String,
    /// Physical, logical or simulated.
    pub kind: DeviceKind,
    /// What computes.
    pub backend: BackendKind,
    /// What it is, in words.
    pub description: String,
    /// The replica that runs on it; none for a device outside the strategy.
    pub replica: Option<usize>,
    /// Memory it may use.
    pub capacity_bytes: Option<u64>,
    /// How many logical devices share the physical one.
    pub shared_by: usize,
}

/// A copy of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableCopy {
    /// Its place in [`PlacementReport::devices`].
    pub device: usize,
    /// The checksum of its bytes.
    pub checksum: Checksum,
}

/// A variable of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// Where its copies are.
    pub kind: VariableKind,
    /// Why, a sentence.
    pub why: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type.
    pub dtype: String,
    /// The size of one copy.
    pub bytes: u64,
    /// Whether training changes it.
    pub trainable: bool,
    /// Who made it.
    pub origin: Origin,
    /// The strategy of the report has not placed it.
    pub outside: bool,
    /// Its copies, in the order of the devices.
    pub copies: Vec<VariableCopy>,
    /// The size of each slot, per copy, in the order of [`PlacementReport::slots`]; 0 where it has
    /// none.
    pub slots: Vec<u64>,
    #[serde(skip)]
    param: Option<ParamId>,
}

impl VariableRow {
    fn of(record: &VariableRecord, outside: bool, sums: &[Checksum], first: usize) -> Self {
        let copies = sums.iter().enumerate();
        Self {
            name: record.name.clone(),
            kind: record.kind,
            why: record.why.clone(),
            shape: record.shape.clone(),
            dtype: record.dtype.clone(),
            bytes: record.bytes,
            trainable: record.trainable,
            origin: record.origin.clone(),
            outside,
            copies: copies
                .map(|(i, &checksum)| VariableCopy {
                    device: first + i,
                    checksum,
                })
                .collect(),
            slots: Vec::new(),
            param: Some(record.param),
        }
    }

    /// Whether all copies have the same bytes.
    pub fn is_equal(&self) -> bool {
        self.copies
            .windows(2)
            .all(|pair| pair[0].checksum == pair[1].checksum)
    }

    /// Whether equality is promised: copies that each replica writes alone may differ.
    pub fn must_be_equal(&self) -> bool {
        self.kind != VariableKind::OnRead
    }

    /// How many numbers it holds.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    fn on(&self, device: usize) -> Option<&VariableCopy> {
        self.copies.iter().find(|copy| copy.device == device)
    }
}

/// The collectives of one optimizer step, one line per kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveRow {
    /// What is done.
    pub operation: Operation,
    /// How.
    pub algorithm: Algorithm,
    /// How often per optimizer step.
    pub per_step: u64,
    /// How many tensors.
    pub tensors: usize,
    /// Their size on one replica.
    pub bytes: u64,
    /// How many bytes go between devices.
    pub moved_bytes: u64,
    /// Planned until a step was made.
    pub state: SlotState,
}

/// What a device holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTotals {
    /// Weights.
    pub weights: u64,
    /// Each slot, in the order of [`PlacementReport::slots`].
    pub slots: Vec<u64>,
}

impl DeviceTotals {
    /// Weights and slots together.
    pub fn sum(&self) -> u64 {
        self.weights + self.slots.iter().sum::<u64>()
    }
}

/// The report. See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementReport {
    /// What was placed: `BertForSequenceClassification`.
    pub title: Option<String>,
    /// The strategy that it is shown against, if there is one.
    pub strategy: Option<StrategySummary>,
    /// The columns: the devices of the strategy, then others that hold variables.
    pub devices: Vec<DeviceColumn>,
    /// The rows, in the order of the module's fields.
    pub variables: Vec<VariableRow>,
    /// What training keeps beside the variables.
    pub slots: Vec<Slot>,
    /// The collectives of a step.
    pub collectives: Vec<CollectiveRow>,
    /// The collectives so far.
    pub totals: CollectiveTotals,
}

impl PlacementReport {
    /// The report of a placed module, with the checksum of every copy.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn of<M: Module + 'static>(replicas: &Replicas<M>) -> Result<Self> {
        let strategy = replicas.strategy();
        let devices = columns(replicas.devices(), strategy.is_some());
        Self::build(replicas, strategy, devices, 0, false)
    }

    /// The report of a module that `strategy` has not placed: its variables are outside, the
    /// strategy's devices have no copy.
    ///
    /// # Errors
    /// SC0907 if a value cannot be read from its device.
    pub fn outside<M: Module + 'static>(
        replicas: &Replicas<M>,
        strategy: &Strategy,
    ) -> Result<Self> {
        let mut devices = columns(strategy.replicas(), true);
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
                column
            }
        };
        Self::build(replicas, Some(strategy), devices, first, true)
    }

    fn build<M: Module + 'static>(
        replicas: &Replicas<M>,
        strategy: Option<&Strategy>,
        devices: Vec<DeviceColumn>,
        first: usize,
        outside: bool,
    ) -> Result<Self> {
        let sums = replicas.checksums()?;
        let records = replicas.records().iter();
        let variables: Vec<VariableRow> = records
            .zip(&sums)
            .map(|(record, sums)| VariableRow::of(record, outside, sums, first))
            .collect();
        let mut report = Self {
            title: None,
            strategy: strategy.map(summary),
            devices,
            variables,
            slots: Vec::new(),
            collectives: Vec::new(),
            totals: replicas.collectives().totals(),
        };
        report.collectives = report.collectives_of_a_step(replicas, outside);
        Ok(report)
    }

    /// Names what was placed.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds something that training will keep beside each trainable variable, of the variable's
    /// size.
    #[must_use]
    pub fn planned(mut self, name: impl Into<String>) -> Self {
        self.slots.push(Slot {
            name: name.into(),
            state: SlotState::Planned,
        });
        for row in &mut self.variables {
            row.slots.push(if row.trainable { row.bytes } else { 0 });
        }
        self
    }

    /// Adds something that training keeps, with the size it has per copy of a variable; `None` where
    /// a variable has none.
    #[must_use]
    pub fn measured(
        mut self,
        name: impl Into<String>,
        bytes_of: impl Fn(ParamId) -> Option<u64>,
    ) -> Self {
        self.slots.push(Slot {
            name: name.into(),
            state: SlotState::Measured,
        });
        for row in &mut self.variables {
            row.slots.push(row.param.and_then(&bytes_of).unwrap_or(0));
        }
        self
    }

    /// Adds a variable that is no part of the module, such as a metric's totals, with the checksum
    /// of its copy on each replica.
    #[must_use]
    pub fn with_variable(mut self, record: &VariableRecord, copies: &[Checksum]) -> Self {
        let mut row = VariableRow::of(record, false, copies, 0);
        row.slots = vec![0; self.slots.len()];
        self.variables.push(row);
        self
    }

    fn collectives_of_a_step<M: Module + 'static>(
        &self,
        replicas: &Replicas<M>,
        outside: bool,
    ) -> Vec<CollectiveRow> {
        let others = u64::try_from(replicas.len().saturating_sub(1)).unwrap_or(u64::MAX);
        if outside || others == 0 {
            return Vec::new();
        }
        let recent = replicas.collectives().recent();
        let last = recent
            .iter()
            .rfind(|record| record.operation == Operation::AllReduce);
        let trainable = self.variables.iter().filter(|row| row.trainable);
        let planned: u64 = trainable.clone().map(|row| row.bytes).sum();
        vec![match last {
            Some(record) => CollectiveRow {
                operation: record.operation,
                algorithm: record.algorithm,
                per_step: 1,
                tensors: record.tensors,
                bytes: record.bytes,
                moved_bytes: record.moved_bytes,
                state: SlotState::Measured,
            },
            None => CollectiveRow {
                operation: Operation::AllReduce,
                algorithm: Algorithm::Centralized,
                per_step: 1,
                tensors: trainable.count(),
                bytes: planned,
                moved_bytes: planned.saturating_mul(2 * others),
                state: SlotState::Planned,
            },
        }]
    }

    /// What a device holds.
    pub fn device_totals(&self, device: usize) -> DeviceTotals {
        let mut totals = DeviceTotals {
            weights: 0,
            slots: vec![0; self.slots.len()],
        };
        for row in self.variables.iter().filter(|row| row.on(device).is_some()) {
            totals.weights += row.bytes;
            for (sum, bytes) in totals.slots.iter_mut().zip(&row.slots) {
                *sum += bytes;
            }
        }
        totals
    }

    /// How many variables are outside the strategy.
    pub fn variables_outside(&self) -> usize {
        self.variables.iter().filter(|row| row.outside).count()
    }

    /// Whether every variable whose copies must be equal has equal copies.
    pub fn copies_are_equal(&self) -> bool {
        self.unequal() == 0
    }

    fn unequal(&self) -> usize {
        self.variables
            .iter()
            .filter(|row| row.must_be_equal() && !row.is_equal())
            .count()
    }

    /// The report in one sentence: what is right or wrong with it.
    pub fn verdict(&self) -> String {
        let count = words::count(self.variables.len(), "variable");
        let outside = self.variables_outside();
        if let Some(strategy) = self.strategy.as_ref().filter(|_| outside > 0) {
            let are = if outside == 1 {
                "variable is"
            } else {
                "variables are"
            };
            return format!(
                "{} {are} outside `{}`",
                words::thousands(outside),
                strategy.name
            );
        }
        match (self.unequal(), self.devices.len()) {
            (0, 0 | 1) => format!("{count}, one copy each"),
            (0, replicas) => format!("{count}, equal on all {replicas} replicas"),
            (unequal, _) => {
                let differ = if unequal == 1 { "differs" } else { "differ" };
                format!(
                    "{} of {count} {differ} between replicas",
                    words::thousands(unequal)
                )
            }
        }
    }

    /// The report as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        html::card(self)
    }

    /// The report as text of at most 100 columns.
    pub fn to_plain(&self) -> String {
        plain::text(self)
    }

    /// The report as JSON, with totals and verdict worked out.
    pub fn to_json(&self) -> serde_json::Value {
        json::value(self)
    }

    /// The grid alone, for the card of a diagnostic.
    pub fn figure(&self) -> Figure {
        Figure {
            html: html::figure(self),
            plain: plain::figure(self),
        }
    }
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
        capacity_bytes: device.capacity_bytes,
        shared_by: device.shared_by,
    };
    devices.iter().map(column).collect()
}
