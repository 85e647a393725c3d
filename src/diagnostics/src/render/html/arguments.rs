//! The table of parameters beside what was passed.

use super::{CODE_FONT, GRAY, GRAY_TINT, GREEN, GREEN_TINT, MUTED, RED, RED_TINT, escape, prose};
use crate::render::text::state_word;
use crate::{ArgumentRow, ArgumentState};

const CELL: &str =
    "text-align:left;vertical-align:top;padding:2px 12px 2px 6px;border:none;white-space:normal";

pub(super) fn table(out: &mut String, rows: &[ArgumentRow]) {
    if rows.is_empty() {
        return;
    }
    *out += &format!(
        "<div style=\"overflow-x:auto\"><table style=\"border-collapse:collapse;margin:10px 0 2px 0;font-size:0.92em\"><thead>\
         <tr style=\"border-bottom:1px solid {GRAY}\">"
    );
    for title in ["argument", "", "passed", "expects", "default"] {
        *out += &format!("<th style=\"{CELL};font-weight:bold\">{title}</th>");
    }
    *out += "</tr></thead><tbody>";
    for row in rows {
        let (line, tint) = match row.state {
            ArgumentState::Given => (GREEN, GREEN_TINT),
            ArgumentState::Default => (GRAY, GRAY_TINT),
            ArgumentState::Invalid => (RED, RED_TINT),
        };
        let (behind, weight) = match row.state {
            ArgumentState::Invalid => (format!(";background-color:{RED}1f"), ";font-weight:bold"),
            _ => (String::new(), ""),
        };
        let given = match &row.given {
            Some(given) => format!("<span style=\"{CODE_FONT}\">{}</span>", escape(given)),
            None => "–".to_owned(),
        };
        *out += &format!(
            "<tr><td style=\"{CELL}{behind}\"><span style=\"{CODE_FONT}{weight}\">{}</span></td>\
             <td style=\"{CELL}{behind}\"><span style=\"background-color:{tint};border:1px solid {line};\
             border-radius:3px;padding:0 5px;font-size:0.9em\">{}</span></td>\
             <td style=\"{CELL}{behind};overflow-wrap:break-word\">{given}</td>\
             <td style=\"{CELL}{behind}\">{}</td><td style=\"{CELL}{behind}\"><span style=\"{MUTED}\">{}</span></td></tr>",
            escape(&row.name),
            state_word(row),
            prose(&row.expects),
            prose(&row.default)
        );
    }
    *out += "</tbody></table></div>";
}
