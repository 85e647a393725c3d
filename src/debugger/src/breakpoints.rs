//! Breakpoints in cells: they are kept by the path of their cell, also before the cell has run. What stops is a debugger for
//! machine code; without one, every answer says that they do not stop.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::native::HitCondition;

/// What else stops.
const OTHERWISE: &str = "a training run stops with `run.break_when(…)`";

/// More are refused.
const MOST: usize = 10_000;
/// A longer condition or message is refused.
const MAX_TEXT_BYTES: usize = 2000;

/// A breakpoint that stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Its number; numbers are not given twice.
    pub id: u64,
    /// The path of its cell.
    pub path: String,
    /// The line as typed, counted from 1.
    pub line: u32,
    /// Stops only where this holds.
    pub condition: Option<String>,
    /// Stops only at some hits.
    pub hits: Option<HitCondition>,
    /// It does not stop but prints this.
    pub message: Option<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Breakpoints {
    /// Those that were set, by the path of their cell: as the front end has sent them.
    by_path: BTreeMap<String, Vec<Value>>,
    /// Those of them that can stop.
    valid: Vec<Breakpoint>,
    /// How many were ever set.
    count: u64,
    /// Why none can stop.
    pub missing: Option<String>,
}

impl Breakpoints {
    /// Removes all.
    pub fn clear(&mut self) {
        self.by_path.clear();
        self.valid.clear();
    }

    /// As `debugInfo` lists them.
    pub fn listed(&self) -> Value {
        let listed = self.by_path.iter();
        listed
            .map(|(path, all)| json!({"source": path, "breakpoints": all}))
            .collect()
    }

    /// Whether a cell has one, even if it cannot stop.
    pub fn are_in(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Those that can stop.
    pub fn valid(&self) -> &[Breakpoint] {
        &self.valid
    }

    /// Replaces those of a cell; returns the body of the reply.
    ///
    /// # Errors
    /// The arguments are not those of `setBreakpoints`; the reason.
    pub fn set(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let source = arguments.get("source");
        let path = source.and_then(|source| source["path"].as_str());
        let path = path.ok_or("`setBreakpoints` needs the `path` of a cell as its `source`")?;
        let none = Vec::new();
        let wanted = match arguments.get("breakpoints") {
            None | Some(Value::Null) => &none,
            Some(Value::Array(wanted)) if wanted.len() <= MOST => wanted,
            Some(_) => return Err(format!("`breakpoints` is a list of at most {MOST}")),
        };
        let mut set = Vec::with_capacity(wanted.len());
        let mut valid = Vec::new();
        for breakpoint in wanted {
            let line = breakpoint["line"].as_u64();
            let line = line.ok_or("a breakpoint needs a `line`")?;
            self.count += 1;
            let read = match &self.missing {
                Some(missing) => Err(format!("{missing}; {OTHERWISE}")),
                None => read(breakpoint, self.count, path, line),
            };
            let mut answer = json!({"id": self.count, "verified": read.is_ok(), "line": line, "source": {"path": path}});
            match read {
                Ok(breakpoint) => valid.push(breakpoint),
                Err(reason) => {
                    answer["message"] = reason.into();
                    answer["reason"] = "failed".into();
                }
            }
            set.push(answer);
        }
        if set.is_empty() {
            self.by_path.remove(path);
        } else if self.by_path.len() >= MOST {
            return Err("there are too many cells with breakpoints".to_owned());
        } else {
            self.by_path.insert(path.to_owned(), wanted.clone());
        }
        self.valid.retain(|it| it.path != path);
        self.valid.extend(valid);
        Ok(json!({"breakpoints": set}))
    }
}

/// Reads a breakpoint of `setBreakpoints`.
fn read(wanted: &Value, id: u64, path: &str, line: u64) -> Result<Breakpoint, String> {
    let text = |name: &str| {
        let text = wanted[name].as_str().unwrap_or_default().trim();
        match text.len() {
            0 => Ok(None),
            1..=MAX_TEXT_BYTES => Ok(Some(text)),
            _ => Err(format!("`{name}` is longer than {MAX_TEXT_BYTES} bytes")),
        }
    };
    Ok(Breakpoint {
        id,
        path: path.to_owned(),
        line: u32::try_from(line).map_err(|_| "no cell has so many lines")?,
        condition: text("condition")?.map(str::to_owned),
        hits: text("hitCondition")?.map(HitCondition::parse).transpose()?,
        message: text("logMessage")?.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(breakpoints: &mut Breakpoints, path: &str, all: Value) -> Value {
        let arguments = json!({"source": {"path": path}, "breakpoints": all});
        let arguments = arguments.as_object().expect("an object");
        breakpoints.set(arguments).expect("they are well-formed")["breakpoints"].clone()
    }

    #[test]
    fn those_of_a_cell_are_replaced() {
        let mut breakpoints = Breakpoints::default();
        let all = json!([{"line": 2, "condition": "x > 1"}, {"line": 3, "hitCondition": "% 2", "logMessage": "{x}"}]);
        assert_eq!(set(&mut breakpoints, "a", all)[1]["verified"], true);
        set(&mut breakpoints, "b", json!([{"line": 1}]));
        let lines =
            |of: &Breakpoints| -> Vec<u32> { of.valid().iter().map(|it| it.line).collect() };
        assert_eq!(lines(&breakpoints), [2, 3, 1]);
        assert_eq!(breakpoints.valid()[0].condition.as_deref(), Some("x > 1"));
        assert_eq!(breakpoints.valid()[1].hits, Some(HitCondition::Every(2)));
        set(&mut breakpoints, "a", json!([]));
        assert_eq!(lines(&breakpoints), [1]);
        assert_eq!(breakpoints.listed().as_array().expect("a list").len(), 1);
    }

    #[test]
    fn what_cannot_stop_has_a_reason() {
        let mut breakpoints = Breakpoints::default();
        let long = "x".repeat(MAX_TEXT_BYTES + 1);
        let all = json!([{"line": 1, "condition": long}, {"line": 1, "hitCondition": "often"},
            {"line": 1, "logMessage": long}, {"line": u64::MAX}]);
        let answers = set(&mut breakpoints, "a", all);
        for answer in answers.as_array().expect("a list") {
            assert!(
                answer["verified"] == false && answer["message"].is_string(),
                "{answer}"
            );
        }
        assert!(breakpoints.valid().is_empty());
        breakpoints.missing = Some("no debugger".to_owned());
        let answers = set(&mut breakpoints, "a", json!([{"line": 1}]));
        let message = answers[0]["message"].as_str().unwrap_or_default();
        assert!(message.contains("no debugger") && message.contains("break_when"));
        assert!(breakpoints.are_in("a") && !breakpoints.are_in("b"));
        assert!(breakpoints.valid().is_empty());
        set(&mut breakpoints, "a", json!([]));
        assert!(!breakpoints.are_in("a"));
    }
}
