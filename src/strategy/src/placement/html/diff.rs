//! Before and after.

use std::fmt::Write;

use stratoscope_render::text;

use super::{AMBER, CHANGE, CODE, GRAY, GRAY_TINT, MUTED, WRONG};
use super::{code_words, devices, escape, head, heading, open, parts};
use crate::placement::diff::{Pair, PlacementDiff, Side, Values};
use crate::placement::rows::Sheet;
use stratoscope_render::units::bytes;

/// The devices before, the devices after, on one scale; then what became of the variables.
pub(in crate::placement) fn diff(
    diff: &PlacementDiff,
    before: &Sheet<'_>,
    after: &Sheet<'_>,
) -> String {
    let mut out = open(after.is_wrong);
    let title = format!("{}: before and after", after.title);
    let badge = if after.is_wrong { WRONG } else { CHANGE };
    head(&mut out, &title, &diff.verdict(), badge);
    let all = before.devices.iter().chain(&after.devices);
    let most = all.map(|line| line.sum).max().unwrap_or(0);
    for (name, sheet) in [("Before", before), ("After", after)] {
        heading(&mut out, name);
        let _ = write!(
            out,
            "<div style=\"{MUTED}\">{}</div>",
            code_words(&sheet.strategy)
        );
        devices(&mut out, sheet, most);
        parts(&mut out, sheet);
    }
    heading(&mut out, "Variables, before → after");
    rows(&mut out, &diff.rows());
    out += "</div>";
    out
}

fn rows(out: &mut String, rows: &[Pair]) {
    const WIDTHS: [usize; 5] = [27, 18, 24, 21, 10];
    let _ = write!(
        out,
        "<div style=\"overflow-x:auto\"><div style=\"min-width:660px;white-space:nowrap;font-size:0.95em\">"
    );
    let line = |out: &mut String, style: &str, cells: [String; 5]| {
        let _ = write!(out, "<div style=\"{style}\">");
        for (cell, width) in cells.iter().zip(WIDTHS) {
            let _ = write!(
                out,
                "<span style=\"display:inline-block;width:{width}%;overflow:hidden;\
                 text-overflow:ellipsis;vertical-align:top\">{cell}</span>"
            );
        }
        *out += "</div>";
    };
    line(
        out,
        &format!("font-weight:bold;border-bottom:2px solid {GRAY}"),
        ["variable", "kind", "devices", "all copies", "values"].map(str::to_owned),
    );
    for row in rows {
        let name = match row.variables {
            1 => String::new(),
            many => format!(
                " <span style=\"{MUTED}\">{}</span>",
                text::count(many, "variable")
            ),
        };
        let values = match row.values {
            Values::Changed | Values::Some => {
                format!(
                    "<b style=\"border-bottom:2px solid {AMBER}\">{}</b>",
                    row.values.word()
                )
            }
            Values::Same | Values::Incomparable => {
                format!("<span style=\"{MUTED}\">{}</span>", row.values.word())
            }
        };
        line(
            out,
            &format!("padding:2px 0;border-bottom:1px solid {GRAY_TINT}"),
            [
                format!("<span style=\"{CODE}\">{}</span>{name}", escape(&row.name)),
                change(row, |side| side.kind.to_owned()),
                change(row, |side| side.devices.clone()),
                change(row, |side| bytes(side.bytes)),
                values,
            ],
        );
    }
    *out += "</div></div>";
}

/// `Local → Mirrored`; what is as it was stands once, and pale.
fn change(row: &Pair, of: impl Fn(&Side) -> String) -> String {
    let text = |side: &Option<Side>| {
        side.as_ref()
            .map_or("–".to_owned(), |side| escape(&of(side)))
    };
    let (before, after) = (text(&row.before), text(&row.after));
    match before == after {
        true => format!("<span style=\"{MUTED}\">{after}</span>"),
        false => format!("{before} → <b>{after}</b>"),
    }
}
