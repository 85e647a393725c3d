//! Readers of files with arguments that pandas has: `Dataset::csv("a.csv", sep = "|")`.

use stratoscope_render::text;

use super::plain::Plain;
use crate::{Edit, Fix, FixKind, Place};

/// A reader of files with its columns as named values: `Dataset::csv("a.csv", text = "review")`.
pub(super) fn with_columns(plain: &Plain) -> Option<Fix> {
    let of = plain
        .path
        .as_deref()
        .filter(|it| matches!(*it, "Dataset" | "Stream"))?;
    let format = plain.name.trim_end_matches("_with");
    let format = format.rsplit('_').next().unwrap_or(format);
    let reader = match format {
        "csv" | "tsv" | "jsonl" | "parquet" | "arrow" => format,
        "json" => "jsonl",
        _ => return None,
    };
    let [path] = plain.operands.as_slice() else {
        return None;
    };
    let mut columns = String::new();
    for argument in &plain.named {
        let setting = match argument.name.as_str() {
            "text" | "texts" | "text_column" | "text_col" | "x" => "text",
            "pair" | "text_pair" | "pair_column" => "pair",
            "label" | "labels" | "label_column" | "label_col" | "target" | "y" => "label",
            "weight" | "value" | "encoding" => &argument.name,
            // It is read from the header.
            "sep" | "delimiter" | "separator" | "engine" | "low_memory" | "lines" => continue,
            _ => return Some(in_words(of, reader, &path.text)),
        };
        columns += &format!(".{setting}({})", argument.value);
    }
    let inner = match columns.is_empty() {
        true => format!("{reader}({})", path.text),
        false => format!("{reader}_with({}, &Columns::new(){columns})", path.text),
    };
    Some(Fix {
        kind: FixKind::Change,
        title: text::excerpt(&format!("{of}::{inner}"), 76),
        edits: vec![Edit {
            place: Place::span(plain.name_span.start, plain.span.end),
            replacement: inner,
        }],
    })
}

/// What a reader has in place of the arguments of pandas.
fn in_words(of: &str, reader: &str, path: &str) -> Fix {
    Fix {
        kind: FixKind::Change,
        title: format!(
            "{of}::{reader}_with({path}, &Columns::new())?`; `Columns` names columns and the encoding, `take(10)` behind it keeps \
             the first rows, and the separator is read from the header; `?Columns"
        ),
        edits: Vec::new(),
    }
}
