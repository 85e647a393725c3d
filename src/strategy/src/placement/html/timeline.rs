//! The collectives of a step, drawn as arrows between the devices' lifelines.

use std::fmt::Write;

use super::{AMBER, CODE, GRAY, GRAY_TINT, GREEN, MUTED};
use super::{attribute, code_words, escape, heading};
use crate::placement::parts::SlotState;
use crate::placement::rows::Sheet;
use crate::placement::timeline::{Arrow, Hop, Phase, Timeline};
use stratoscope_render::units::bytes;

/// More devices than this would be drawn too small to follow an arrow.
const MOST_LIFELINES: usize = 16;
/// The height of a line of arrows, in pixels.
const LANE: usize = 15;

pub(super) fn timelines(out: &mut String, sheet: &Sheet<'_>) {
    if sheet.timelines.is_empty() {
        return;
    }
    heading(
        out,
        match sheet
            .timelines
            .iter()
            .all(|timeline| timeline.state == SlotState::Planned)
        {
            true => "What the devices will send in every optimizer step",
            false => "What the devices sent in the last optimizer step",
        },
    );
    let names = sheet.device_names();
    for timeline in sheet.timelines {
        one(out, timeline, &names);
    }
    if let Some(so_far) = &sheet.so_far {
        let _ = write!(
            out,
            "<div style=\"{MUTED};margin-top:4px\">so far: {so_far}</div>"
        );
    }
}

fn one(out: &mut String, timeline: &Timeline, names: &[String]) {
    let _ = write!(
        out,
        "<div style=\"background-color:{GRAY_TINT};border-radius:5px;padding:7px 10px;margin:0 0 6px 0\">\
         <div>{}</div><div style=\"overflow-x:auto\"><div style=\"min-width:620px\">",
        code_words(&timeline.title())
    );
    let count = timeline.devices();
    if count <= MOST_LIFELINES {
        lifelines(out, names.get(..count).unwrap_or(names));
    }
    for hop in &timeline.hops {
        hops(out, timeline, hop, names, count);
    }
    let _ = write!(
        out,
        "</div></div><div style=\"margin-top:4px\">{}</div></div>",
        code_words(&timeline.total(names))
    );
}

/// Where the lifeline of a device is, in percent.
fn x(device: usize, count: usize) -> f64 {
    (device as f64 + 0.5) * 100.0 / count.max(1) as f64
}

const LABEL: &str =
    "display:inline-block;box-sizing:border-box;width:32%;vertical-align:middle;padding-right:8px";
const DRAWING: &str = "display:inline-block;width:68%;vertical-align:middle";

/// The names of the devices, each above its line.
fn lifelines(out: &mut String, names: &[String]) {
    let _ = write!(
        out,
        "<div style=\"margin-top:4px\"><span style=\"{LABEL}\"></span><span style=\"{DRAWING}\">"
    );
    let width = 100.0 / names.len().max(1) as f64;
    for name in names {
        let _ = write!(
            out,
            "<span style=\"display:inline-block;width:{width:.3}%;text-align:center;overflow:hidden;\
             text-overflow:ellipsis;white-space:nowrap;{CODE}\" title=\"{}\">{}</span>",
            attribute(name),
            escape(name)
        );
    }
    *out += "</span></div>";
}

fn hops(out: &mut String, timeline: &Timeline, hop: &Hop, names: &[String], count: usize) {
    let color = match hop.phase {
        Phase::Sum => AMBER,
        Phase::Share => GREEN,
    };
    let _ = write!(
        out,
        "<div style=\"border-top:1px solid {GRAY}\"><div style=\"{LABEL};line-height:1.25;padding-top:4px;padding-bottom:4px\">\
         <b>{}</b> <span style=\"{MUTED}\">{}</span><br><span style=\"font-size:0.9em\">{}</span></div>",
        hop.title(),
        escape(&hop.amount()),
        code_words(&timeline.describe(hop, names)),
    );
    if count > MOST_LIFELINES {
        *out += "</div>";
        return;
    }
    let lanes = hop.lanes();
    let height = lanes.len() * LANE + 6;
    let _ = write!(
        out,
        "<div style=\"{DRAWING};position:relative;height:{height}px\">"
    );
    for device in 0..count {
        let _ = write!(
            out,
            "<div style=\"position:absolute;left:{:.3}%;top:0;height:{height}px;border-left:1px solid {GRAY}\"></div>",
            x(device, count)
        );
    }
    for (lane, arrows) in lanes.iter().enumerate() {
        for arrow in arrows {
            draw(out, *arrow, lane * LANE + 3 + LANE / 2, count, color, names);
        }
    }
    *out += "</div></div>";
}

/// A line and a triangle at its end. Triangles are borders: signs have another height in every font.
fn draw(out: &mut String, arrow: Arrow, y: usize, count: usize, color: &str, names: &[String]) {
    let (left, right) = arrow.ends();
    let (start, end) = (x(left, count), x(right, count));
    let name = |device: usize| names.get(device).map_or("", String::as_str);
    let title = format!(
        "{} → {}: {}",
        name(arrow.from),
        name(arrow.to),
        bytes(arrow.bytes)
    );
    let _ = write!(
        out,
        "<div title=\"{}\" style=\"position:absolute;left:{start:.3}%;width:{:.3}%;top:{}px;height:2px;\
         background-color:{color}\"></div>",
        attribute(&title),
        end - start,
        y - 1,
    );
    let (at, margin, side) = match arrow.from < arrow.to {
        true => (end, -8, "left"),
        false => (start, 1, "right"),
    };
    let _ = write!(
        out,
        "<div style=\"position:absolute;left:{at:.3}%;margin-left:{margin}px;top:{}px;width:0;height:0;\
         border-top:4px solid #00000000;border-bottom:4px solid #00000000;border-{side}:8px solid {color}\"></div>",
        y - 4
    );
    // Where it begins: a line that passes a lifeline does not begin there.
    let _ = write!(
        out,
        "<div style=\"position:absolute;left:{:.3}%;margin-left:-2px;top:{}px;width:5px;height:5px;border-radius:3px;\
         background-color:{color}\"></div>",
        x(arrow.from, count),
        y.saturating_sub(2),
    );
}
