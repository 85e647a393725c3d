//! The grid of variables by devices.
//!
//! A model has hundreds of variables, so every byte of a row's style counts: a cell has a width and
//! nothing else, what is common stands on the block around, and what the layer's line has said of all
//! its variables is not said again of each.

use std::fmt::Write;

use super::{
    ACTIVATIONS, CODE, GRAY, GRAY_TINT, GREEN, GREEN_TINT, MOST_COLUMNS, MUTED, RED, RED_TINT,
    WRONG_TEXT,
};
use super::{attribute, color, escape};
use crate::placement::parts::SlotState;
use crate::placement::rows::{Cell, Layer, Line, Mark, Sheet};
use stratoscope_render::units::bytes;

/// The width of a letter of a name, in pixels.
const LETTER: usize = 7;

/// Widths in pixels of the narrowest grid; a wider one grows in proportion, a narrower place scrolls.
struct Widths {
    name: usize,
    kind: usize,
    shape: usize,
    size: usize,
    devices: Vec<usize>,
    origin: usize,
}

impl Widths {
    fn of(devices: usize) -> Self {
        Self {
            name: 148,
            kind: 62,
            // `f32 30522 × 384`
            shape: 94,
            size: 60,
            // Six digits and four squares; or a dot for each of very many.
            devices: match devices {
                0..=MOST_COLUMNS => vec![92; devices],
                many => vec![(many * 9 + 100).min(400)],
            },
            // `cell 12, line 3`
            origin: 84,
        }
    }

    fn sum(&self) -> usize {
        let devices: usize = self.devices.iter().sum();
        self.name + self.kind + self.shape + self.size + devices + self.origin
    }

    /// A cell of this many pixels.
    fn cell(&self, out: &mut String, pixels: usize, style: &str, title: &str, html: &str) {
        // Rounded down: all together are never wider than the grid, which would then be scrolled.
        let width = (pixels as f64 * 1000.0 / self.sum() as f64).floor() / 10.0;
        cell(out, width, style, title, html);
    }
}

/// The space at its end is not seen; it parts the words for who takes the text alone.
fn cell(out: &mut String, width: f64, style: &str, title: &str, html: &str) {
    let title = match title {
        "" => String::new(),
        title => format!(" title=\"{}\"", attribute(title)),
    };
    let style = match style {
        "" => String::new(),
        style => format!(";{style}"),
    };
    let _ = write!(
        out,
        "<span{title} style=\"display:inline-block;width:{width:.1}%{style}\">{html} </span>"
    );
}

const RIGHT: &str = "text-align:right";
/// Between a column of numbers and the next one.
const INDENT: &str = "text-indent:12px";

/// The grid. With `open`, layers are folded but can be opened; else only those stand open in which
/// something must be seen.
pub(super) fn grid(out: &mut String, sheet: &Sheet<'_>, open: bool) {
    let widths = Widths::of(sheet.devices.len());
    let _ = write!(
        out,
        "<div style=\"overflow-x:auto\"><div style=\"min-width:{}px;white-space:nowrap;font-size:0.95em\">\
         <div style=\"padding-left:18px;font-weight:bold;border-bottom:2px solid {GRAY}\">",
        widths.sum() + 18
    );
    widths.cell(out, widths.name, "", "", "variable");
    widths.cell(out, widths.kind, "", "", "kind");
    widths.cell(out, widths.shape, "", "element type and shape", "shape");
    widths.cell(out, widths.size, RIGHT, "the size of one copy", "one copy");
    if sheet.devices.len() > MOST_COLUMNS {
        let title = format!("{} devices", sheet.devices.len());
        widths.cell(out, widths.devices[0], INDENT, "", &title);
    } else {
        for (device, width) in sheet.devices.iter().zip(&widths.devices) {
            let name = format!(
                "<span style=\"{CODE}\">{}</span>",
                escape(&device.column.name)
            );
            widths.cell(out, *width, INDENT, &device.what, &name);
        }
    }
    widths.cell(out, widths.origin, INDENT, "", "made at");
    *out += "</div>";
    for layer in &sheet.layers {
        match &layer.sum {
            Some(sum) => folded(out, sheet, &widths, layer, sum, open),
            None => {
                for line in &layer.lines {
                    whole(out, sheet, &widths, line);
                }
                activations(out, sheet, &widths, layer);
            }
        }
    }
    *out += "</div></div>";
}

fn tint(mark: Mark) -> String {
    match mark {
        Mark::Right => String::new(),
        Mark::Outside | Mark::Unequal => format!("background-color:{RED_TINT};"),
    }
}

/// A line of the grid with all of its cells.
fn whole(out: &mut String, sheet: &Sheet<'_>, widths: &Widths, line: &Line) {
    let _ = write!(
        out,
        "<div style=\"padding:2px 0 2px 18px;{}border-bottom:1px solid {GRAY_TINT}\">",
        tint(line.mark)
    );
    cells(out, sheet, widths, line);
    *out += "</div>";
}

/// A layer: one line that opens.
fn folded(
    out: &mut String,
    sheet: &Sheet<'_>,
    widths: &Widths,
    layer: &Layer,
    sum: &Line,
    open: bool,
) {
    let must_be_seen = sum.mark == Mark::Unequal;
    if !open && !must_be_seen {
        return whole(out, sheet, widths, sum);
    }
    let _ = write!(
        out,
        "<details{} style=\"margin:0;padding:0 0 0 18px;{}border-bottom:1px solid {GRAY_TINT}\">\
         <summary style=\"cursor:pointer;list-style-position:outside;padding:2px 0;margin:0\">",
        if must_be_seen { " open" } else { "" },
        tint(sum.mark)
    );
    cells(out, sheet, widths, sum);
    let _ = write!(out, "</summary><div style=\"{CODE};padding-bottom:4px\">");
    for line in &layer.lines {
        inside(out, sheet, widths, line, sum);
    }
    *out += "</div>";
    activations(out, sheet, widths, layer);
    *out += "</details>";
}

fn cells(out: &mut String, sheet: &Sheet<'_>, widths: &Widths, line: &Line) {
    // Written from the right, a line too long is cut at its beginning: the end tells a name from its
    // neighbors. The mark in front keeps the name itself written from the left.
    const CUT: &str = "overflow:hidden;text-overflow:ellipsis;vertical-align:top;\
                       box-sizing:border-box;padding-right:8px;direction:rtl;text-align:left";
    let name = format!("&lrm;{}", escape(&line.name));
    widths.cell(
        out,
        widths.name,
        &format!("{CUT};{CODE}"),
        &line.full_name,
        &name,
    );
    let kind = match line.mark {
        Mark::Outside => format!("<b style=\"{WRONG_TEXT}\">{}</b>", line.kind),
        _ => line.kind_marked(),
    };
    widths.cell(out, widths.kind, "", &line.why, &kind);
    widths.cell(out, widths.shape, MUTED, "", &escape(&line.shape));
    widths.cell(out, widths.size, RIGHT, "", &bytes(line.bytes));
    by_device(out, sheet, widths, line, |one| {
        (String::new(), one.title(), chip(one, sheet))
    });
    widths.cell(
        out,
        widths.origin,
        &format!("{INDENT};{MUTED}"),
        "",
        &escape(sheet.origin(line)),
    );
}

/// A variable of a layer whose line is `of`.
fn inside(out: &mut String, sheet: &Sheet<'_>, widths: &Widths, line: &Line, of: &Line) {
    *out += match line.mark {
        Mark::Unequal => "<div style=\"font-weight:bold\">",
        Mark::Right | Mark::Outside => "<div>",
    };
    let said = of.kind == line.kind && of.frozen == line.frozen;
    let width = widths.name + if said { widths.kind } else { 0 };
    let full = if line.mark == Mark::Unequal {
        &line.full_name
    } else {
        ""
    };
    widths.cell(
        out,
        width,
        "text-indent:14px",
        full,
        &escape(&cut(&line.name, width - 14)),
    );
    if !said {
        widths.cell(out, widths.kind, "", "", &line.kind_marked());
    }
    widths.cell(out, widths.shape, "", "", &escape(&line.shape));
    widths.cell(out, widths.size, RIGHT, "", &bytes(line.bytes));
    by_device(out, sheet, widths, line, |one| {
        let (style, title) = match one {
            Cell::Copy { odd: true, .. } | Cell::Missing => {
                (format!("{INDENT};{WRONG_TEXT}"), one.title())
            }
            _ => (INDENT.to_owned(), String::new()),
        };
        (style, title, escape(&one.words()))
    });
    if of.origin != line.origin {
        widths.cell(out, widths.origin, INDENT, "", &escape(sheet.origin(line)));
    }
    *out += "</div>";
}

/// The cells of a line, one a device, each with its style, title and contents; of many devices one
/// cell for all.
fn by_device(
    out: &mut String,
    sheet: &Sheet<'_>,
    widths: &Widths,
    line: &Line,
    look: impl Fn(&Cell) -> (String, String, String),
) {
    if sheet.devices.len() > MOST_COLUMNS {
        let all = many_devices(sheet, line);
        widths.cell(out, widths.devices[0], INDENT, "", &all);
        return;
    }
    for (one, width) in line.cells.iter().zip(&widths.devices) {
        let (style, title, contents) = look(one);
        widths.cell(out, *width, &style, &title, &contents);
    }
}

/// Of a name that is too long the end, which tells it from its neighbors.
fn cut(name: &str, width: usize) -> String {
    let most = width / LETTER;
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length + 1 - most).collect();
    format!("…{end}")
}

/// What a device has of a line: green behind what is proved equal, red behind what differs, then the
/// squares of what training keeps beside it.
fn chip(one: &Cell, sheet: &Sheet<'_>) -> String {
    let proof = |proved: bool, odd: bool| match (proved, odd) {
        (_, true) => format!("background-color:{RED_TINT};{WRONG_TEXT}"),
        (true, _) => format!("background-color:{GREEN_TINT}"),
        _ => format!("background-color:{GRAY_TINT}"),
    };
    let (parts, style) = match one {
        Cell::Missing => (None, format!("border:1px dashed {RED};font-size:0.85em")),
        Cell::Elsewhere => (None, "opacity:0.75".to_owned()),
        // Digits stand below one another.
        Cell::Copy {
            parts, proved, odd, ..
        } => (Some(parts), format!("{CODE};{}", proof(*proved, *odd))),
        Cell::Copies {
            parts, proved, odd, ..
        } => (Some(parts), proof(*proved, *odd > 0)),
    };
    let squares = parts.map(|parts| squares(parts, sheet)).unwrap_or_default();
    format!(
        "<span style=\"margin-left:6px;border-radius:3px;padding:0 3px;{style}\">{}</span>{squares}",
        escape(&one.words())
    )
}

/// One column for all devices: a dot each, and the checksum where they have the same. Neighbors of one
/// color share a span.
fn many_devices(sheet: &Sheet<'_>, line: &Line) -> String {
    let mut runs: Vec<(&str, String)> = Vec::new();
    for one in &line.cells {
        let (color, dot) = match one {
            Cell::Missing => (RED, '○'),
            Cell::Elsewhere => ("#888888", '·'),
            Cell::Copy { odd: true, .. } => (RED, '●'),
            Cell::Copies { odd, .. } if *odd > 0 => (RED, '●'),
            Cell::Copy { proved: true, .. } | Cell::Copies { proved: true, .. } => (GREEN, '●'),
            Cell::Copy { .. } | Cell::Copies { .. } => ("#888888", '●'),
        };
        match runs.last_mut() {
            Some((last, dots)) if *last == color => dots.push(dot),
            _ => runs.push((color, dot.to_string())),
        }
    }
    let mut html = String::new();
    for (color, dots) in runs {
        let _ = write!(html, "<span style=\"color:{color}\">{dots}</span>");
    }
    let words = match line.cells.first() {
        // Of a variable that has equal copies the checksum says that, and which.
        Some(one @ Cell::Copy { proved: true, .. }) if line.mark == Mark::Right => {
            format!("{} equal, {}", line.cells.len(), one.words())
        }
        _ => sheet.on_many(line),
    };
    html + " " + &escape(&words)
}

/// A square for the weights and one per slot: filled if allocated, an outline if planned, a gap if
/// this variable has none.
fn squares(parts: &[u64], sheet: &Sheet<'_>) -> String {
    let mut html = String::new();
    for (index, &size) in parts.iter().enumerate() {
        let color = color(index, &sheet.parts);
        let planned = sheet.parts[index].state == SlotState::Planned;
        // Six pixels by nine, with or without a border.
        let style = match (size, planned) {
            (0, _) => "width:6px".to_owned(),
            (_, true) => format!("width:4px;height:7px;border:1px dashed {color}"),
            (_, false) => format!("width:6px;height:9px;background-color:{color}"),
        };
        let left = if index == 0 { 5 } else { 2 };
        let _ = write!(
            html,
            "<span style=\"display:inline-block;margin-left:{left}px;{style}\"></span>"
        );
    }
    html
}

/// What a layer computed and kept, on each device.
fn activations(out: &mut String, sheet: &Sheet<'_>, widths: &Widths, layer: &Layer) {
    let Some(sizes) = &layer.activations else {
        return;
    };
    let state = sheet.parts.last().map_or("", |part| part.state.word());
    let _ = write!(out, "<div style=\"border-bottom:1px solid {GRAY_TINT}\">");
    let name = format!("<span style=\"color:{ACTIVATIONS}\">■</span> activations");
    widths.cell(out, widths.name, "text-indent:14px", "", &name);
    widths.cell(out, widths.kind + widths.shape, MUTED, "", state);
    let most = sizes.iter().max().copied().unwrap_or(0);
    widths.cell(
        out,
        widths.size,
        RIGHT,
        "on the device that has the most",
        &bytes(most),
    );
    if sheet.devices.len() <= MOST_COLUMNS {
        for (size, width) in sizes.iter().zip(&widths.devices) {
            widths.cell(out, *width, INDENT, "", &bytes(*size));
        }
    }
    *out += "</div>";
}
