//! A profile as Chrome trace events. Source: "Trace Event Format", catapult-project; complete events (`ph: "X"`) with microseconds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Something that happened from one time to another.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// What.
    pub name: String,
    /// Whose: 0 is the host, replica n is n + 1.
    pub lane: usize,
    /// The name of the lane.
    pub lane_name: String,
    /// Seconds since the profile began.
    pub begin: f64,
    /// How long it took.
    pub seconds: f64,
}

/// All of them as a file.
pub(super) fn json(events: &[TraceEvent]) -> String {
    const MICROSECONDS: f64 = 1e6;
    let lanes: BTreeMap<usize, &str> = events
        .iter()
        .map(|it| (it.lane, it.lane_name.as_str()))
        .collect();
    let names = lanes.into_iter().map(|(lane, name)| {
        json!({ "ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": { "name": name } })
    });
    let timed = events.iter().map(|it| {
        json!({
            "ph": "X", "pid": 1, "tid": it.lane, "name": it.name, "cat": "step",
            "ts": it.begin * MICROSECONDS, "dur": it.seconds * MICROSECONDS,
        })
    });
    let all: Vec<Value> = names.chain(timed).collect();
    json!({ "displayTimeUnit": "ms", "traceEvents": all }).to_string()
}
