//! The diagnostic as data, for front ends that draw it themselves.

use serde_json::{Value, json as value};

use super::place::position;
use super::{Source, resolved};
use crate::{Diagnostic, Place};

/// The MIME type of [`json`].
pub const MIME: &str = "application/vnd.stratoscope.diagnostic+json";

/// All fields of the diagnostic, with `version`, the name of the `cell` and, for each label, its lines and
/// columns (from 1, columns in characters; `null` for a label outside the cell).
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
    let mut data = value!({ "version": 1, "cell": source.name, "positions": positions });
    // Plain structs with string keys: serialization has no way to fail.
    if let (Some(data), Ok(Value::Object(fields))) =
        (data.as_object_mut(), serde_json::to_value(&diagnostic))
    {
        data.extend(fields);
    }
    data
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
        let back: Diagnostic = serde_json::from_value(data).expect("the fields are still there");
        assert_eq!(back, diagnostic);
    }
}
