//! The report as text of at most 100 columns, for terminals and logs.

use std::fmt::Write;

use stratoscope_diagnostics::words;

use super::fold::{Group, groups};
use super::units::{bytes, count, shape, share};
use super::{PlacementReport, SlotState, VariableRow};

/// Up to this many variables stand in full; more are folded by layer.
const MOST_ROWS: usize = 40;
/// Up to this many devices have a column of their own.
const MOST_COLUMNS: usize = 4;

/// Characters of the widest line, where names can be shortened to keep it.
const PAGE: usize = 100;

/// Everything.
pub(super) fn text(report: &PlacementReport) -> String {
    let mut out = String::new();
    let title = report.title.as_deref().unwrap_or("Placement");
    let _ = writeln!(out, "{title}: {}", report.verdict());
    let elements: usize = report.variables.iter().map(VariableRow::elements).sum();
    let strategy = match &report.strategy {
        Some(strategy) => strategy.description.as_str(),
        None => "no strategy: made outside any scope",
    };
    let _ = writeln!(out, "{strategy}, {} parameters\n", count(elements));
    devices(&mut out, report);
    out.push('\n');
    variables(&mut out, report);
    collectives(&mut out, report);
    trimmed(&out)
}

/// The grid alone.
pub(super) fn figure(report: &PlacementReport) -> String {
    let mut out = String::new();
    variables(&mut out, report);
    trimmed(&out)
}

/// No spaces at the ends of lines, no line at the end.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

fn devices(out: &mut String, report: &PlacementReport) {
    let mut rows = vec![vec![
        "device".to_owned(),
        "kind".to_owned(),
        "weights".to_owned(),
    ]];
    rows[0].extend(report.slots.iter().map(|slot| match slot.state {
        SlotState::Planned => format!("{}*", slot.name),
        SlotState::Measured => slot.name.clone(),
    }));
    rows[0].extend(["sum".to_owned(), "capacity".to_owned()]);
    for (index, device) in report.devices.iter().enumerate() {
        let totals = report.device_totals(index);
        let mut row = vec![
            device.name.clone(),
            device.kind.word().to_owned(),
            bytes(totals.weights),
        ];
        row.extend(totals.slots.iter().map(|&size| bytes(size)));
        row.push(bytes(totals.sum()));
        row.push(match device.capacity_bytes {
            Some(capacity) => format!("{} ({})", bytes(capacity), share(totals.sum(), capacity)),
            None => "unknown".to_owned(),
        });
        rows.push(row);
    }
    table(out, &rows, &[0, 1]);
    if report
        .slots
        .iter()
        .any(|slot| slot.state == SlotState::Planned)
    {
        out.push_str("* planned: allocated at the first step\n");
    }
}

fn variables(out: &mut String, report: &PlacementReport) {
    let mut head = vec!["variable".to_owned(), "kind".to_owned(), "shape".to_owned()];
    head.push("one copy".to_owned());
    if report.devices.len() > MOST_COLUMNS {
        head.push(format!("{} devices", report.devices.len()));
    } else {
        head.extend(report.devices.iter().map(|device| device.name.clone()));
    }
    head.push("made at".to_owned());
    let mut rows = vec![head];
    for group in groups(report) {
        if report.variables.len() > MOST_ROWS && group.rows.len() > 1 {
            rows.push(folded(report, &group));
        } else {
            rows.extend(group.rows.iter().map(|row| variable(report, row)));
        }
    }
    shorten_names(&mut rows);
    table(out, &rows, &[0, 1, 2, 4, 5, 6, 7, 8]);
}

/// Of names that would make the table wider than the page, the end stays: it tells them apart.
fn shorten_names(rows: &mut [Vec<String>]) {
    let others: usize = widths(rows).iter().skip(1).map(|width| width + 2).sum();
    let most = PAGE.saturating_sub(others).max(20);
    for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
        let length = name.chars().count();
        if length > most {
            let end: String = name.chars().skip(length - (most - 3)).collect();
            let sign = name.chars().next().filter(|sign| matches!(sign, '✗' | '≠'));
            *name = match sign {
                Some(sign) => format!("{sign} …{end}"),
                None => format!("…{end}"),
            };
        }
    }
}

fn variable(report: &PlacementReport, row: &VariableRow) -> Vec<String> {
    let sign = match (row.outside, row.must_be_equal() && !row.is_equal()) {
        (true, _) => "✗ ",
        (_, true) => "≠ ",
        _ => "",
    };
    let kind = if row.outside {
        "outside"
    } else {
        row.kind.title()
    };
    let mut cells = vec![
        format!("{sign}{}", row.name),
        kind.to_owned(),
        shape(&row.shape),
    ];
    cells.push(bytes(row.bytes));
    if report.devices.len() > MOST_COLUMNS {
        let equal = if row.is_equal() {
            ", equal"
        } else {
            ", not equal"
        };
        let equal = if row.copies.len() > 1 { equal } else { "" };
        cells.push(format!(
            "{} of {}{equal}",
            row.copies.len(),
            report.devices.len()
        ));
    } else {
        cells.extend(
            (0..report.devices.len()).map(|device| match row.on(device) {
                Some(copy) => copy.checksum.short(),
                None => "no copy".to_owned(),
            }),
        );
    }
    cells.push(row.origin.to_string());
    cells
}

fn folded(report: &PlacementReport, group: &Group<'_>) -> Vec<String> {
    let (outside, unequal) = (group.outside(), group.unequal());
    let sign = match (outside, unequal) {
        (1.., _) => "✗ ",
        (_, 1..) => "≠ ",
        _ => "",
    };
    let kind = if outside > 0 {
        "outside"
    } else {
        group.rows[0].kind.title()
    };
    let mut cells = vec![format!("{sign}{}", group.name), kind.to_owned()];
    cells.push(words::count(group.rows.len(), "variable"));
    cells.push(bytes(group.bytes()));
    if report.devices.len() > MOST_COLUMNS {
        cells.push(match unequal {
            0 => "equal".to_owned(),
            unequal => format!("{unequal} not equal"),
        });
    } else {
        cells.extend(
            (0..report.devices.len()).map(|device| match group.copies_on(device) {
                0 => "no copy".to_owned(),
                copies if unequal > 0 => format!("{copies}, {unequal} ≠"),
                copies => format!("{copies} ✓"),
            }),
        );
    }
    let first = group.rows[0].origin.to_string();
    let same = group.rows.iter().all(|row| row.origin.to_string() == first);
    cells.push(if same { first } else { "several".to_owned() });
    cells
}

fn collectives(out: &mut String, report: &PlacementReport) {
    for row in &report.collectives {
        let state = match row.state {
            SlotState::Planned => "planned",
            SlotState::Measured => "measured",
        };
        let _ = writeln!(
            out,
            "\nevery optimizer step ({state}): {} {} of {}",
            row.per_step,
            row.operation.title(),
            words::count(row.tensors, "gradient"),
        );
        let (bytes, moved) = (bytes(row.bytes), bytes(row.moved_bytes));
        let _ = writeln!(out, "{bytes} from each replica, {moved} between devices");
    }
    if report.totals.all_reduces > 0 {
        let count = usize::try_from(report.totals.all_reduces).unwrap_or(usize::MAX);
        let moved = bytes(report.totals.moved_bytes);
        let _ = writeln!(
            out,
            "so far: {}, {moved} between devices",
            words::count(count, "all-reduce")
        );
    }
}

/// Columns two spaces apart; numbers to the right, the columns in `left` to the left.
fn table(out: &mut String, rows: &[Vec<String>], left: &[usize]) {
    let widths = widths(rows);
    for row in rows {
        for (column, text) in row.iter().enumerate() {
            let width = widths[column];
            let _ = if left.contains(&column) {
                write!(out, "{text:<width$}  ")
            } else {
                write!(out, "{text:>width$}  ")
            };
        }
        out.push('\n');
    }
}

/// The width of each column: that of its longest text.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|text| text.chars().count())
            .max()
    };
    (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect()
}
