//! The placement report: how many bytes of each variable are on each device, where it was created, whether its
//! copies are equal, and what the devices send to each other. It is plain data with three renderings: HTML
//! for notebooks, text for terminals, JSON for programs.
//!
//! `build` makes it from replicas; `rows` decides which facts are shown, once for all three
//! renderings; `html`, `plain` and `json` decide how they look.

mod build;
mod diff;
mod fold;
mod html;
mod json;
mod parts;
mod plain;
mod rows;
mod timeline;

use serde::Serialize;
use stratoscope_diagnostics::Figure;
use stratoscope_render::text;

use burn::module::ParamId;

use self::rows::Sheet;
use crate::checksum::Checksum;
use crate::collective::CollectiveTotals;
use crate::variable::{VariableKind, VariableRecord};

pub use self::diff::PlacementDiff;
pub use self::parts::{
    Activations, DeviceColumn, DeviceTotals, LayerActivations, Slot, SlotState, StrategySummary,
    VariableCopy, VariableRow,
};
pub use self::timeline::{Arrow, Hop, Phase, Timeline};
pub use stratoscope_render::units::bytes;

/// The report. See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementReport {
    /// What was placed: `BertForSequenceClassification`.
    pub title: Option<String>,
    /// The strategy that the report is about, if there is one.
    pub strategy: Option<StrategySummary>,
    /// The columns: the devices of the strategy, then others that hold variables.
    pub devices: Vec<DeviceColumn>,
    /// The rows, in the order of the module's fields.
    pub variables: Vec<VariableRow>,
    /// What training stores in addition to the variables: gradients, moments.
    pub slots: Vec<Slot>,
    /// The activations of the last step, if they are known; shown if [`Self::shows_activations`].
    pub activations: Option<Activations>,
    /// Whether activations are shown.
    pub shows_activations: bool,
    /// The collectives of a step.
    pub collectives: Vec<Timeline>,
    /// The collectives so far.
    pub totals: CollectiveTotals,
}

impl PlacementReport {
    /// Names what was placed.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a slot that training will allocate for each trainable variable, of the variable's
    /// size.
    #[must_use]
    pub fn planned(mut self, name: impl Into<String>) -> Self {
        self.slots.push(Slot {
            name: name.into(),
            state: SlotState::Planned,
            is_divided: false,
        });
        for row in &mut self.variables {
            row.slots.push(if row.trainable { row.bytes } else { 0 });
        }
        self
    }

    /// Adds a slot that training will allocate, with so many float32 numbers beside a variable of such a shape.
    #[must_use]
    pub fn planned_beside(
        mut self,
        name: impl Into<String>,
        numbers: impl Fn(&[usize]) -> usize,
    ) -> Self {
        self = self.planned(name);
        for row in self.variables.iter_mut().filter(|row| row.trainable) {
            if let Some(bytes) = row.slots.last_mut() {
                *bytes = (numbers(&row.shape) * size_of::<f32>()) as u64;
            }
        }
        self
    }

    /// Adds a slot that training has allocated, with its size per copy of a variable; `None` for variables without
    /// it.
    #[must_use]
    pub fn measured(
        mut self,
        name: impl Into<String>,
        bytes_of: impl Fn(ParamId) -> Option<u64>,
    ) -> Self {
        self.slots.push(Slot {
            name: name.into(),
            state: SlotState::Measured,
            is_divided: false,
        });
        for row in &mut self.variables {
            row.slots.push(row.param.and_then(&bytes_of).unwrap_or(0));
        }
        self
    }

    /// The slot that was added last is kept by each replica for the rows that it updates, where replicas divide the update
    /// among them.
    #[must_use]
    pub fn divided(mut self) -> Self {
        if let Some(slot) = self.slots.last_mut() {
            slot.is_divided = true;
        }
        self
    }

    /// Adds activations; they are shown after [`activations`](Self::activations).
    #[must_use]
    pub fn with_activations(mut self, activations: Activations) -> Self {
        self.activations = Some(activations);
        self
    }

    /// Adds an estimate of the activations from one number per replica, which is divided equally among the numbered
    /// layers. `note` is a sentence that names the formula and the batch.
    #[must_use]
    pub fn estimated_activations(self, note: impl Into<String>, bytes: &[u64]) -> Self {
        let numbered = |name: &str| name.ends_with(|last: char| last.is_ascii_digit());
        let mut names: Vec<String> = fold::groups(&self)
            .into_iter()
            .map(|group| group.name)
            .collect();
        names.retain(|name| numbered(name));
        if names.is_empty() {
            return self;
        }
        let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
        let each: Vec<u64> = bytes.iter().map(|bytes| bytes / count).collect();
        let layers = names.into_iter().map(|layer| LayerActivations {
            layer,
            bytes: each.clone(),
        });
        let activations = Activations {
            state: SlotState::Estimated,
            note: note.into(),
            layers: layers.collect(),
        };
        self.with_activations(activations)
    }

    /// Shows the activations of the last step too. Before the first step there are none.
    #[must_use]
    pub fn activations(mut self) -> Self {
        self.shows_activations = true;
        self
    }

    /// Adds a variable that is not part of the module, such as a metric's totals, with the bytes of its copies
    /// in the order of the record's `homes`.
    #[must_use]
    pub fn with_variable(mut self, record: &VariableRecord, copies: &[Vec<u8>]) -> Self {
        let copies = record.homes.iter().zip(copies);
        let copies = copies.map(|(&device, bytes)| VariableCopy {
            device,
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            rows: None,
            axis: 0,
            updated: None,
            checksum: Checksum::of(bytes),
        });
        let mut row = VariableRow::of(record, false, copies.collect());
        row.slots = vec![0; self.slots.len()];
        row.beside = true;
        self.variables.push(row);
        self
    }

    /// The activations, if they are known and asked for.
    fn shown_activations(&self) -> Option<&Activations> {
        self.activations.as_ref().filter(|_| self.shows_activations)
    }

    /// The bytes that a device holds of the module and of what training stores for it. The state of metrics is not
    /// counted: it is small and in the host's memory.
    pub fn device_totals(&self, device: usize) -> DeviceTotals {
        let mut totals = DeviceTotals {
            slots: vec![0; self.slots.len()],
            ..DeviceTotals::default()
        };
        for row in self.variables.iter().filter(|row| !row.beside) {
            let Some(copy) = row.on(device) else { continue };
            totals.weights += copy.bytes;
            for (sum, bytes) in totals
                .slots
                .iter_mut()
                .zip(row.slots_on(&self.slots, device))
            {
                *sum += bytes;
            }
        }
        if let Some(activations) = self.shown_activations() {
            let layers = activations.layers.iter();
            totals.activations = layers.filter_map(|layer| layer.bytes.get(device)).sum();
        }
        totals
    }

    /// The bytes on all devices.
    pub fn bytes(&self) -> u64 {
        let devices = 0..self.devices.len();
        devices.map(|device| self.device_totals(device).sum()).sum()
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
        self.variables.iter().filter(|row| row.is_unequal()).count()
    }

    /// The report in one sentence.
    pub fn verdict(&self) -> String {
        let module = self.variables.iter().filter(|row| !row.beside);
        let all = module.clone().count();
        let count = text::count(all, "variable");
        let outside = self.variables_outside();
        if let Some(strategy) = self.strategy.as_ref().filter(|_| outside > 0) {
            let are = if outside == 1 {
                "variable is"
            } else {
                "variables are"
            };
            return format!(
                "{} {are} outside `{}`",
                text::thousands(outside),
                strategy.name
            );
        }
        let copied = module.clone().filter(|row| row.must_be_equal());
        let cut = module.filter(|row| row.kind == VariableKind::Sharded);
        let slices = self.devices.iter().filter_map(|it| it.slice).max();
        let stages = self.devices.iter().filter_map(|it| it.stage).max();
        let replicas = self.devices.iter().filter_map(|it| it.replica).max();
        match (self.unequal(), copied.count()) {
            (0, 0) if cut.clone().next().is_some() => {
                let on_servers = self.devices.iter().any(|it| it.server.is_some());
                let cut = text::thousands(cut.count());
                if let Some(last) = slices {
                    let devices = last + 1;
                    return format!("{count}, {cut} of them in slices on {devices} devices");
                }
                let over = if on_servers {
                    "servers"
                } else {
                    "the replicas"
                };
                format!("{count}, {cut} of them split by rows over {over}")
            }
            (0, 0) => format!("{count}, one copy each"),
            (0, _) if slices.is_some() && replicas.is_some() => {
                let each = |last: Option<usize>| last.map_or(0, |last| last + 1);
                let cut = text::thousands(cut.count());
                format!(
                    "{count}, equal on all {} replicas, {cut} of them in slices on {} devices of each",
                    each(replicas),
                    each(slices)
                )
            }
            (0, copied) if copied == all && stages.is_some() && replicas.is_some() => {
                let each = |last: Option<usize>| last.map_or(0, |last| last + 1);
                format!(
                    "{count}, equal on all {} replicas, each of them on one of {} stages",
                    each(replicas),
                    each(stages)
                )
            }
            (0, copied) if copied == all && self.devices.len() > 1 => {
                format!("{count}, equal on all {} replicas", self.devices.len())
            }
            (0, copied) => format!(
                "{count}, {} of them equal on all replicas",
                text::thousands(copied)
            ),
            (unequal, _) => {
                let differ = if unequal == 1 { "differs" } else { "differ" };
                format!(
                    "{} of {count} {differ} between replicas",
                    text::thousands(unequal)
                )
            }
        }
    }

    /// Compares this report with a later one of the same model: what moved, what it costs, which values changed.
    pub fn diff(&self, after: &Self) -> PlacementDiff {
        PlacementDiff::new(self, after)
    }

    /// The report as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        html::card(&Sheet::of(self))
    }

    /// The report as text of at most 80 columns.
    pub fn to_plain(&self) -> String {
        plain::text(&Sheet::of(self))
    }

    /// The report as JSON: the rows that are drawn, with numbers as numbers.
    pub fn to_json(&self) -> serde_json::Value {
        json::value(self, &Sheet::of(self))
    }

    /// The grid alone, for the card of a diagnostic.
    pub fn figure(&self) -> Figure {
        let sheet = Sheet::of(self);
        Figure {
            html: html::figure(&sheet),
            plain: plain::figure(&sheet),
        }
    }
}
