//! What the protocol announces, and how the arguments of a request are read.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::filters;

/// The requests that are answered, for the message about another one.
pub const COMMANDS: &[&str] = &[
    "initialize",
    "attach",
    "configurationDone",
    "disconnect",
    "terminate",
    "debugInfo",
    "inspectVariables",
    "richInspectVariables",
    "variables",
    "evaluate",
    "threads",
    "stackTrace",
    "scopes",
    "modules",
    "dumpCell",
    "source",
    "setBreakpoints",
    "setExceptionBreakpoints",
    "setFunctionBreakpoints",
    "dataBreakpointInfo",
    "setDataBreakpoints",
    "pause",
    "next",
    "stepIn",
    "stepOut",
    "continue",
    "stepBack",
    "reverseContinue",
];

/// Requests about a run of training.
pub const OF_RUNS: &[&str] = &[
    "pause",
    "next",
    "stepIn",
    "stepOut",
    "continue",
    "stepBack",
    "reverseContinue",
    "goto",
    "restartFrame",
];

/// What `initialize` announces.
pub fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true, "supportsEvaluateForHovers": true,
        "supportsModulesRequest": true, "supportsTerminateRequest": true,
        "supportsConditionalBreakpoints": true, "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true, "supportsStepBack": true, "supportsSetVariable": false,
        "supportsDataBreakpoints": true, "supportsExceptionFilterOptions": true, "exceptionBreakpointFilters": filters::announced(),
    })
}

/// A text among the arguments.
pub fn text(arguments: &Map<String, Value>, name: &str) -> Result<String, String> {
    let found = arguments.get(name).and_then(Value::as_str);
    Ok(found
        .ok_or_else(|| format!("`{name}` is to be a text"))?
        .to_owned())
}

/// A number among the arguments; 0 where there is none.
pub fn whole(arguments: &Map<String, Value>, name: &str) -> Result<usize, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(number) => usize::deserialize(number)
            .map_err(|_| format!("`{name}` is to be a whole number, at least 0")),
    }
}
