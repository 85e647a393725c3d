//! The report as static HTML. Front ends sanitize: style sheets, SVG, scripts, variables and
//! `rgba(…)` are lost, so every style is literal and inline and every colour hex, with an alpha channel
//! where it lies behind text. Text keeps the colour it inherits: the card is readable on light and on dark
//! themes. Rows are blocks, not tables, because notebooks restyle tables and `summary` cannot hold a row.

mod devices;
mod grid;

use std::fmt::Write;

use stratoscope_diagnostics::words;

use self::devices::devices;
use self::grid::grid;
use super::units::{bytes, count};
use super::{PlacementReport, Slot, SlotState, VariableRow};

const RED: &str = "#d93a3f";
const RED_TINT: &str = "#d93a3f1c";
const GREEN: &str = "#2f9e5b";
const GREEN_TINT: &str = "#2f9e5b2e";
const GREY: &str = "#88888866";
const GREY_TINT: &str = "#88888818";
/// Weights, gradients, first and second moment; then again from the gradients.
const SLOTS: [&str; 4] = ["#3b82f6", "#d98a00", "#8b5cf6", "#14a38b"];

const CODE: &str = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.92em";
const MUTED: &str = "opacity:0.7;font-size:0.9em";
/// Up to this many devices have a column of their own.
const MOST_COLUMNS: usize = 4;

/// The whole card.
pub(super) fn card(report: &PlacementReport) -> String {
    let mut out = open(if has_problem(report) { RED } else { "#1d5fc4" });
    head(&mut out, report);
    devices(&mut out, report);
    grid(&mut out, report);
    collectives(&mut out, report);
    legend(&mut out, report);
    out += "</div>";
    out
}

/// The devices and the grid, for the card of a diagnostic, which has its own head.
pub(super) fn figure(report: &PlacementReport) -> String {
    let mut out = "<div style=\"line-height:1.4;text-align:left;max-width:1040px\">".to_owned();
    devices(&mut out, report);
    grid(&mut out, report);
    legend(&mut out, report);
    out += "</div>";
    out
}

fn has_problem(report: &PlacementReport) -> bool {
    report.variables_outside() > 0 || !report.copies_are_equal()
}

fn open(accent: &str) -> String {
    format!(
        "<div style=\"border:1px solid {GREY};border-left:4px solid {accent};border-radius:4px;\
         padding:10px 14px 10px 14px;margin:4px 0;line-height:1.4;text-align:left;max-width:1040px\">"
    )
}

fn head(out: &mut String, report: &PlacementReport) {
    let (badge, sign) = if has_problem(report) {
        ("#c62828", "✗")
    } else {
        ("#1f7a45", "✓")
    };
    let elements: usize = report.variables.iter().map(VariableRow::elements).sum();
    let title = report.title.as_deref().unwrap_or("Placement");
    let _ = write!(
        out,
        "<div style=\"margin:0 0 2px 0\"><b style=\"font-size:1.1em\">{}</b> \
         <span style=\"background-color:{badge};color:#ffffff;border-radius:9px;padding:1px 9px;\
         margin-left:8px;font-size:0.85em;font-weight:bold;white-space:nowrap\">{sign} {}</span></div>",
        escape(title),
        code_words(&report.verdict()),
    );
    let strategy = match &report.strategy {
        Some(strategy) => code_words(&strategy.description),
        None => "no strategy: made outside any scope".to_owned(),
    };
    let _ = write!(
        out,
        "<div style=\"{MUTED};margin:0 0 10px 0\">{strategy} · {} parameters</div>",
        count(elements)
    );
}

fn colour(index: usize) -> &'static str {
    match index {
        0 => SLOTS[0],
        index => SLOTS[1 + (index - 1) % (SLOTS.len() - 1)],
    }
}

/// The name of part `index` and whether it is only planned; part 0 is the weights.
fn slot(index: usize, slots: &[Slot]) -> (&str, bool) {
    match index.checked_sub(1).and_then(|index| slots.get(index)) {
        Some(slot) => (&slot.name, slot.state == SlotState::Planned),
        None => ("weights", false),
    }
}

fn collectives(out: &mut String, report: &PlacementReport) {
    for row in &report.collectives {
        let state = match row.state {
            SlotState::Planned => "planned",
            SlotState::Measured => "measured",
        };
        let center = report
            .devices
            .first()
            .map_or("", |device| device.name.as_str());
        let _ = write!(
            out,
            "<div style=\"margin:10px 0 0 0;padding:6px 10px;background-color:{GREY_TINT};border-radius:5px\">\
             <b>Every optimizer step</b>: {} × <b>{}</b> of {}, {} from each replica, summed in the order \
             of the replicas on <span style=\"{CODE}\">{}</span> and sent back: {} between devices \
             <span style=\"{MUTED}\">({state})</span>",
            row.per_step,
            row.operation.title(),
            words::count(row.tensors, "gradient"),
            bytes(row.bytes),
            escape(center),
            bytes(row.moved_bytes),
        );
        if report.totals.all_reduces > 0 {
            let _ = write!(
                out,
                "<br>So far: {}, {} between devices",
                words::count(
                    usize::try_from(report.totals.all_reduces).unwrap_or(usize::MAX),
                    "all-reduce"
                ),
                bytes(report.totals.moved_bytes)
            );
        }
        *out += "</div>";
    }
}

/// What the colours and digits mean, and why the variables are of their kind.
fn legend(out: &mut String, report: &PlacementReport) {
    let _ = write!(out, "<div style=\"{MUTED};margin:8px 0 0 0\">");
    for index in 0..=report.slots.len() {
        let colour = colour(index);
        let (name, planned) = slot(index, &report.slots);
        let fill = if planned { "transparent" } else { colour };
        let planned = if planned { " (planned)" } else { "" };
        let _ = write!(
            out,
            "<span style=\"white-space:nowrap;margin-right:14px\"><span style=\"display:inline-block;\
             box-sizing:border-box;width:9px;height:9px;margin-right:5px;border:1px solid {colour};\
             background-color:{fill}\"></span>{}{planned}</span>",
            escape(name)
        );
    }
    if report
        .slots
        .iter()
        .any(|slot| slot.state == SlotState::Planned)
    {
        *out += "<span>planned: allocated at the first step</span>";
    }
    *out += "</div>";
    if report.devices.len() <= MOST_COLUMNS && !report.variables.is_empty() {
        let _ = write!(
            out,
            "<div style=\"{MUTED}\">the digits begin the checksum of a copy's bytes: equal digits, equal copies</div>"
        );
    }
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for row in &report.variables {
        let reason = (row.kind.title(), row.why.as_str());
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    for (kind, why) in reasons.iter().take(4) {
        let _ = write!(
            out,
            "<div style=\"{MUTED}\"><b>{kind}</b>: {}</div>",
            code_words(why)
        );
    }
}

/// Text with its backticks as code.
fn code_words(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => html += &escape(part),
            _ => {
                let _ = write!(html, "<span style=\"{CODE}\">{}</span>", escape(part));
            }
        }
    }
    html
}

/// Text between tags. Front ends typeset `$…$`, so a dollar stands alone.
fn escape(text: &str) -> String {
    attribute(text).replace('$', "<span>$</span>")
}

/// Text in an attribute's quotes. Characters that turn the direction of what follows are dropped.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
