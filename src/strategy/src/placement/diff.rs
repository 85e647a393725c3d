//! The comparison of two reports of one model: what moved, what it costs now, which values changed.

use std::ops::Range;

use serde_json::{Value, json};
use stratoscope_render::text;

use super::fold::layer;
use super::parts::VariableRow;
use super::rows::Sheet;
use super::{PlacementReport, html, plain};
use crate::checksum::Checksum;
use stratoscope_render::units::bytes;

/// Before and after a change: of the strategy, or of the values by a step. Made by
/// [`PlacementReport::diff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementDiff {
    before: PlacementReport,
    after: PlacementReport,
}

/// A variable, or a layer of them, on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub kind: &'static str,
    /// `cpu:0, cpu:1`, `8 devices`, `nowhere`.
    pub devices: String,
    /// All copies, with what training stores for them.
    pub bytes: u64,
}

/// Whether the values changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    Same,
    Changed,
    /// Some of a layer's variables changed.
    Some,
    /// It is on one side only, or sharded differently: nothing to compare.
    Incomparable,
}

impl Values {
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Some => "some changed",
            Self::Incomparable => "–",
        }
    }
}

/// A row of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub name: String,
    pub variables: usize,
    pub before: Option<Side>,
    pub after: Option<Side>,
    pub values: Values,
}

impl Pair {
    /// Whether it is elsewhere, or of another kind, than before.
    pub fn has_moved(&self) -> bool {
        let place = |side: &Option<Side>| side.as_ref().map(|s| (s.kind, s.devices.clone()));
        place(&self.before) != place(&self.after)
    }
}

/// With fewer variables than this, each has a line of its own.
const FOLDED_FROM: usize = 13;

impl PlacementDiff {
    pub(super) fn new(before: &PlacementReport, after: &PlacementReport) -> Self {
        Self {
            before: before.clone(),
            after: after.clone(),
        }
    }

    /// The report before.
    pub fn before(&self) -> &PlacementReport {
        &self.before
    }

    /// The report after.
    pub fn after(&self) -> &PlacementReport {
        &self.after
    }

    /// How many variables are elsewhere, or of another kind.
    pub fn moved(&self) -> usize {
        self.pairs().iter().filter(|pair| pair.has_moved()).count()
    }

    /// How many variables have other values.
    pub fn changed(&self) -> usize {
        let pairs = self.pairs();
        let changed = pairs.iter().filter(|pair| pair.values == Values::Changed);
        changed.count()
    }

    /// The comparison in one sentence.
    pub fn verdict(&self) -> String {
        let pairs = self.pairs();
        let all = text::count(pairs.len(), "variable");
        let place = match pairs
            .iter()
            .filter(|pair| pair.has_moved())
            .collect::<Vec<_>>()
        {
            moved if moved.is_empty() => format!("{all}, none moved"),
            moved => {
                let (first, rest) = (moved[0], &moved[1..]);
                let alike = rest.iter().all(|pair| kinds(pair) == kinds(first));
                let how = match alike {
                    true => format!(" from {} to {}", kinds(first).0, kinds(first).1),
                    false => String::new(),
                };
                format!("{} of {all} moved{how}", text::thousands(moved.len()))
            }
        };
        let changed = match self.changed() {
            0 => "values as before".to_owned(),
            changed => format!("{} with other values", text::thousands(changed)),
        };
        let (before, after) = (self.before.bytes(), self.after.bytes());
        let cost = match before == after {
            true => format!("{} on all devices", bytes(after)),
            false => format!("{} → {} on all devices", bytes(before), bytes(after)),
        };
        format!("{place}, {changed}; {cost}")
    }

    /// Before and after, with the strategy's name where there is one.
    pub(super) fn titles(&self) -> (String, String) {
        let name = |report: &PlacementReport| match &report.strategy {
            Some(strategy) => strategy.description.clone(),
            None => "no strategy".to_owned(),
        };
        (name(&self.before), name(&self.after))
    }

    /// A row for every variable, in the order of the second report; variables that it lacks come last.
    fn pairs(&self) -> Vec<Pair> {
        // The state of metrics is not part of the model.
        let module = |report: &'_ PlacementReport| -> Vec<VariableRow> {
            let rows = report.variables.iter().filter(|row| !row.beside);
            rows.cloned().collect()
        };
        let (before, after) = (module(&self.before), module(&self.after));
        let mut pairs = Vec::new();
        for row in &after {
            let old = before.iter().find(|old| old.name == row.name);
            pairs.push(self.pair(old, Some(row)));
        }
        for old in &before {
            if !after.iter().any(|row| row.name == old.name) {
                pairs.push(self.pair(Some(old), None));
            }
        }
        pairs
    }

    fn pair(&self, old: Option<&VariableRow>, new: Option<&VariableRow>) -> Pair {
        let values = match (old, new) {
            (Some(old), Some(new)) if old.copies.is_empty() || new.copies.is_empty() => {
                Values::Incomparable
            }
            (Some(old), Some(new)) if shards(old) != shards(new) => Values::Incomparable,
            (Some(old), Some(new)) if sums(old) == sums(new) => Values::Same,
            (Some(_), Some(_)) => Values::Changed,
            _ => Values::Incomparable,
        };
        Pair {
            name: old.or(new).map_or_else(String::new, |row| row.name.clone()),
            variables: 1,
            before: old.map(|row| side(&self.before, row)),
            after: new.map(|row| side(&self.after, row)),
            values,
        }
    }

    /// The rows that are drawn: a layer is one line if all of its variables changed alike.
    pub(super) fn rows(&self) -> Vec<Pair> {
        let pairs = self.pairs();
        if pairs.len() < FOLDED_FROM {
            return pairs;
        }
        let mut rows: Vec<Pair> = Vec::new();
        let mut last_layer = String::new();
        for pair in pairs {
            let name = layer(&pair.name).to_owned();
            match rows.last_mut() {
                Some(last) if last_layer == name && alike(last, &pair) => {
                    last.name = name;
                    last.variables += 1;
                    add(&mut last.before, &pair.before);
                    add(&mut last.after, &pair.after);
                    if last.values != pair.values {
                        last.values = Values::Some;
                    }
                }
                _ => {
                    last_layer = name;
                    rows.push(pair);
                }
            }
        }
        rows
    }

    /// The comparison as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        html::diff(self, &Sheet::of(&self.before), &Sheet::of(&self.after))
    }

    /// The comparison as text of at most 80 columns.
    pub fn to_plain(&self) -> String {
        plain::diff(self, &Sheet::of(&self.before), &Sheet::of(&self.after))
    }

    /// The comparison as JSON.
    pub fn to_json(&self) -> Value {
        let side = |side: &Option<Side>| {
            side.as_ref()
                .map(|s| json!({ "kind": s.kind, "devices": s.devices, "bytes": s.bytes }))
        };
        let rows: Vec<Value> = self
            .rows()
            .iter()
            .map(|row| {
                json!({
                    "name": row.name,
                    "variables": row.variables,
                    "before": side(&row.before),
                    "after": side(&row.after),
                    "values": row.values.word(),
                })
            })
            .collect();
        let (before, after) = self.titles();
        json!({
            "version": 1,
            "verdict": self.verdict(),
            "before": { "strategy": before, "bytes": self.before.bytes() },
            "after": { "strategy": after, "bytes": self.after.bytes() },
            "moved": self.moved(),
            "changed": self.changed(),
            "rows": rows,
        })
    }
}

fn kinds(pair: &Pair) -> (&'static str, &'static str) {
    let kind = |side: &Option<Side>| side.as_ref().map_or("nothing", |side| side.kind);
    (kind(&pair.before), kind(&pair.after))
}

/// The rows of a variable's shards; empty unless it is sharded.
fn shards(row: &VariableRow) -> Vec<&Range<usize>> {
    let copies = row.copies.iter();
    copies.filter_map(|copy| copy.rows.as_ref()).collect()
}

/// The checksums of its shards, or of its first copy.
fn sums(row: &VariableRow) -> Vec<Checksum> {
    let shards = shards(row).len().max(1);
    let copies = row.copies.iter().take(shards);
    copies.map(|copy| copy.checksum).collect()
}

fn side(report: &PlacementReport, row: &VariableRow) -> Side {
    let name = |device: usize| report.devices.get(device).map_or("?", |d| d.name.as_str());
    let names: Vec<&str> = row.copies.iter().map(|copy| name(copy.device)).collect();
    let bytes = row
        .copies
        .iter()
        .map(|copy| copy.bytes + row.slots_on(&report.slots, copy.device).iter().sum::<u64>());
    Side {
        kind: if row.outside {
            "outside"
        } else {
            row.kind.title()
        },
        devices: match names.len() {
            0 => "nowhere".to_owned(),
            1..=2 => names.join(", "),
            many => format!("{many} devices"),
        },
        bytes: bytes.sum(),
    }
}

fn alike(one: &Pair, other: &Pair) -> bool {
    let place = |side: &Option<Side>| side.as_ref().map(|s| (s.kind, s.devices.clone()));
    place(&one.before) == place(&other.before) && place(&one.after) == place(&other.after)
}

fn add(sum: &mut Option<Side>, more: &Option<Side>) {
    if let (Some(sum), Some(more)) = (sum, more) {
        sum.bytes += more.bytes;
    }
}
