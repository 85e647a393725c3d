//! The table of `%vars`.

use serde_json::Value;
use stratoscope_render::html::{data_table, escape};
use stratoscope_wire::MimeBundle;

use stratoscope_session::Variable;

/// Where the text of a column stands; numbers on the right.
const SIDES: [&str; 5] = ["left", "left", "right", "left", "left"];

/// Literal, since a widget has no style sheet for tables.
fn style(side: &str) -> String {
    format!("text-align:{side};padding:2px 14px 2px 0")
}

/// The table, as text and as HTML.
pub fn table(variables: &[Variable]) -> MimeBundle {
    let cell = |it: &Variable| {
        it.cell
            .map_or(String::new(), |number| format!("In[{number}]"))
    };
    let rows: Vec<[String; 5]> = variables
        .iter()
        .map(|it| {
            [
                it.name.clone(),
                short(&it.type_name),
                it.bytes.map_or(String::new(), size),
                it.device.clone().unwrap_or_default(),
                cell(it),
            ]
        })
        .collect();
    let titles = ["name", "type", "size", "device", "made in"].map(str::to_owned);
    let mut widths = titles.clone().map(|title| title.chars().count());
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let mut plain = String::new();
    for row in std::iter::once(&titles).chain(&rows) {
        let line: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(text, width)| format!("{text:width$}"))
            .collect();
        plain.push_str(line.join("  ").trim_end());
        plain.push('\n');
    }
    let mut html = data_table("") + "<thead><tr>";
    for (title, side) in titles.iter().zip(SIDES) {
        html.push_str(&format!("<th style=\"{}\">{title}</th>", style(side)));
    }
    html.push_str("</tr></thead><tbody>");
    for row in &rows {
        html.push_str("<tr>");
        for (column, (text, side)) in row.iter().zip(SIDES).enumerate() {
            let text = match column {
                1 => format!("<code>{}</code>", escape(text)),
                _ => escape(text),
            };
            html.push_str(&format!("<td style=\"{}\">{text}</td>", style(side)));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    if variables.is_empty() {
        plain = "no variables yet".to_owned();
        html = "<em>no variables yet</em>".to_owned();
    }
    MimeBundle::from_iter([
        ("text/html".to_owned(), Value::from(html)),
        ("text/plain".to_owned(), Value::from(plain.trim_end())),
    ])
}

/// A type without the paths of our own crates: `ModelOf<Layers>`.
pub(crate) fn short(type_name: &str) -> String {
    let mut text = String::new();
    let mut rest = type_name;
    while let Some(at) = rest.find("stratoscope") {
        let is_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
        let begins = !rest[..at].ends_with(is_path);
        let end = rest[at..].find(|it| !is_path(it));
        let end = end.map_or(rest.len(), |end| at + end);
        let path = &rest[at..end];
        text += &rest[..at];
        text += match path.rsplit("::").next() {
            Some(name) if begins => name,
            _ => path,
        };
        rest = &rest[end..];
    }
    text + rest
}

/// `24 B`, `1.5 KiB`
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{value:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_our_own_are_named_without_their_paths() {
        for (full, expected) in [
            (
                "ModelOf<stratoscope::train::sequential::Layers>",
                "ModelOf<Layers>",
            ),
            ("Vec<stratoscope_models::Summary>", "Vec<Summary>"),
            (
                "stratoscope::train::ModelOf<a::B, stratoscope::C>",
                "ModelOf<a::B, C>",
            ),
            ("a::stratoscope::B", "a::stratoscope::B"),
            ("größe::T", "größe::T"),
            ("stratoscope", "stratoscope"),
        ] {
            assert_eq!(short(full), expected);
        }
    }

    #[test]
    fn types_are_escaped_in_the_table() {
        let variable = Variable {
            name: "v".into(),
            type_name: "Vec<u8>".into(),
            cell: Some(2),
            bytes: Some(1536),
            device: None,
        };
        let table = table(&[variable]);
        assert_eq!(
            table["text/plain"],
            "name  type     size     device  made in\nv     Vec<u8>  1.5 KiB          In[2]"
        );
        let html = table["text/html"].as_str().expect("is text");
        assert!(html.contains("<code>Vec&lt;u8&gt;</code>"), "{html}");
    }
}
