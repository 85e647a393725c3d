//! The devices at the top of the card.

use std::fmt::Write;

use stratoscope_diagnostics::words;

use super::{CODE, GREY, GREY_TINT, MOST_COLUMNS, MUTED, RED, RED_TINT};
use super::{attribute, colour, escape, slot};
use crate::device::DeviceKind;
use crate::placement::units::{bytes, share};
use crate::placement::{DeviceColumn, PlacementReport, Slot};

/// One block per device: what it holds, as a bar of equal scale, and how much of it that is.
pub(super) fn devices(out: &mut String, report: &PlacementReport) {
    let largest = (0..report.devices.len())
        .map(|i| report.device_totals(i).sum())
        .max()
        .unwrap_or(0);
    let in_a_row = report.devices.len().clamp(2, MOST_COLUMNS);
    let width = 100.0 / in_a_row as f64;
    *out += "<div style=\"margin:0 -4px 6px -4px\">";
    // Sixty-four blocks say no more than eight.
    let shown = report.devices.len().min(2 * MOST_COLUMNS);
    for (index, device) in report.devices.iter().enumerate().take(shown) {
        let totals = report.device_totals(index);
        let empty = totals.sum() == 0;
        let border = if empty {
            format!("1px dashed {RED}")
        } else {
            format!("1px solid {GREY}")
        };
        let tint = if empty { RED_TINT } else { GREY_TINT };
        let _ = write!(
            out,
            "<div style=\"display:inline-block;box-sizing:border-box;width:{width:.2}%;padding:4px;\
             vertical-align:top\"><div style=\"border:{border};background-color:{tint};\
             border-radius:5px;padding:7px 10px\">"
        );
        device_name(out, device);
        if empty {
            let _ = write!(
                out,
                "<div style=\"color:{RED};font-weight:bold;margin:5px 0 2px 0\">no copy here</div>\
                 <div style=\"{MUTED}\">0 B{}</div>",
                of_capacity(device)
            );
        } else {
            let parts: Vec<u64> = std::iter::once(totals.weights)
                .chain(totals.slots.iter().copied())
                .collect();
            bar(out, &parts, &report.slots, largest);
            let _ = write!(
                out,
                "<div><b>{}</b><span style=\"{MUTED}\">{}</span></div>",
                bytes(totals.sum()),
                of_share(device, totals.sum())
            );
        }
        *out += "</div></div>";
    }
    if shown < report.devices.len() {
        let more = report.devices.len() - shown;
        let _ = write!(
            out,
            "<div style=\"{MUTED};padding:2px 6px\">and {} of the same kind</div>",
            words::count(more, "device")
        );
    }
    *out += "</div>";
}

fn device_name(out: &mut String, device: &DeviceColumn) {
    let role = match device.replica {
        Some(replica) => format!("replica {replica}"),
        None if device.kind == DeviceKind::Physical => "not in the strategy".to_owned(),
        None => String::new(),
    };
    let _ = write!(
        out,
        "<div style=\"white-space:nowrap;overflow:hidden;text-overflow:ellipsis\">\
         <b style=\"{CODE}\">{}</b> <span style=\"border:1px solid {GREY};border-radius:8px;\
         padding:0 7px;font-size:0.8em\">{}</span> <span style=\"{MUTED}\">{role}</span></div>\
         <div style=\"{MUTED};white-space:nowrap;overflow:hidden;text-overflow:ellipsis\" title=\"{}\">\
         {}</div>",
        escape(&device.name),
        device.kind.word(),
        attribute(&device.description),
        escape(&what(device)),
    );
}

/// `a share of 2 cores`.
fn what(device: &DeviceColumn) -> String {
    match device.shared_by {
        0 | 1 => device.description.clone(),
        shares => format!("one of {shares} shares of {}", device.description),
    }
}

fn of_capacity(device: &DeviceColumn) -> String {
    device
        .capacity_bytes
        .map(|capacity| format!(" of {}", bytes(capacity)))
        .unwrap_or_default()
}

fn of_share(device: &DeviceColumn, used: u64) -> String {
    match device.capacity_bytes {
        Some(capacity) => {
            format!(" of {} ({})", bytes(capacity), share(used, capacity))
        }
        None => " (capacity unknown)".to_owned(),
    }
}

/// Weights and slots side by side; the longest bar of the report fills its block. What is only planned is
/// an outline.
fn bar(out: &mut String, parts: &[u64], slots: &[Slot], largest: u64) {
    *out += "<div style=\"height:14px;margin:6px 0 4px 0;white-space:nowrap;overflow:hidden\">";
    for (index, &part) in parts.iter().enumerate().filter(|(_, part)| **part > 0) {
        let width = part as f64 * 100.0 / largest.max(1) as f64;
        let colour = colour(index);
        let (name, planned) = slot(index, slots);
        let fill = if planned {
            format!("background-color:{colour}22;border:1px dashed {colour}")
        } else {
            format!("background-color:{colour};border:1px solid {colour}")
        };
        let planned = if planned { ", planned" } else { "" };
        let _ = write!(
            out,
            "<span title=\"{}: {}{planned}\" style=\"display:inline-block;box-sizing:border-box;\
             height:14px;width:{width:.2}%;{fill}\"></span>",
            attribute(name),
            bytes(part),
        );
    }
    *out += "</div>";
}
