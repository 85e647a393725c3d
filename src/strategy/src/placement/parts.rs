//! The parts of a report: plain data, independent of how it looks.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use burn::module::ParamId;

use crate::checksum::Checksum;
use crate::device::{BackendKind, DeviceKind};
use crate::origin::Origin;
use crate::strategy::StrategyKind;
use crate::variable::{VariableKind, VariableRecord};

/// How a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// Nothing is allocated yet; it will be at the first step.
    Planned,
    /// Computed from shapes by a formula that leaves small parts out.
    Estimated,
    /// Allocated, with this size.
    Measured,
}

impl SlotState {
    /// The word on the report: `planned`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Estimated => "estimated",
            Self::Measured => "measured",
        }
    }
}

/// A value that training stores for each trainable variable: its gradient, a moment of Adam.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// `gradients`, `Adam m`.
    pub name: String,
    /// Planned or measured.
    pub state: SlotState,
    /// Whether a device keeps it for the rows that it updates only, also where it has a copy of the variable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_divided: bool,
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
    /// The backend.
    pub backend: BackendKind,
    /// What it is, in words.
    pub description: String,
    /// The replica that runs on it, alone or with other devices; none for a server and for a device outside the strategy.
    pub replica: Option<usize>,
    /// The parameter server that it is.
    pub server: Option<usize>,
    /// The stage of a pipeline that computes on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
    /// Its number among the devices of a replica that have slices of the layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<usize>,
    /// Memory it may use.
    pub capacity_bytes: Option<u64>,
    /// How many logical devices share the physical one.
    pub shared_by: usize,
}

/// A copy of a variable, or the shard of it that a device stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableCopy {
    /// Its place in [`PlacementReport::devices`](super::PlacementReport::devices).
    pub device: usize,
    /// Its size.
    pub bytes: u64,
    /// The rows that are here, for a sharded variable; or the columns, where that is the axis.
    pub rows: Option<Range<usize>>,
    /// The axis that `rows` counts: 0, or 1 for columns.
    #[serde(default, skip_serializing_if = "is_rows")]
    pub axis: usize,
    /// The rows that are updated here, where replicas with copies divide the update among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<Range<usize>>,
    /// The checksum of its bytes.
    pub checksum: Checksum,
}

fn is_rows(axis: &usize) -> bool {
    *axis == 0
}

/// A variable of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// Where its copies are.
    pub kind: VariableKind,
    /// Why it is of that kind, as a clause of a sentence.
    pub why: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type.
    pub dtype: String,
    /// The size of the whole variable, once.
    pub bytes: u64,
    /// Whether training changes it.
    pub trainable: bool,
    /// Where it was created.
    pub origin: Origin,
    /// Whether the strategy of the report did not place it.
    pub outside: bool,
    /// Whether it is not part of the module, such as the state of a metric.
    pub beside: bool,
    /// Its copies, in the order of the devices.
    pub copies: Vec<VariableCopy>,
    /// The size of each slot beside a whole copy, in the order of
    /// [`PlacementReport::slots`](super::PlacementReport::slots); 0 where it has none.
    pub slots: Vec<u64>,
    #[serde(skip)]
    pub(super) param: Option<ParamId>,
}

impl VariableRow {
    /// The row of a variable with these copies.
    pub(super) fn of(record: &VariableRecord, outside: bool, copies: Vec<VariableCopy>) -> Self {
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
            beside: false,
            copies,
            slots: Vec::new(),
            param: Some(record.param),
        }
    }

    /// Whether all copies have the same bytes, and of pieces all copies of the same piece.
    pub fn is_equal(&self) -> bool {
        let mut copies = self.copies.iter();
        copies.all(|copy| {
            let first = self.copies_of(copy).next();
            first.is_none_or(|first| first.checksum == copy.checksum)
        })
    }

    /// Whether equality is promised: copies that each replica writes alone may differ, and so may different pieces.
    pub fn must_be_equal(&self) -> bool {
        match self.kind {
            VariableKind::Mirrored => true,
            VariableKind::Sharded => self.is_copied(),
            VariableKind::Local | VariableKind::OnRead | VariableKind::Central => false,
        }
    }

    /// Whether there are several copies of a piece, or of all of it.
    fn is_copied(&self) -> bool {
        let first = self.copies.first();
        first.is_some_and(|first| self.copies_of(first).count() > 1)
    }

    /// The copies of the same piece, or all copies of a variable that is whole.
    pub(super) fn copies_of(&self, copy: &VariableCopy) -> impl Iterator<Item = &VariableCopy> {
        let rows = copy.rows.clone();
        self.copies.iter().filter(move |other| other.rows == rows)
    }

    /// Whether its copies should be equal and are not.
    pub fn is_unequal(&self) -> bool {
        self.must_be_equal() && !self.is_equal()
    }

    /// How many numbers it holds.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its copy on a device.
    pub(super) fn on(&self, device: usize) -> Option<&VariableCopy> {
        self.copies.iter().find(|copy| copy.device == device)
    }

    /// What training keeps beside its copy on a device. A piece has a piece of each slot, and of a slot that is divided a
    /// copy has that of the rows that are updated with it.
    pub(super) fn slots_on(&self, slots: &[Slot], device: usize) -> Vec<u64> {
        let Some(copy) = self.on(device) else {
            return vec![0; self.slots.len()];
        };
        let rows = self.shape.first().copied().unwrap_or(1) as u64;
        let updated = copy.updated.as_ref().map(|rows| rows.len() as u64);
        let share = |(&slot, kept): (&u64, &Slot)| {
            let (piece, whole) = match updated {
                Some(updated) if kept.is_divided => (updated, rows),
                _ => (copy.bytes, self.bytes),
            };
            if piece == whole || whole == 0 {
                return slot;
            }
            // In 128 bits: the product of two sizes may not fit in 64.
            let share = u128::from(slot) * u128::from(piece) / u128::from(whole);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        self.slots.iter().zip(slots).map(share).collect()
    }
}

/// What the layers of a network computed and had to keep for the way back, on each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activations {
    /// Estimated, or measured.
    pub state: SlotState,
    /// What was counted, for which batch: a sentence.
    pub note: String,
    /// A row per layer, in the order in which they are computed.
    pub layers: Vec<LayerActivations>,
}

/// The activations of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerActivations {
    /// The layer, called as its variables are: `bert.encoder.layer.0`.
    pub layer: String,
    /// Bytes on each device, in the order of
    /// [`PlacementReport::devices`](super::PlacementReport::devices).
    pub bytes: Vec<u64>,
}

/// What a device holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTotals {
    /// Weights.
    pub weights: u64,
    /// Each slot, in the order of [`PlacementReport::slots`](super::PlacementReport::slots).
    pub slots: Vec<u64>,
    /// Activations, where the report shows them.
    pub activations: u64,
}

impl DeviceTotals {
    /// All of it.
    pub fn sum(&self) -> u64 {
        self.weights + self.slots.iter().sum::<u64>() + self.activations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A variable of 12 bytes with a slot of the same size, in these pieces.
    fn in_pieces(kind: VariableKind, pieces: &[(usize, u64)]) -> VariableRow {
        let copy = |&(device, bytes)| VariableCopy {
            device,
            bytes,
            rows: (kind == VariableKind::Sharded).then_some(device..device + 1),
            axis: 0,
            updated: None,
            checksum: Checksum(bytes),
        };
        VariableRow {
            name: "weight".to_owned(),
            kind,
            why: String::new(),
            shape: vec![3],
            dtype: "f32".to_owned(),
            bytes: 12,
            trainable: true,
            origin: Origin::default(),
            outside: false,
            beside: false,
            copies: pieces.iter().map(copy).collect(),
            slots: vec![12],
            param: None,
        }
    }

    #[test]
    fn a_piece_has_a_piece_of_each_slot() {
        let row = in_pieces(VariableKind::Sharded, &[(0, 8), (2, 4)]);
        let slots = (0..3).map(|device| row.slots_on(&kept(false), device));
        let slots: Vec<Vec<u64>> = slots.collect();
        assert_eq!(slots, [[8], [0], [4]]);
        assert!(!row.is_unequal(), "pieces differ, and may");
        let row = in_pieces(VariableKind::Mirrored, &[(0, 12), (1, 12)]);
        assert_eq!(row.slots_on(&kept(false), 1), [12]);
        assert!(row.is_equal());
    }

    #[test]
    fn copies_of_a_piece_are_compared() {
        let mut row = in_pieces(VariableKind::Sharded, &[(0, 8), (1, 4), (2, 8), (3, 4)]);
        for (copy, rows) in row.copies.iter_mut().zip([0..2, 2..3, 0..2, 2..3]) {
            copy.rows = Some(rows);
        }
        assert!(row.must_be_equal() && row.is_equal());
        row.copies[3].checksum = Checksum(5);
        assert!(row.is_unequal());
        row.copies.truncate(2);
        assert!(!row.must_be_equal());
    }

    #[test]
    fn a_copy_has_the_slots_of_the_rows_that_are_updated_with_it() {
        let mut row = in_pieces(VariableKind::Mirrored, &[(0, 12), (1, 12)]);
        row.copies[0].updated = Some(0..2);
        row.copies[1].updated = Some(2..3);
        let on = |slots: &[Slot]| [row.slots_on(slots, 0), row.slots_on(slots, 1)];
        assert_eq!(on(&kept(true)), [[8], [4]]);
        assert_eq!(on(&kept(false)), [[12], [12]], "as gradients with ZeRO-1");
    }

    fn kept(is_divided: bool) -> [Slot; 1] {
        [Slot {
            name: "m".to_owned(),
            state: SlotState::Measured,
            is_divided,
        }]
    }
}
