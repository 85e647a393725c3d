//! The devices at the top of the card: a block each.

use std::fmt::Write;

use stratoscope_render::text;

use super::{CODE, GRAY, GRAY_TINT, MOST_COLUMNS, MUTED, RED, RED_TINT};
use super::{attribute, color, escape, fill};
use crate::device::DeviceKind;
use crate::placement::parts::SlotState;
use crate::placement::rows::{DeviceLine, Part, Sheet};
use stratoscope_render::units::{bytes, share};

/// One block per device: what it holds, as a bar on a scale that all share (`most` fills it), and how
/// much of its memory that is, as a thin bar below.
pub(super) fn devices(out: &mut String, sheet: &Sheet<'_>, most: u64) {
    let in_a_row = sheet.devices.len().clamp(2, MOST_COLUMNS);
    let width = 100.0 / in_a_row as f64;
    *out += "<div style=\"margin:0 0 2px -4px\">";
    // Sixty-four blocks say no more than eight.
    let shown = sheet.devices.len().min(2 * MOST_COLUMNS);
    for line in sheet.devices.iter().take(shown) {
        let (empty, lacks) = (line.sum == 0, line.sum == 0 && line.lacks);
        let (border, tint) = match lacks {
            true => (format!("1px dashed {RED}"), RED_TINT),
            false => (format!("1px solid {GRAY}"), GRAY_TINT),
        };
        let _ = write!(
            out,
            "<div style=\"display:inline-block;box-sizing:border-box;width:{width:.2}%;padding:4px;\
             vertical-align:top\"><div style=\"border:{border};background-color:{tint};\
             border-radius:5px;padding:6px 10px\">"
        );
        name(out, line);
        if empty {
            let (style, text) = match lacks {
                true => ("font-weight:bold", "no copy here"),
                false => (MUTED, "keeps no variable"),
            };
            let _ = write!(
                out,
                "<div style=\"{style};margin:6px 0 2px 0\">{text}</div>"
            );
        } else {
            bar(out, line, &sheet.parts, most);
        }
        gauge(out, line);
        *out += "</div></div>";
    }
    if shown < sheet.devices.len() {
        let more = text::count(sheet.devices.len() - shown, "device");
        let _ = write!(
            out,
            "<div style=\"{MUTED};padding:2px 6px\">and {more} of the same kind</div>"
        );
    }
    *out += "</div>";
}

fn name(out: &mut String, line: &DeviceLine<'_>) {
    const ONE_LINE: &str = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis";
    // What is not a device of its own is said in a way that cannot be overlooked.
    let badge = match line.column.kind {
        DeviceKind::Physical => format!("border:1px solid {GRAY}"),
        DeviceKind::Logical => format!("border:1px dashed {GRAY}"),
        DeviceKind::Simulated => format!("border:1px dashed {RED}"),
    };
    let what = match line.role.as_str() {
        "" => line.what.clone(),
        role => format!("{role} · {}", line.what),
    };
    let _ = write!(
        out,
        "<div style=\"{ONE_LINE}\"><b style=\"{CODE}\">{}</b> <span style=\"{badge};border-radius:8px;\
         padding:0 7px;font-size:0.8em\">{}</span></div>\
         <div style=\"{MUTED};{ONE_LINE}\" title=\"{}\">{}</div>",
        escape(&line.column.name),
        line.column.kind.word(),
        attribute(&what),
        escape(&what),
    );
}

/// Weights, slots and activations side by side. What is only planned is an outline.
fn bar(out: &mut String, line: &DeviceLine<'_>, parts: &[Part<'_>], most: u64) {
    *out += "<div style=\"height:16px;margin:5px 0 3px 0;white-space:nowrap;overflow:hidden\">";
    for (index, &size) in line.parts.iter().enumerate().filter(|(_, size)| **size > 0) {
        let width = size as f64 * 100.0 / most.max(1) as f64;
        let color = color(index, parts);
        let fill = match parts[index].state {
            SlotState::Planned => format!("background-color:{color}22;{}", fill(index, parts)),
            _ => fill(index, parts),
        };
        let state = match parts[index].state {
            SlotState::Measured => String::new(),
            state => format!(", {}", state.word()),
        };
        let _ = write!(
            out,
            "<span title=\"{}: {}{state}\" style=\"display:inline-block;box-sizing:border-box;\
             height:16px;width:{width:.2}%;{fill}\"></span>",
            attribute(parts[index].name),
            bytes(size),
        );
    }
    *out += "</div>";
}

/// How much of the device's memory is taken.
fn gauge(out: &mut String, line: &DeviceLine<'_>) {
    let (text, used) = match line.column.capacity_bytes {
        Some(capacity) => (
            // Numbers and their units stay on one line.
            format!(
                "of {} · {}",
                bytes(capacity),
                share(line.sum, capacity).replace(' ', "\u{a0}")
            ),
            line.sum as f64 * 100.0 / capacity.max(1) as f64,
        ),
        None => ("memory unknown".to_owned(), 0.0),
    };
    let _ = write!(
        out,
        "<div><b>{}</b> <span style=\"{MUTED}\">{}</span></div>",
        bytes(line.sum),
        escape(&text),
    );
    if line.column.capacity_bytes.is_some() {
        let over = if used > 100.0 { RED } else { "#888888" };
        let _ = write!(
            out,
            "<div title=\"of the device's memory\" style=\"height:4px;margin:2px 0 1px 0;border-radius:2px;\
             background-color:{GRAY};overflow:hidden\"><div style=\"height:4px;min-width:2px;\
             width:{:.2}%;background-color:{over}\"></div></div>",
            used.min(100.0)
        );
    }
}
