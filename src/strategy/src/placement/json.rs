//! The report as JSON: the rows that are drawn, with numbers as numbers. What many rows share (why a
//! kind is what it is, who made them) is written once.

use serde_json::{Map, Value, json};

use super::rows::Sheet;
use super::timeline::Timeline;
use super::{PlacementReport, VariableRow};

/// The version of this layout: a program that reads it looks here first.
const VERSION: u32 = 2;

pub(super) fn value(report: &PlacementReport, sheet: &Sheet<'_>) -> Value {
    let origin = |row: &VariableRow| {
        let made = row.origin.to_string();
        sheet.origins.iter().position(|origin| *origin == made)
    };
    let variables: Vec<Value> = report
        .variables
        .iter()
        .map(|row| variable(report, row, origin(row)))
        .collect();
    let parts: Vec<Value> = sheet
        .parts
        .iter()
        .map(|part| json!({ "name": part.name, "state": part.state }))
        .collect();
    let devices: Vec<Value> = sheet
        .devices
        .iter()
        .map(|line| {
            // A column has string keys and numbers only: it can always be written.
            let mut value = serde_json::to_value(line.column).unwrap_or_default();
            value["bytes"] = json!(line.parts);
            value["sum"] = json!(line.sum);
            value
        })
        .collect();
    let kinds: Vec<Value> = sheet
        .kinds
        .iter()
        .map(|kind| {
            json!({ "kind": kind.title, "variables": kind.variables, "meaning": kind.meaning, "why": kind.why })
        })
        .collect();
    let collectives: Vec<Value> = sheet.timelines.iter().map(collective).collect();
    json!({
        "version": VERSION,
        "title": report.title,
        "verdict": sheet.verdict,
        "copies_are_equal": report.copies_are_equal(),
        "variables_outside": report.variables_outside(),
        "strategy": report.strategy,
        "reality": sheet.reality,
        "parts": parts,
        "devices": devices,
        "kinds": kinds,
        "origins": sheet.origins,
        "variables": variables,
        "activations": report.shown_activations(),
        "collectives": collectives,
        "totals": report.totals,
    })
}

fn variable(report: &PlacementReport, row: &VariableRow, origin: Option<usize>) -> Value {
    let checksums: Vec<Value> = (0..report.devices.len())
        .map(|device| json!(row.on(device).map(|copy| copy.checksum)))
        .collect();
    let mut fields = Map::from_iter([
        ("name".to_owned(), json!(row.name)),
        ("kind".to_owned(), json!(row.kind.title())),
        ("shape".to_owned(), json!(row.shape)),
        ("dtype".to_owned(), json!(row.dtype)),
        ("bytes".to_owned(), json!(row.bytes)),
        ("trainable".to_owned(), json!(row.trainable)),
        ("origin".to_owned(), json!(origin)),
        ("checksums".to_owned(), json!(checksums)),
    ]);
    if row.outside {
        fields.insert("outside".to_owned(), json!(true));
    }
    if row.beside {
        fields.insert("of_metrics".to_owned(), json!(true));
    }
    if !row.slots.is_empty() {
        fields.insert("slots".to_owned(), json!(row.slots));
    }
    if row.copies.iter().any(|copy| copy.rows.is_some()) {
        let rows: Vec<Value> = (0..report.devices.len())
            .map(|device| {
                let rows = row.on(device).and_then(|copy| copy.rows.as_ref());
                json!(rows.map(|rows| [rows.start, rows.end]))
            })
            .collect();
        fields.insert("rows".to_owned(), json!(rows));
        if let Some(copy) = row.copies.iter().find(|copy| copy.axis > 0) {
            fields.insert("axis".to_owned(), json!(copy.axis));
        }
    }
    Value::Object(fields)
}

fn collective(timeline: &Timeline) -> Value {
    // As the columns: string keys and numbers only.
    let mut value = serde_json::to_value(timeline).unwrap_or_default();
    value["hop_count"] = json!(timeline.hop_count());
    value["moved_bytes"] = json!(timeline.moved_bytes());
    value
}
