//! The report as static HTML. Front ends remove style sheets, SVG, scripts, variables and
//! `rgba(…)`, so every style is literal and inline, and every color is hexadecimal, with an alpha channel
//! behind text. Text keeps the color it inherits, so the card is readable on light and on dark
//! themes. Rows are blocks, not tables, because notebooks restyle tables and `summary` cannot contain a row.

mod devices;
mod diff;
mod grid;
mod timeline;

use std::fmt::Write;

use stratoscope_render::html::{attribute, escape};
use stratoscope_render::text;

use self::devices::devices;
pub(super) use self::diff::diff;
use self::grid::grid;
use self::timeline::timelines;
use super::parts::SlotState;
use super::rows::{Part, Sheet};
use stratoscope_render::units::bytes;

const RED: &str = "#d93a3f";
const RED_TINT: &str = "#d93a3f1c";
const GREEN: &str = "#2f9e5b";
const GREEN_TINT: &str = "#2f9e5b2e";
const GRAY: &str = "#88888866";
const GRAY_TINT: &str = "#88888818";
const BLUE: &str = "#3b82f6";
const AMBER: &str = "#d98a00";
/// The slots: gradients, first and second moment; then again from the first.
const SLOTS: [&str; 3] = [AMBER, "#8b5cf6", "#14a38b"];
const ACTIVATIONS: &str = "#e0567f";

const CODE: &str = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.92em";
const MUTED: &str = "opacity:0.75;font-size:0.9em";
/// A problem, in words. Text keeps the color it inherits, because no color is readable on both white and black.
const WRONG_TEXT: &str = "font-weight:bold;border-bottom:2px solid #d93a3f";
/// Up to this many devices have a column of their own.
const MOST_COLUMNS: usize = 4;

/// The whole card. Widths and font sizes are in pixels, so that the layout is the same in every front
/// end.
pub(super) fn card(sheet: &Sheet<'_>) -> String {
    let mut out = open(sheet.is_wrong);
    let badge = if sheet.is_wrong { WRONG } else { RIGHT };
    head(&mut out, sheet.title, &sheet.verdict, badge);
    let _ = write!(
        out,
        "<div style=\"{MUTED};margin:0 0 8px 0\">{}{}</div>",
        code_words(&sheet.strategy),
        sheet
            .reality
            .iter()
            .map(|line| format!("<br>{}", escape(line)))
            .collect::<String>()
    );
    let most = sheet.devices.iter().map(|line| line.sum).max();
    devices(&mut out, sheet, most.unwrap_or(0));
    parts(&mut out, sheet);
    heading(&mut out, "Variables by devices");
    grid(&mut out, sheet, true);
    kinds(&mut out, sheet, true);
    timelines(&mut out, sheet);
    out += "</div>";
    out
}

/// The devices and the grid, for the card of a diagnostic, which has its own head. Layers are closed
/// unless their copies differ, because the card is about one problem, not about two hundred variables.
pub(super) fn figure(sheet: &Sheet<'_>) -> String {
    let mut out = "<div style=\"font-size:13px;line-height:1.4;text-align:left;max-width:1040px\">"
        .to_owned();
    let most = sheet.devices.iter().map(|line| line.sum).max();
    devices(&mut out, sheet, most.unwrap_or(0));
    grid(&mut out, sheet, false);
    kinds(&mut out, sheet, false);
    out += "</div>";
    out
}

fn open(is_wrong: bool) -> String {
    let accent = if is_wrong { RED } else { BLUE };
    format!(
        "<div style=\"border:1px solid {GRAY};border-left:4px solid {accent};border-radius:4px;\
         padding:10px 14px 10px 14px;margin:4px 0;font-size:13px;line-height:1.4;text-align:left;max-width:1040px\">"
    )
}

/// The badges, each with its color and sign. White on these has a contrast above 4.5.
const WRONG: (&str, &str) = ("#c62828", "✗");
const RIGHT: (&str, &str) = ("#1f7a45", "✓");
const CHANGE: (&str, &str) = ("#1d5fc4", "→");

fn head(out: &mut String, title: &str, verdict: &str, (badge, sign): (&str, &str)) {
    let _ = write!(
        out,
        "<div style=\"margin:0 0 3px 0;overflow-wrap:break-word\"><b style=\"font-size:1.1em\">{}</b> \
         <span style=\"display:inline-block;background-color:{badge};color:#ffffff;border-radius:9px;\
         padding:1px 9px;margin-left:6px;font-size:0.9em;font-weight:bold\">{sign} {}</span></div>",
        escape(title),
        code_words(verdict),
    );
}

fn heading(out: &mut String, text: &str) {
    let _ = write!(
        out,
        "<div style=\"font-weight:bold;margin:12px 0 4px 0\">{text}</div>"
    );
}

/// The color of part `index`; part 0 is the weights, and activations are the last.
fn color(index: usize, parts: &[Part<'_>]) -> &'static str {
    match (index, parts.get(index)) {
        (0, _) => BLUE,
        (_, Some(part)) if part.name == "activations" => ACTIVATIONS,
        (index, _) => SLOTS[(index - 1) % SLOTS.len()],
    }
}

/// A filled square for what is allocated, an outline for what is only planned.
fn fill(index: usize, parts: &[Part<'_>]) -> String {
    let color = color(index, parts);
    match parts.get(index).map(|part| part.state) {
        Some(SlotState::Planned) => format!("border:1px dashed {color}"),
        Some(SlotState::Estimated) => {
            format!("border:1px solid {color};background-color:{color}55")
        }
        _ => format!("border:1px solid {color};background-color:{color}"),
    }
}

/// The legend of the colors, with sums if every device holds the same.
fn parts(out: &mut String, sheet: &Sheet<'_>) {
    let even = sheet.is_even().then(|| sheet.devices.first()).flatten();
    let _ = write!(out, "<div style=\"font-size:0.9em;margin:2px 0 0 0\">");
    if even.is_some() {
        *out += if sheet.devices.len() > 1 {
            "each device: "
        } else {
            ""
        };
    }
    for (index, part) in sheet.parts.iter().enumerate() {
        let size = even.map(|line| format!(" <b>{}</b>", bytes(line.parts[index])));
        let state = match part.state {
            SlotState::Measured => String::new(),
            state => format!(" ({})", state.word()),
        };
        let plus = if index > 0 && even.is_some() {
            "+ "
        } else {
            ""
        };
        let _ = write!(
            out,
            "<span style=\"display:inline-block;margin-right:10px\">{plus}<span style=\"display:inline-block;\
             box-sizing:border-box;width:10px;height:10px;margin-right:5px;{}\"></span>{}{}\
             <span style=\"opacity:0.75\">{state}</span></span>",
            fill(index, &sheet.parts),
            escape(part.name),
            size.unwrap_or_default()
        );
    }
    if let Some(line) = even.filter(|_| sheet.parts.len() > 1) {
        let _ = write!(
            out,
            "<span style=\"display:inline-block\">= <b>{}</b></span>",
            bytes(line.sum)
        );
    }
    let _ = write!(out, "</div>");
    if sheet.has(SlotState::Planned) {
        let _ = write!(
            out,
            "<div style=\"{MUTED}\">planned: allocated at the first step</div>"
        );
    }
    if let Some(note) = sheet.activations {
        let _ = write!(
            out,
            "<div style=\"{MUTED}\">activations: {}</div>",
            code_words(note)
        );
    }
}

/// What the kinds mean, and why the variables are of these kinds.
fn kinds(out: &mut String, sheet: &Sheet<'_>, opened: bool) {
    let _ = write!(out, "<div style=\"font-size:0.9em;margin:6px 0 0 0\">");
    for kind in &sheet.kinds {
        let why = kind.why.iter().take(3).map(|why| code_words(why));
        let _ = write!(
            out,
            "<div><b>{}</b> <span style=\"opacity:0.75\">({}): {}. Here: {}</span></div>",
            kind.title,
            text::thousands(kind.variables),
            escape(kind.meaning),
            why.collect::<Vec<_>>().join("; ")
        );
    }
    let signs = sheet.signs(MOST_COLUMNS, opened);
    if !signs.is_empty() {
        let _ = write!(
            out,
            "<div style=\"opacity:0.75\">{}</div>",
            escape(&signs.join("; "))
        );
    }
    *out += "</div>";
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
