//! Pieces of HTML that pages about data and models share: static, with inline styles, on a light and on a dark ground.

use std::fmt::Write;

use stratoscope_render::html::{DATA_TABLE_STYLE, TITLE_STYLE, data_table, escape, prose};

const CELL: &str = "padding:3px 12px;border-bottom:1px solid #80808059;vertical-align:top";
const HEAD: &str = "padding:3px 12px;font-weight:600;border-bottom:1px solid #808080b3";

/// The heading of a value.
pub fn title(title: &str) -> String {
    format!("<div style=\"{TITLE_STYLE}\">{}</div>", escape(title))
}

/// A sentence; text between backticks is code.
pub fn sentence(text: &str) -> String {
    format!("<div style=\"font-size:13px\">{}</div>", prose(text))
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

impl Align {
    fn style(self) -> &'static str {
        match self {
            Self::Left => "text-align:left",
            Self::Right => "text-align:right",
        }
    }
}

/// A table; the first cell of a row is its heading. Rows in `bold` are to be seen among the others.
pub fn table(head: &[(String, Align)], rows: &[Vec<String>], bold: Option<usize>) -> String {
    let mut html = data_table(DATA_TABLE_STYLE) + "<thead><tr>";
    // Writing to a string cannot fail.
    for (name, align) in head {
        let (style, name) = (align.style(), escape(name));
        let _ = write!(
            html,
            "<th scope=\"col\" style=\"{HEAD};{style}\">{name}</th>"
        );
    }
    html.push_str("</tr></thead><tbody>");
    for (index, row) in rows.iter().enumerate() {
        let weight = match bold {
            Some(bold) if bold == index => "600",
            _ => "400",
        };
        html.push_str("<tr>");
        for (column, (cell, (_, align))) in row.iter().zip(head).enumerate() {
            let tag = if column == 0 {
                "th scope=\"row\""
            } else {
                "td"
            };
            let end = if column == 0 { "th" } else { "td" };
            let (style, cell) = (align.style(), escape(cell));
            let _ = write!(
                html,
                "<{tag} style=\"{CELL};font-weight:{weight};{style}\">{cell}</{end}>"
            );
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

/// The same as text: columns as wide as their widest cell.
pub fn table_text(head: &[(String, Align)], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| width(cell)).max().unwrap_or(0);
            widest.max(width(&head[column].0))
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &String>| {
        let mut line = String::new();
        for ((cell, &own), (_, align)) in cells.zip(&widths).zip(head) {
            let gap = " ".repeat(own - width(cell));
            line += &match align {
                Align::Left => format!("{cell}{gap}  "),
                Align::Right => format!("{gap}{cell}  "),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut head.iter().map(|(name, _)| name));
    rows.iter().for_each(|row| text += &line(&mut row.iter()));
    text
}

/// The heads of columns: the first ones as text, the others as numbers.
pub fn heads<S: AsRef<str>>(left: usize, names: &[S]) -> Vec<(String, Align)> {
    let align = |index: usize| {
        if index < left {
            Align::Left
        } else {
            Align::Right
        }
    };
    let names = names.iter().enumerate();
    names
        .map(|(index, name)| (name.as_ref().to_owned(), align(index)))
        .collect()
}
