//! `%history`: the cells that ran before, also in earlier sessions.

use serde_json::Value;
use stratoscope_render::html::{data_table, escape};
use stratoscope_render::text::count;
use stratoscope_session::{FoundCells, HistoryChange, PastCell, PastCells};
use stratoscope_wire::MimeBundle;

use super::request::Invalid;

/// Cells that are shown where no number is given.
const USUAL: usize = 20;

/// What `%history` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryRequest {
    /// `%history`, `%history -n 50 TEXT`
    Find {
        /// What the text of a cell must have.
        pattern: Option<String>,
        /// How many cells are shown, the last ones.
        most: usize,
    },
    /// `%history off`, `%history on`, `%history clear`
    Change(HistoryChange),
}

impl HistoryRequest {
    /// Reads what stands behind the name.
    pub fn of(operand: &str) -> Result<Self, Invalid> {
        let change = match operand {
            "on" => Some(HistoryChange::On),
            "off" => Some(HistoryChange::Off),
            "clear" => Some(HistoryChange::Clear),
            _ => None,
        };
        if let Some(change) = change {
            return Ok(Self::Change(change));
        }
        let (mut most, mut pattern) = (USUAL, operand);
        if let Some(rest) = operand.strip_prefix("-n") {
            let (number, text) = rest
                .trim_start()
                .split_once(char::is_whitespace)
                .unwrap_or((rest.trim_start(), ""));
            most = number
                .parse()
                .ok()
                .filter(|most| *most > 0)
                .ok_or_else(|| {
                    Invalid::new(
                        "UnknownOption",
                        "how many cells? `%history -n 50`, `%history -n 50 TEXT`",
                    )
                })?;
            pattern = text.trim_start();
        } else if operand.starts_with('-') {
            let message = format!(
                "`%history` has no `{operand}`; there is `%history`, `%history TEXT`, `%history -n 50 TEXT`, \
                 `%history off`, `%history on`, `%history clear`"
            );
            return Err(Invalid::new("UnknownOption", message));
        }
        let pattern = Some(pattern.to_owned()).filter(|it| !it.is_empty());
        Ok(Self::Find { pattern, most })
    }
}

/// What is shown; `asking` is the number of the cell. An error says why it cannot be answered.
pub fn answer(
    request: &HistoryRequest,
    cells: Option<&dyn PastCells>,
    asking: u64,
) -> Result<MimeBundle, String> {
    let Some(cells) = cells else {
        return Err("this front end keeps no history; a notebook does".to_owned());
    };
    Ok(match request {
        HistoryRequest::Find { pattern, most } => {
            let found = cells.find(pattern.as_deref(), *most, asking);
            show(&found, pattern.as_deref())
        }
        HistoryRequest::Change(change) => {
            cells.change(*change)?;
            let text = match change {
                HistoryChange::On => "cells are kept for later sessions",
                HistoryChange::Off => {
                    "cells are not kept for later sessions, until `%history on` or a restart"
                }
                HistoryChange::Clear => "every cell is forgotten, those of all sessions",
            };
            bundle(text.to_owned(), format!("<p>{text}</p>"))
        }
    })
}

fn bundle(plain: String, html: String) -> MimeBundle {
    MimeBundle::from_iter([
        ("text/html".to_owned(), Value::from(html)),
        ("text/plain".to_owned(), Value::from(plain)),
    ])
}

fn show(found: &FoundCells, pattern: Option<&str>) -> MimeBundle {
    let places: Vec<String> = found.cells.iter().map(place).collect();
    let width = places.iter().map(String::len).max().unwrap_or(0);
    let margin = format!("\n{:width$}  ", "");
    let mut plain = String::new();
    let mut rows = String::new();
    for (cell, place) in found.cells.iter().zip(&places) {
        let code = cell.code.trim_end();
        plain += &format!("{place:width$}  {}\n", code.replace('\n', &margin));
        // Literal, as in the table of `%vars`.
        let style = "text-align:left;vertical-align:top;padding:2px 14px 2px 0";
        rows += &format!(
            "<tr><td style=\"{style}\">{place}</td><td style=\"{style}\"><pre style=\"margin:0\">{}</pre></td></tr>",
            escape(code)
        );
    }
    let note = note(found, pattern);
    let html = format!(
        "{}<thead><tr><th>cell</th><th style=\"text-align:left\">text</th></tr></thead><tbody>{rows}</tbody></table>",
        data_table("")
    );
    let table = if rows.is_empty() { String::new() } else { html };
    bundle(plain + &note, format!("{table}<p>{}</p>", escape(&note)))
}

/// `3/12`: the 12th cell of session 3.
fn place(cell: &PastCell) -> String {
    match cell.session {
        0 => cell.number.to_string(),
        session => format!("{session}/{}", cell.number),
    }
}

/// How many there are, and where they are kept.
fn note(found: &FoundCells, pattern: Option<&str>) -> String {
    let shown = found.cells.len();
    let what = pattern.map_or(String::new(), |it| format!(" with `{it}`"));
    let mut note = match found.total {
        0 if what.is_empty() => "no cell ran before".to_owned(),
        0 => format!("no cell{what}"),
        total if total > shown => {
            format!(
                "the last {shown} of {}{what}; `%history -n {total}` shows all",
                count(total, "cell")
            )
        }
        total => format!("{}{what}", count(total, "cell")),
    };
    note += &match (&found.notice, &found.kept_in) {
        (Some(notice), _) => format!("; {notice}"),
        (None, Some(path)) => format!("; kept in {}", path.display()),
        (None, None) => "; cells are not kept for later sessions".to_owned(),
    };
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(operand: &str, pattern: Option<&str>, most: usize) {
        let pattern = pattern.map(str::to_owned);
        let expected = Ok(HistoryRequest::Find { pattern, most });
        assert_eq!(HistoryRequest::of(operand), expected, "{operand}");
    }

    #[test]
    fn options_are_read() {
        check("", None, USUAL);
        check("fit!(model, data)", Some("fit!(model, data)"), USUAL);
        check("-n 5", None, 5);
        check("-n5  let x", Some("let x"), 5);
        check("office", Some("office"), USUAL);
        let clear = HistoryRequest::Change(HistoryChange::Clear);
        assert_eq!(HistoryRequest::of("clear"), Ok(clear));
        for wrong in ["-n", "-n 0", "-n x", "-g fit", "--n 3"] {
            let error = HistoryRequest::of(wrong).expect_err(wrong);
            assert_eq!(error.ename, "UnknownOption", "{wrong}");
        }
    }

    #[test]
    fn cells_are_a_table() {
        let cell = |session, number, code: &str| PastCell {
            session,
            number,
            code: code.to_owned(),
        };
        let mut found = FoundCells {
            cells: vec![cell(3, 12, "a < b"), cell(4, 1, "let x = 1;\nx\n")],
            total: 2,
            kept_in: Some("/x/history.jsonl".into()),
            notice: None,
        };
        let data = show(&found, None);
        assert_eq!(
            data["text/plain"],
            "3/12  a < b\n4/1   let x = 1;\n      x\n2 cells; kept in /x/history.jsonl"
        );
        let html = data["text/html"].as_str().expect("is text");
        assert!(html.contains(">a &lt; b</pre>"), "{html}");
        found.total = 9;
        let shown = show(&found, Some("b"));
        let plain = shown["text/plain"].as_str().expect("is text");
        assert!(plain.contains("the last 2 of 9 cells with `b`"), "{plain}");
        found.cells.clear();
        found.total = 0;
        found.kept_in = None;
        assert_eq!(
            show(&found, Some("zz"))["text/plain"],
            "no cell with `zz`; cells are not kept for later sessions"
        );
    }
}
