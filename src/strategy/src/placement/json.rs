//! The report as JSON: its data, and what is worked out of it.

use serde_json::{Value, json};

use super::PlacementReport;

pub(super) fn value(report: &PlacementReport) -> Value {
    // The report has string keys and numbers only: it can always be written.
    let mut value = serde_json::to_value(report).unwrap_or_default();
    let totals: Vec<Value> = (0..report.devices.len())
        .map(|device| {
            let totals = report.device_totals(device);
            json!({ "weights": totals.weights, "slots": totals.slots, "sum": totals.sum() })
        })
        .collect();
    if let Value::Object(fields) = &mut value {
        fields.insert("verdict".to_owned(), report.verdict().into());
        fields.insert(
            "copies_are_equal".to_owned(),
            report.copies_are_equal().into(),
        );
        fields.insert(
            "variables_outside".to_owned(),
            report.variables_outside().into(),
        );
        fields.insert("device_totals".to_owned(), totals.into());
    }
    value
}
