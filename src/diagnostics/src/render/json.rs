//! The diagnostic as data, for front ends that draw it themselves.

use serde_json::{Value, json as value};

use super::fix::line_change;
use super::place::position;
use super::{Source, resolved};
use crate::{Diagnostic, Fix, Place};

/// The MIME type of [`json`].
pub const MIME: &str = "application/vnd.stratoscope.diagnostic+json";

/// All fields of the diagnostic, with `version`, the name of the `cell` and, for each label, its lines and
/// columns (from 1, columns in characters; `null` for a label outside the cell). The `changes` are, for each fix, the lines
/// that it replaces; those of the related diagnostics are in `related_changes`.
pub fn json(diagnostic: &Diagnostic, source: &Source<'_>) -> Value {
    let diagnostic = resolved(diagnostic, source);
    let positions: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| match label.place {
            Place::Span(span) => {
                let (line, column) = position(source.text, span.start);
                let (end_line, end_column) = position(source.text, span.end);
                value!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column })
            }
            _ => Value::Null,
        })
        .collect();
    let related = diagnostic.related.iter();
    let related: Vec<Value> = related.map(|it| changes(&it.fixes, source.text)).collect();
    let mut data = value!({
        "version": 1,
        "cell": source.name,
        "positions": positions,
        "changes": changes(&diagnostic.fixes, source.text),
        "related_changes": related,
    });
    // Plain structs with string keys: serialization has no way to fail.
    if let (Some(data), Ok(Value::Object(fields))) =
        (data.as_object_mut(), serde_json::to_value(&diagnostic))
    {
        data.extend(fields);
    }
    data
}

/// For each fix, where its lines begin (in UTF-16 code units, in which JavaScript counts), what they are, and what replaces
/// them; `null` for a fix in words.
fn changes(fixes: &[Fix], text: &str) -> Value {
    let change = |fix: &Fix| {
        let found = line_change(text, fix)?;
        let start = text[..found.start].encode_utf16().count();
        Some(value!({ "start": start, "before": found.before, "after": found.after }))
    };
    fixes.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    #[test]
    fn the_value_round_trips_and_has_positions() {
        let diagnostic = Diagnostic::new("SC0101", Severity::Error, "x")
            .label(Place::span(5, 6), "a")
            .label(Place::file("t.tsv", Some(3)), "b");
        let data = json(
            &diagnostic,
            &Source {
                text: "äö\nx",
                name: "Cell In[1]",
            },
        );
        assert_eq!(
            data["positions"][0],
            value!({"line": 2, "column": 1, "end_line": 2, "end_column": 2})
        );
        assert_eq!(data["positions"][1], Value::Null);
        assert_eq!(data["code"], "SC0101");
        assert_eq!(data["changes"], value!([]));
        let back: Diagnostic = serde_json::from_value(data).expect("the fields are still there");
        assert_eq!(back, diagnostic);
    }

    #[test]
    fn the_lines_of_each_fix_are_there() {
        let other = Diagnostic::new("SC0102", Severity::Error, "y").fix_edit(
            "z",
            Place::span(0, 0),
            "%%scope s\n",
        );
        let diagnostic = Diagnostic::new("SC0101", Severity::Error, "x")
            .fix_edit("a", Place::span(10, 13), "e")
            .fix("in words")
            .related(other);
        let text = "// 😀\nf(los)?;";
        let source = Source { text, name: "c" };
        let data = json(&diagnostic, &source);
        let change = value!({"start": 6, "before": "f(los)?;", "after": "f(e)?;"});
        assert_eq!(data["changes"], value!([change, null]));
        let first = value!({"start": 0, "before": "// 😀", "after": "%%scope s\n// 😀"});
        assert_eq!(data["related_changes"], value!([[first]]));
    }
}
