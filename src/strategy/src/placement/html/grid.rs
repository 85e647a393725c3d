//! The grid of variables by devices.

use std::fmt::Write;

use stratoscope_diagnostics::words;

use super::{CODE, GREEN, GREEN_TINT, GREY, GREY_TINT, MOST_COLUMNS, MUTED, RED, RED_TINT};
use super::{attribute, colour, escape, slot};
use crate::placement::fold::{Group, groups};
use crate::placement::units::{bytes, shape};
use crate::placement::{PlacementReport, Slot, VariableRow};

/// Fewer variables than this are not folded.
const FOLDED_FROM: usize = 13;

/// Widths in percent; they add up to 100.
struct Widths {
    name: usize,
    kind: usize,
    shape: usize,
    size: usize,
    devices: Vec<usize>,
    origin: usize,
}

impl Widths {
    fn of(report: &PlacementReport) -> Self {
        let devices = match report.devices.len() {
            count @ 0..=1 => vec![19; count],
            2 => vec![14, 14],
            3 => vec![11, 11, 11],
            4 => vec![10, 10, 10, 10],
            _ => vec![38],
        };
        // Room for `Mirrored`, `16 variables`, `45.5 MiB`, four squares with `✓ 16` and `cell 12, line 3` in
        // JupyterLab's 800 pixels.
        let (kind, shape, size, origin) = (10, 12, 10, 13);
        let used = kind + shape + size + origin + devices.iter().sum::<usize>();
        Self {
            name: 100_usize.saturating_sub(used),
            kind,
            shape,
            size,
            devices,
            origin,
        }
    }

    /// A variable's name; of one that is too long the end, which tells it from its neighbours.
    fn named(&self, name: &str, indent: usize) -> String {
        // A letter takes 7 of the card's 1000 pixels.
        let most = self.name * 10 / 7 - 3;
        let length = name.chars().count();
        let mut shown: String = name.chars().skip(length.saturating_sub(most)).collect();
        if length > most {
            shown.insert(0, '…');
        }
        format!(
            "<span style=\"{CODE};padding-left:{indent}px\">{}</span>",
            escape(&shown)
        )
    }
}

fn cell(out: &mut String, width: usize, style: &str, title: &str, html: &str) {
    let title = match title {
        "" => String::new(),
        title => format!(" title=\"{}\"", attribute(title)),
    };
    let _ = write!(
        out,
        "<span{title} style=\"display:inline-block;box-sizing:border-box;width:{width}%;padding:0 6px;\
         overflow:hidden;text-overflow:ellipsis;white-space:nowrap;vertical-align:middle;{style}\">{html}</span>"
    );
}

const RIGHT: &str = "text-align:right";

pub(super) fn grid(out: &mut String, report: &PlacementReport) {
    let widths = Widths::of(report);
    let bold = "font-weight:bold";
    *out += "<div style=\"overflow-x:auto\"><div style=\"min-width:680px\">";
    let _ = write!(
        out,
        "<div style=\"padding-left:18px;border-bottom:2px solid {GREY}\">"
    );
    cell(out, widths.name, bold, "", "variable");
    cell(out, widths.kind, bold, "", "kind");
    cell(out, widths.shape, bold, "", "shape");
    cell(
        out,
        widths.size,
        &format!("{RIGHT};{bold}"),
        "the size of one copy",
        "size",
    );
    if report.devices.len() > MOST_COLUMNS {
        let title = format!("{} devices", report.devices.len());
        cell(out, widths.devices[0], bold, "", &title);
    } else {
        for (device, width) in report.devices.iter().zip(&widths.devices) {
            let name = format!("<span style=\"{CODE}\">{}</span>", escape(&device.name));
            cell(out, *width, bold, &device.description, &name);
        }
    }
    cell(out, widths.origin, bold, "", "made at");
    *out += "</div>";
    let groups = groups(report);
    let folded = report.variables.len() >= FOLDED_FROM;
    for group in &groups {
        if folded && group.rows.len() > 1 {
            folded_group(out, report, &widths, group);
        } else {
            for row in &group.rows {
                variable(out, report, &widths, row, &row.name, "padding-left:18px");
            }
        }
    }
    *out += "</div></div>";
}

fn row_tint(outside: bool, unequal: bool) -> String {
    match outside || unequal {
        true => format!("background-color:{RED_TINT};"),
        false => String::new(),
    }
}

/// A layer: one line that opens.
fn folded_group(out: &mut String, report: &PlacementReport, widths: &Widths, group: &Group<'_>) {
    let (outside, unequal) = (group.outside(), group.unequal());
    let open = if unequal > 0 { " open" } else { "" };
    let tint = row_tint(outside > 0, unequal > 0);
    let _ = write!(
        out,
        "<details{open} style=\"margin:0;padding:0 0 0 18px;{tint}border-bottom:1px solid {GREY_TINT}\">\
         <summary style=\"cursor:pointer;list-style-position:outside;padding:2px 0;margin:0\">"
    );
    let first = group.rows[0];
    cell(
        out,
        widths.name,
        "",
        &group.name,
        &widths.named(&group.name, 0),
    );
    let kind = match outside {
        0 => common(group, |row| row.kind.title().to_owned()),
        _ => format!("<span style=\"color:{RED};font-weight:bold\">outside</span>"),
    };
    cell(out, widths.kind, "", &first.why, &kind);
    let count = words::count(group.rows.len(), "variable");
    cell(out, widths.shape, MUTED, "", &count);
    cell(out, widths.size, RIGHT, "", &bytes(group.bytes()));
    let squares = squares(&group.slots(), &report.slots);
    device_cells(out, report, widths, |device| {
        match group.copies_on(device) {
            0 => Copies::None,
            copies => {
                let text = match (outside, unequal) {
                    (1.., _) => copies.to_string(),
                    (_, 0) => format!("✓ {copies}"),
                    (_, unequal) => format!("✗ {unequal}"),
                };
                let title = match unequal {
                    0 => format!("{} on this device", words::count(copies, "variable")),
                    unequal => format!("{unequal} of {copies} copies differ between replicas"),
                };
                Copies::Some {
                    squares: squares.clone(),
                    text,
                    title,
                    equal: unequal == 0,
                    marked: outside == 0,
                }
            }
        }
    });
    let origin = common(group, |row| row.origin.to_string());
    cell(out, widths.origin, MUTED, &origin, &escape(&origin));
    *out += "</summary>";
    for row in &group.rows {
        variable(out, report, widths, row, group.rest(row), "");
    }
    *out += "</details>";
}

/// What all rows have in common, or that they have not.
fn common(group: &Group<'_>, of: impl Fn(&VariableRow) -> String) -> String {
    let first = of(group.rows[0]);
    if group.rows.iter().all(|row| of(row) == first) {
        first
    } else {
        "several".to_owned()
    }
}

fn variable(
    out: &mut String,
    report: &PlacementReport,
    widths: &Widths,
    row: &VariableRow,
    name: &str,
    style: &str,
) {
    let unequal = row.must_be_equal() && !row.is_equal();
    let tint = row_tint(row.outside, unequal);
    let _ = write!(
        out,
        "<div style=\"{tint}padding-top:1px;padding-bottom:1px;border-bottom:1px solid {GREY_TINT};{style}\">"
    );
    cell(
        out,
        widths.name,
        "",
        &row.name,
        &widths.named(name, if row.name == name { 0 } else { 14 }),
    );
    let kind = if row.outside {
        format!("<span style=\"color:{RED};font-weight:bold\">outside</span>")
    } else {
        row.kind.title().to_owned()
    };
    cell(out, widths.kind, "", &row.why, &kind);
    let frozen = if row.trainable { "" } else { " not trained" };
    cell(
        out,
        widths.shape,
        "",
        &format!("{}{frozen}", row.dtype),
        &shape(&row.shape),
    );
    cell(out, widths.size, RIGHT, "", &bytes(row.bytes));
    let squares = squares(&row.slots, &report.slots);
    device_cells(out, report, widths, |device| match row.on(device) {
        None => Copies::None,
        Some(copy) => Copies::Some {
            squares: squares.clone(),
            text: copy.checksum.short(),
            title: format!("checksum {}", copy.checksum),
            equal: !unequal,
            marked: !row.outside && row.copies.len() > 1,
        },
    });
    let origin = row.origin.to_string();
    cell(out, widths.origin, MUTED, &origin, &escape(&origin));
    *out += "</div>";
}

/// What stands where a row and a device meet.
enum Copies {
    None,
    Some {
        squares: String,
        text: String,
        title: String,
        equal: bool,
        marked: bool,
    },
}

fn device_cells(
    out: &mut String,
    report: &PlacementReport,
    widths: &Widths,
    copies: impl Fn(usize) -> Copies,
) {
    if report.devices.len() > MOST_COLUMNS {
        let mut html = String::new();
        for (index, device) in report.devices.iter().enumerate() {
            let (colour, title) = match copies(index) {
                Copies::None => (RED_TINT, "no copy".to_owned()),
                Copies::Some {
                    equal: true, title, ..
                } => (GREEN, title),
                Copies::Some { title, .. } => (RED, title),
            };
            let title = format!("{}: {title}", device.name);
            let _ = write!(
                html,
                "<span title=\"{}\" style=\"display:inline-block;width:9px;height:9px;margin:0 2px 0 0;\
                 border-radius:2px;background-color:{colour}\"></span>",
                attribute(&title)
            );
        }
        return cell(out, widths.devices[0], "white-space:normal", "", &html);
    }
    for (index, width) in widths.devices.iter().enumerate() {
        match copies(index) {
            Copies::None => {
                let html = format!(
                    "<span style=\"display:inline-block;box-sizing:border-box;width:100%;\
                     border:1px dashed {RED};border-radius:3px;padding:0 5px;color:{RED};\
                     font-size:0.85em\">no copy</span>"
                );
                cell(out, *width, "", "this device has no copy", &html);
            }
            Copies::Some {
                squares,
                text,
                title,
                equal,
                marked,
            } => {
                let tint = match (marked, equal) {
                    (_, false) => RED_TINT,
                    (true, true) => GREEN_TINT,
                    (false, true) => GREY_TINT,
                };
                let html = format!(
                    "{squares}<span style=\"{CODE};background-color:{tint};border-radius:3px;\
                     padding:0 5px;margin-left:5px\">{}</span>",
                    escape(&text)
                );
                cell(out, *width, "", &title, &html);
            }
        }
    }
}

/// A square for the weights and one per slot: filled if allocated, an outline if planned, a gap if
/// this variable has none.
fn squares(sizes: &[u64], slots: &[Slot]) -> String {
    let mut html = String::new();
    for (index, &size) in std::iter::once(&1).chain(sizes).enumerate() {
        let colour = colour(index);
        let style = match (size, slot(index, slots).1) {
            (0, _) => "border:1px solid transparent".to_owned(),
            (_, true) => format!("border:1px solid {colour}"),
            (_, false) => format!("border:1px solid {colour};background-color:{colour}"),
        };
        let _ = write!(
            html,
            "<span style=\"display:inline-block;box-sizing:border-box;width:8px;height:8px;\
             margin-right:2px;{style}\"></span>"
        );
    }
    html
}
