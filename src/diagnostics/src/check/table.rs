//! The table of arguments of one call: what was given beside what was expected.

use super::calls::{Call, Chain};
use crate::arguments::{self, Argument, REQUIRED};
use crate::{ArgumentRow, ArgumentState};
use stratoscope_render::text;

/// The most characters of a value that the table shows.
const MOST: usize = 64;

/// Every argument of the call's table; a name that it does not know stands below the argument that
/// `meant` takes it for, or at the end. `invalid` holds the indices of arguments that are at fault.
pub(super) fn rows(
    call: &Call,
    invalid: &[usize],
    meant: impl Fn(&str) -> Option<String>,
) -> Vec<ArgumentRow> {
    let Some(table) = arguments::call(&call.name) else {
        return Vec::new();
    };
    let mut rows: Vec<ArgumentRow> = Vec::new();
    for argument in table.arguments {
        let mut written =
            (0..call.arguments.len()).filter(|&index| call.arguments[index].name == argument.name);
        let at_fault = written.clone().any(|index| invalid.contains(&index));
        let value = written
            .next_back()
            .map(|index| call.arguments[index].value.as_str());
        rows.push(row(argument, value, at_fault));
    }
    for unknown in &call.arguments {
        if arguments::find(table.arguments, &unknown.name).is_some() {
            continue;
        }
        let below = meant(&unknown.name)
            .and_then(|name| rows.iter().position(|row| row.name == name))
            .map_or(rows.len(), |index| index + 1);
        let row = ArgumentRow {
            name: unknown.name.clone(),
            expects: "unknown name".to_owned(),
            default: "–".to_owned(),
            given: Some(text::excerpt(&unknown.value, MOST)),
            state: ArgumentState::Invalid,
        };
        rows.insert(below, row);
    }
    rows
}

/// The arguments of an optimizer beside what its methods set; `invalid` holds the names at fault.
pub(super) fn optimizer_rows(chain: &Chain, invalid: &[String]) -> Vec<ArgumentRow> {
    let Some(optimizer) = arguments::optimizer(&chain.optimizer) else {
        return Vec::new();
    };
    let set = |name: &str| {
        chain
            .methods
            .iter()
            .rev()
            .find(|method| method.name == name)
    };
    optimizer
        .arguments
        .iter()
        .map(|argument| {
            let value = set(argument.name).map(|method| method.value.as_str());
            let at_fault = invalid.iter().any(|name| name == argument.name);
            row(argument, value, at_fault)
        })
        .collect()
}

fn row(argument: &Argument, value: Option<&str>, at_fault: bool) -> ArgumentRow {
    let missing = value.is_none() && argument.default == REQUIRED;
    ArgumentRow {
        name: argument.name.to_owned(),
        expects: argument.expects.to_owned(),
        default: argument.default.to_owned(),
        given: value.map(|value| text::excerpt(value, MOST)),
        state: match value {
            _ if at_fault || missing => ArgumentState::Invalid,
            Some(_) => ArgumentState::Given,
            None => ArgumentState::Default,
        },
    }
}
