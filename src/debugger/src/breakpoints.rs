//! Breakpoints in cells: they are kept and listed, and every answer says that they do not stop.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Why a breakpoint is not verified.
const NO_BREAKPOINTS: &str =
    "breakpoints in cells do not stop yet; a training run stops with `run.break_when(…)`";

/// More are refused.
const MOST: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub struct Breakpoints {
    /// Those that were set, by the path of their cell, as the front end has sent them.
    by_path: BTreeMap<String, Vec<Value>>,
    /// How many were ever set.
    count: u64,
}

impl Breakpoints {
    /// Removes all.
    pub fn clear(&mut self) {
        self.by_path.clear();
    }

    /// As `debugInfo` lists them.
    pub fn listed(&self) -> Value {
        let listed = self.by_path.iter();
        listed
            .map(|(path, all)| json!({"source": path, "breakpoints": all}))
            .collect()
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
        for breakpoint in wanted {
            let line = breakpoint["line"].as_u64();
            let line = line.ok_or("a breakpoint needs a `line`")?;
            self.count += 1;
            set.push(json!({
                "id": self.count, "verified": false, "line": line, "source": {"path": path},
                "message": NO_BREAKPOINTS, "reason": "failed",
            }));
        }
        if set.is_empty() {
            self.by_path.remove(path);
        } else if self.by_path.len() >= MOST {
            return Err("there are too many cells with breakpoints".to_owned());
        } else {
            self.by_path.insert(path.to_owned(), wanted.clone());
        }
        Ok(json!({"breakpoints": set}))
    }
}
