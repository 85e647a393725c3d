//! Variables under a strategy, outside of any model: a small way to see what a mirrored variable is, what an update from
//! every replica does to it, and what its aggregation is for. Keras: `tf.Variable` with its
//! `synchronization` and `aggregation`.
//!
//! ```
//! use stratoscope_strategy::{Aggregation, MirroredStrategy, Synchronization};
//!
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! let strategy = MirroredStrategy::logical(2)?;
//! let v = strategy.variable("v", 1.0, Synchronization::Auto, Aggregation::Mean)?;
//! v.replica_update(|replica| replica.0 as f32)?;
//! assert_eq!(v.read()?, [1.5]);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::module::ParamId;
use burn::tensor::{DType, Device, Shape, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::rules::UpdateWithoutAggregation;
use stratoscope_diagnostics::{Result, Rule};

use crate::checksum::Checksum;
use crate::collective::{self, Collective};
use crate::device::LogicalDevice;
use crate::origin::Origin;
use crate::problem;
use crate::replicas::ReplicaId;
use crate::strategy::Strategy;
use crate::variable::{self, Rows, VariableKind, VariableRecord};

/// When the copies of a variable are synchronized. TensorFlow: `VariableSynchronization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronization {
    /// The strategy's default: on write, if it mirrors.
    #[default]
    Auto,
    /// At every update: the copies stay equal.
    OnWrite,
    /// When the variable is read: until then each replica has its own value, as for the counts of metrics.
    OnRead,
}

/// How the updates of the replicas are combined. TensorFlow: `VariableAggregation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// Not specified: several replicas cannot update the variable (SC0515).
    #[default]
    None,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The first replica's; the others are ignored.
    OnlyFirstReplica,
}

/// What a variable can be created from and updated with: a number, an array or a list of numbers, a float tensor.
#[diagnostic::on_unimplemented(
    message = "expected numbers, got `{Self}`",
    label = "a number, `[1.0, 2.0]`, a `Vec`, or a float tensor"
)]
pub trait IntoValue {
    /// Its shape, and its numbers row by row.
    fn into_value(self) -> (Vec<usize>, Vec<f32>);
}

macro_rules! into_value {
    ($($number:ty),*) => {$(
        impl IntoValue for $number {
            fn into_value(self) -> (Vec<usize>, Vec<f32>) {
                (vec![1], vec![self as f32])
            }
        }

        impl<const N: usize> IntoValue for [$number; N] {
            fn into_value(self) -> (Vec<usize>, Vec<f32>) {
                (vec![N], self.map(|number| number as f32).to_vec())
            }
        }

        impl IntoValue for Vec<$number> {
            fn into_value(self) -> (Vec<usize>, Vec<f32>) {
                (vec![self.len()], self.iter().map(|&number| number as f32).collect())
            }
        }
    )*};
}

into_value!(f32, f64, i32, usize);

impl<const D: usize> IntoValue for Tensor<D> {
    fn into_value(self) -> (Vec<usize>, Vec<f32>) {
        let shape = self.dims().to_vec();
        (shape, self.into_data().iter::<f32>().collect())
    }
}

/// A variable under a strategy, with real copies and real transfers.
pub struct ReplicatedVariable {
    record: VariableRecord,
    strategy: Strategy,
    aggregation: Aggregation,
    state: Mutex<State>,
}

struct State {
    /// In the order of the record's homes, flattened.
    copies: Vec<Tensor<1>>,
    moved: Vec<Collective>,
}

impl ReplicatedVariable {
    pub(crate) fn new(
        strategy: Strategy,
        name: &str,
        value: impl IntoValue,
        synchronization: Synchronization,
        aggregation: Aggregation,
        origin: Origin,
    ) -> Result<Self> {
        let (shape, numbers) = value.into_value();
        if numbers.is_empty() {
            return Err(problem::bad_size(name, "empty", "at least one number"));
        }
        let bytes = variable::bytes(&Shape::from(shape.clone()), DType::F32);
        let rows = Rows {
            count: shape.first().copied().unwrap_or(1),
            bytes,
        };
        let made = match synchronization {
            Synchronization::OnRead => variable::kind_when_read(Some(&strategy), Some(rows)),
            _ => variable::kind_under(Some(&strategy), 0, Some(rows)),
        };
        let record = VariableRecord {
            name: name.to_owned(),
            kind: made.kind,
            why: made.why,
            dtype: DType::F32.name().to_owned(),
            bytes,
            shape,
            trainable: false,
            origin,
            strategy: Some(strategy.id()),
            param: ParamId::new(),
            homes: made.homes,
            rows: made.rows,
            axis: 0,
            updated: made.updated,
        };
        let devices = strategy.devices();
        let mut copies = Vec::new();
        let row = record.shape.iter().skip(1).product::<usize>();
        for (index, &home) in record.homes.iter().enumerate() {
            let part = match (made.kind, record.rows.get(index)) {
                (VariableKind::Sharded, Some(rows)) => {
                    numbers[rows.start * row..rows.end * row].to_vec()
                }
                // The copies are summed when read, so the others start at 0.
                (VariableKind::OnRead, _) if index > 0 && aggregation == Aggregation::Sum => {
                    vec![0.0; numbers.len()]
                }
                _ => numbers.clone(),
            };
            copies.push(on(&devices[home].burn, part));
        }
        Ok(Self {
            record,
            strategy,
            aggregation,
            state: Mutex::new(State {
                copies,
                moved: Vec::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its record: its kind, and why it is of that kind.
    pub fn record(&self) -> &VariableRecord {
        &self.record
    }

    /// The numbers of its copies, or of its shards, in the order of the record's `homes`.
    pub fn copies(&self) -> Vec<Vec<f32>> {
        self.state().copies.iter().map(numbers).collect()
    }

    /// The checksum of each of [`Self::copies`].
    pub fn checksums(&self) -> Vec<Checksum> {
        let state = self.state();
        let copies = state.copies.iter();
        copies
            .map(|copy| Checksum::of(copy.to_data().as_bytes()))
            .collect()
    }

    /// What the last update or read moved between devices.
    pub fn collectives(&self) -> Vec<Collective> {
        self.state().moved.clone()
    }

    /// Every replica adds what `update` returns for it, as `assign_add` does inside a replica. The updates
    /// are aggregated first and then added to every copy, so the copies stay equal. If the variable
    /// is synchronized when read, each replica's update is added to its own copy.
    ///
    /// # Errors
    /// SC0515 if several replicas update a value without aggregation, SC0915 for an update with another
    /// number of elements; then nothing has changed.
    pub fn replica_update<V: IntoValue>(&self, update: impl Fn(ReplicaId) -> V) -> Result<()> {
        let replicas = self.strategy.replicas();
        let devices = self.strategy.devices();
        let elements: usize = self.record.shape.iter().product();
        let mut updates = Vec::new();
        for (index, device) in replicas.iter().enumerate() {
            let (_, numbers) = update(ReplicaId(index)).into_value();
            if numbers.len() != elements {
                let expects = format!("{elements}, as the value has");
                let what = "number of values in the update";
                return Err(problem::bad_size(what, numbers.len(), &expects));
            }
            updates.push(on(&device.burn, numbers));
        }
        let mut state = self.state();
        state.moved.clear();
        if self.record.kind == VariableKind::OnRead {
            let copies = std::mem::take(&mut state.copies).into_iter().zip(updates);
            state.copies = copies.map(|(copy, update)| copy + update).collect();
            return Ok(());
        }
        if self.aggregation == Aggregation::None && replicas.len() > 1 {
            let now = state.copies.first().map_or(0.0, first_number);
            let apart = updates.iter().map(|update| now + first_number(update));
            return Err(self.no_aggregation(apart.collect(), false));
        }
        let (sums, moved) = self.aggregated(updates, &devices);
        let copies = std::mem::take(&mut state.copies).into_iter().zip(sums);
        state.copies = copies.map(|(copy, sum)| copy + sum).collect();
        state.moved.extend(self.between_replicas(moved));
        Ok(())
    }

    /// The value: any of the equal copies, the shards joined, or the aggregate of the replicas'
    /// copies.
    ///
    /// # Errors
    /// SC0515 for copies that differ by design and have no aggregation.
    pub fn read(&self) -> Result<Vec<f32>> {
        let mut state = self.state();
        state.moved.clear();
        match self.record.kind {
            VariableKind::Sharded => Ok(state.copies.iter().flat_map(numbers).collect()),
            VariableKind::OnRead if state.copies.len() > 1 => {
                if self.aggregation == Aggregation::None {
                    let copies = state.copies.iter().map(first_number).collect();
                    return Err(self.no_aggregation(copies, true));
                }
                if self.aggregation == Aggregation::OnlyFirstReplica {
                    return Ok(numbers(&state.copies[0]));
                }
                let devices = self.strategy.replicas();
                let weighted = self.weighted(state.copies.clone());
                let (sum, moved) = collective::gather("OnRead totals", weighted, 0, devices);
                state.moved.extend(self.between_replicas(moved));
                Ok(numbers(&sum))
            }
            _ => Ok(numbers(&state.copies[0])),
        }
    }

    /// What the first devices of the replicas have sent each other, with the numbers of these devices.
    fn between_replicas(&self, moved: Option<Collective>) -> Option<Collective> {
        moved.map(|mut moved| {
            moved.spread(self.strategy.devices_of_a_replica());
            moved
        })
    }

    /// Each value times its weight in the aggregate.
    fn weighted(&self, values: Vec<Tensor<1>>) -> Vec<Tensor<1>> {
        match self.aggregation {
            Aggregation::Mean => {
                let weight = 1.0 / values.len() as f64;
                let values = values.into_iter();
                values.map(|value| value.mul_scalar(weight)).collect()
            }
            _ => values,
        }
    }

    /// What is added to each copy or shard, from the updates of the replicas.
    fn aggregated(
        &self,
        updates: Vec<Tensor<1>>,
        devices: &[LogicalDevice],
    ) -> (Vec<Tensor<1>>, Option<Collective>) {
        let first_only = self.aggregation == Aggregation::OnlyFirstReplica;
        let updates = match first_only {
            true => updates.into_iter().take(1).collect(),
            false => self.weighted(updates),
        };
        match self.record.kind {
            VariableKind::Mirrored if first_only => {
                collective::spread("updates", &updates[0], self.strategy.replicas())
            }
            VariableKind::Mirrored => collective::sum(
                "updates",
                self.strategy.cross_device_ops(),
                updates,
                self.strategy.replicas(),
            ),
            VariableKind::Sharded => {
                let row = self.record.shape.iter().skip(1).product::<usize>();
                let rows = self.record.rows.iter();
                let parts: Vec<Range<usize>> =
                    rows.map(|rows| rows.start * row..rows.end * row).collect();
                let homes = &self.record.homes;
                collective::scatter("updates", updates, &parts, homes, devices)
            }
            _ => {
                let home = self.record.homes.first().copied().unwrap_or(0);
                let (sum, moved) = collective::gather("updates", updates, home, devices);
                (vec![sum], moved)
            }
        }
    }

    fn no_aggregation(
        &self,
        copies: Vec<f64>,
        reading: bool,
    ) -> Box<stratoscope_diagnostics::Diagnostic> {
        UpdateWithoutAggregation {
            variable: self.record.name.clone(),
            kind: self.record.kind.title().to_owned(),
            replicas: self.strategy.replicas().len(),
            copies,
            reading,
        }
        .error()
    }
}

impl fmt::Display for ReplicatedVariable {
    /// Its kind and a line per copy, as TensorFlow prints a `MirroredVariable`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VariableRecord { name, kind, .. } = &self.record;
        writeln!(f, "{} `{name}`: {}", kind.title(), self.record.why)?;
        let devices = self.strategy.devices();
        for (index, copy) in self.copies().into_iter().enumerate() {
            let device = &devices[self.record.homes[index]];
            let rows = match self.record.rows.get(index) {
                Some(rows) => format!(" rows {}–{}", rows.start, rows.end.saturating_sub(1)),
                None => String::new(),
            };
            let more = if copy.len() > 8 { ", …" } else { "" };
            let shown: Vec<String> = copy.iter().take(8).map(f32::to_string).collect();
            writeln!(
                f,
                "  {} ({}){rows}: [{}{more}]",
                device.name,
                device.kind.word(),
                shown.join(", ")
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for ReplicatedVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The first number of a tensor, for messages.
fn first_number(tensor: &Tensor<1>) -> f64 {
    numbers(tensor)
        .first()
        .map_or(0.0, |&number| f64::from(number))
}

fn numbers(tensor: &Tensor<1>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}

fn on(device: &Device, numbers: Vec<f32>) -> Tensor<1> {
    let length = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [length]), device)
}
