//! Facts of the report that are not rows of variables: devices, kinds, origins, collectives so far.

use stratoscope_render::text;

use super::lines::{has_to_be_on, kind};
use super::{DeviceLine, KindLine};
use crate::device::DeviceKind;
use crate::placement::PlacementReport;
use crate::placement::parts::DeviceColumn;
use crate::variable::VariableKind;
use stratoscope_render::units::bytes;

pub(super) fn origins(report: &PlacementReport) -> Vec<String> {
    let mut origins: Vec<String> = Vec::new();
    for row in &report.variables {
        let origin = row.origin.to_string();
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    origins
}

pub(super) fn devices(report: &PlacementReport) -> Vec<DeviceLine<'_>> {
    let mut lines = Vec::new();
    for (index, column) in report.devices.iter().enumerate() {
        let totals = report.device_totals(index);
        let mut parts = vec![totals.weights];
        parts.extend(&totals.slots);
        parts.extend(report.shown_activations().map(|_| totals.activations));
        lines.push(DeviceLine {
            column,
            role: match (column.replica, column.server, column.stage.or(column.slice)) {
                (Some(replica), _, Some(place)) => match column.slice {
                    Some(_) => format!("replica {replica}, slice {place}"),
                    None => format!("replica {replica}, stage {place}"),
                },
                (Some(replica), ..) => format!("replica {replica}"),
                (None, Some(server), _) => format!("server {server}"),
                (None, None, Some(slice)) if column.slice.is_some() => format!("slice {slice}"),
                (None, None, Some(stage)) => format!("stage {stage}"),
                (None, None, None) if report.strategy.is_some() => "not in the strategy".to_owned(),
                (None, None, None) => String::new(),
            },
            lacks: (report.variables.iter())
                .any(|row| row.on(index).is_none() && has_to_be_on(report, row, index)),
            what: match column.shared_by {
                0 | 1 => column.description.clone(),
                shares => format!("one of {shares} shares of {}", column.description),
            },
            sum: totals.sum(),
            parts,
        });
    }
    lines
}

/// A sentence for each kind of device: physical, logical, simulated.
pub(super) fn reality(devices: &[DeviceColumn]) -> Vec<String> {
    let of = |kind: DeviceKind| devices.iter().filter(|device| device.kind == kind).count();
    let mut sentences = Vec::new();
    if let count @ 1.. = of(DeviceKind::Physical) {
        let each = if count == 1 {
            "a device of its own"
        } else {
            "each a device of its own"
        };
        sentences.push(format!("{}: {each}", text::count(count, "physical device")));
    }
    if let count @ 1.. = of(DeviceKind::Logical) {
        let shares = if count == 1 { "a share" } else { "shares" };
        sentences.push(format!(
            "{}: {shares} of a physical one; copies and transfers are real, memory and time are shared",
            text::count(count, "logical device")
        ));
    }
    if let count @ 1.. = of(DeviceKind::Simulated) {
        sentences.push(format!(
            "{}: the values are computed for real, the hardware is simulated; its times are not measured",
            text::count(count, "simulated device")
        ));
    }
    sentences
}

pub(super) fn kinds(report: &PlacementReport) -> Vec<KindLine> {
    let mut kinds: Vec<KindLine> = Vec::new();
    let is_sliced = report.devices.iter().any(|it| it.slice.is_some());
    let has_replicas = report.devices.iter().any(|it| it.replica.is_some());
    let is_mesh = is_sliced && has_replicas;
    let is_staged = has_replicas && report.devices.iter().any(|it| it.stage.is_some());
    for row in &report.variables {
        let title = kind(row);
        let known = kinds.iter().position(|kind| kind.title == title);
        let known = known.unwrap_or_else(|| {
            kinds.push(KindLine {
                title,
                variables: 0,
                meaning: match row.kind {
                    _ if row.outside => OUTSIDE,
                    VariableKind::Sharded if is_mesh => SLICES_OF_REPLICAS,
                    VariableKind::Sharded if is_sliced => SLICES,
                    VariableKind::Mirrored if is_mesh => WHOLE_IN_MESH,
                    VariableKind::Mirrored if is_staged => ON_STAGES,
                    kind => meaning(kind),
                },
                why: Vec::new(),
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[known];
        kind.variables += 1;
        if !kind.why.contains(&row.why) {
            kind.why.push(row.why.clone());
        }
    }
    kinds
}

const OUTSIDE: &str = "not made under the strategy, so its other replicas have no copy";

const SLICES: &str = "a slice of rows or columns on each device, with its moments; a layer is computed by all of them, each with its slice";

const SLICES_OF_REPLICAS: &str = "a slice of rows or columns on each device of a replica, with its moments; they compute a layer together, and the same slice of all replicas stays equal";

const WHOLE_IN_MESH: &str = "a copy on the first device of every replica; every update is applied to all of them, so they stay equal";

const ON_STAGES: &str = "a copy on one stage of every replica; every update is applied to all of them, so they stay equal";

/// What a kind means, in one sentence.
fn meaning(kind: VariableKind) -> &'static str {
    match kind {
        VariableKind::Mirrored => {
            "a copy on every replica; every update is applied to all of them, so they stay equal"
        }
        VariableKind::Local => "one copy, on one device",
        VariableKind::OnRead => {
            "each replica writes its own copy; the copies are combined when the variable is read"
        }
        VariableKind::Central => {
            "one copy for all replicas, which fetch it and send their gradients to its device"
        }
        VariableKind::Sharded => {
            "split by rows, a shard on each of several servers or replicas; who computes fetches all shards, and who stores a shard gets the gradients of its rows"
        }
    }
}

pub(super) fn so_far(report: &PlacementReport) -> Option<String> {
    let totals = &report.totals;
    let counts = [
        (totals.all_reduces, "all-reduce"),
        (totals.reduce_scatters, "reduce-scatter"),
        (totals.all_gathers, "all-gather"),
        (totals.parameter_averages, "parameter average"),
        (totals.pushes, "push"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match what {
            // The only word here whose plural does not end in a plain `s`.
            "push" if count > 1 => format!("{} pushes", text::thousands(number(count))),
            what => text::count(number(count), what),
        })
        .collect();
    (!counts.is_empty()).then(|| {
        format!(
            "{}, {} between devices",
            counts.join(", "),
            bytes(totals.moved_bytes)
        )
    })
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
