//! The line of a variable and the line of a folded layer.

use std::collections::HashMap;

use stratoscope_render::text;

use super::{Cell, Line, Mark};
use crate::checksum::Checksum;
use crate::placement::PlacementReport;
use crate::placement::fold::Group;
use crate::placement::parts::{VariableCopy, VariableRow};
use stratoscope_render::units;

fn mark(row: &VariableRow) -> Mark {
    match (row.outside, row.is_unequal()) {
        (true, _) => Mark::Outside,
        (_, true) => Mark::Unequal,
        _ => Mark::Right,
    }
}

pub(super) fn kind(row: &VariableRow) -> &'static str {
    if row.outside {
        "outside"
    } else {
        row.kind.title()
    }
}

pub(super) fn line(
    report: &PlacementReport,
    row: &VariableRow,
    name: &str,
    origins: &[String],
) -> Line {
    let cell = |device: usize| match row.on(device) {
        None if has_to_be_on(report, row, device) => Cell::Missing,
        None => Cell::Elsewhere,
        Some(copy) => Cell::Copy {
            checksum: copy.checksum,
            parts: parts(report, row, device, copy),
            proved: row.copies.len() > 1 && row.must_be_equal() && !row.is_unequal(),
            odd: row.is_unequal() && usual(row, copy) != Some(copy.checksum),
            rows: copy.rows.clone(),
            axis: copy.axis,
            updated: copy.updated.clone(),
        },
    };
    let made = row.origin.to_string();
    Line {
        name: name.to_owned(),
        full_name: row.name.clone(),
        kind: kind(row),
        why: row.why.clone(),
        frozen: !row.trainable && !row.beside,
        shape: format!("{} {}", row.dtype, units::shape(&row.shape)),
        bytes: row.bytes,
        origin: origins.iter().position(|origin| *origin == made),
        mark: mark(row),
        cells: (0..report.devices.len()).map(cell).collect(),
    }
}

/// The line of a folded layer.
pub(super) fn sum(report: &PlacementReport, group: &Group<'_>, origins: &[String]) -> Line {
    let lines: Vec<Line> = group
        .rows
        .iter()
        .map(|row| line(report, row, "", origins))
        .collect();
    let first = &lines[0];
    let cell = |device: usize| {
        let (mut variables, mut odd, mut sums) = (0, 0, Vec::new());
        let (mut proved, mut piece, mut missing) = (true, false, 0);
        for line in &lines {
            match &line.cells[device] {
                Cell::Copy {
                    parts,
                    proved: p,
                    odd: o,
                    rows,
                    ..
                } => {
                    variables += 1;
                    odd += usize::from(*o);
                    proved &= *p;
                    piece |= rows.is_some();
                    add(&mut sums, parts);
                }
                Cell::Missing => missing += 1,
                Cell::Elsewhere | Cell::Copies { .. } => {}
            }
        }
        match (variables, missing) {
            (0, 0) => Cell::Elsewhere,
            (0, _) => Cell::Missing,
            _ => Cell::Copies {
                variables,
                parts: sums,
                proved,
                odd,
                piece,
            },
        }
    };
    let same = |of: &dyn Fn(&Line) -> &'static str| {
        let first = of(first);
        if lines.iter().all(|line| of(line) == first) {
            first
        } else {
            "several"
        }
    };
    let is_there = |mark: &Mark| lines.iter().any(|line| line.mark == *mark);
    let worst = [Mark::Outside, Mark::Unequal].into_iter().find(is_there);
    let origin = first
        .origin
        .filter(|_| lines.iter().all(|line| line.origin == first.origin));
    Line {
        name: group.name.clone(),
        full_name: group.name.clone(),
        kind: same(&|line| line.kind),
        why: first.why.clone(),
        frozen: lines.iter().all(|line| line.frozen),
        shape: text::count(lines.len(), "variable"),
        bytes: lines.iter().map(|line| line.bytes).sum(),
        origin,
        mark: worst.unwrap_or(Mark::Right),
        cells: (0..report.devices.len()).map(cell).collect(),
    }
}

/// Whether a variable has to have a copy on a device: a mirrored variable on every replica, and a variable outside
/// the strategy on every replica of the strategy that it should have been created under. Of a replica of several devices it
/// is the first one that has what is whole; in a pipeline the one with the variable's stage.
pub(super) fn has_to_be_on(report: &PlacementReport, row: &VariableRow, device: usize) -> bool {
    let Some(column) = report.devices.get(device) else {
        return false;
    };
    let stage_of = |copy: &VariableCopy| report.devices.get(copy.device)?.stage;
    let is_there = match column.stage {
        Some(stage) => row.copies.first().and_then(stage_of).unwrap_or(0) == stage,
        None => column.slice.unwrap_or(0) == 0,
    };
    column.replica.is_some() && is_there && (row.outside || row.must_be_equal())
}

/// The bytes of a copy's weights and optimizer slots. The state of metrics is neither.
fn parts(
    report: &PlacementReport,
    row: &VariableRow,
    device: usize,
    copy: &VariableCopy,
) -> Vec<u64> {
    if row.beside {
        return Vec::new();
    }
    std::iter::once(copy.bytes)
        .chain(row.slots_on(&report.slots, device))
        .collect()
}

fn add(sums: &mut Vec<u64>, parts: &[u64]) {
    sums.resize(sums.len().max(parts.len()), 0);
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += part;
    }
}

/// The checksum of more than half of the copies of a piece, or of all of the variable, if there is one.
fn usual(row: &VariableRow, of: &VariableCopy) -> Option<Checksum> {
    let mut votes: HashMap<Checksum, usize> = HashMap::new();
    for copy in row.copies_of(of) {
        *votes.entry(copy.checksum).or_default() += 1;
    }
    let all: usize = votes.values().sum();
    let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
    most.filter(|(_, votes)| votes * 2 > all)
        .map(|(checksum, _)| checksum)
}
