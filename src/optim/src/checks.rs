//! Diagnostics of an optimizer's numbers and of methods that exclude each other.

use stratoscope_diagnostics::arguments;
use stratoscope_diagnostics::rules::{ConflictingArguments, InvalidArgumentValue};
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use crate::schedule::Schedule;

/// SC0103 for a number of an optimizer.
fn bad_value(optimizer: &str, argument: &str, given: f64, expects: &str) -> Box<Diagnostic> {
    bad_text(optimizer, argument, given.to_string(), expects)
}

/// The same for a value as it is shown.
pub(crate) fn bad_text(
    optimizer: &str,
    argument: &str,
    given: String,
    expects: &str,
) -> Box<Diagnostic> {
    let rule = InvalidArgumentValue {
        call: format!("{optimizer}::new"),
        argument: argument.to_owned(),
        given,
        expects: expects.to_owned(),
        place: Place::argument("compile", "optimizer"),
        replacement: None,
        arguments: Vec::new(),
    };
    rule.error()
}

/// SC0118 for two methods of an optimizer that exclude each other, with the reason that the table of arguments has.
pub(crate) fn conflict(optimizer: &str, first: &str, second: &str) -> Box<Diagnostic> {
    let known = arguments::optimizer(optimizer);
    let argument = known.and_then(|known| arguments::find(known.arguments, first));
    let mut conflicts = argument.into_iter().flat_map(|it| it.conflicts);
    let reason = conflicts.find(|(other, _)| *other == second);
    let place = Place::argument("compile", "optimizer");
    let rule = ConflictingArguments {
        call: format!("{optimizer}::new"),
        first: first.to_owned(),
        first_place: place.clone(),
        second: second.to_owned(),
        second_place: place.clone(),
        first_drop: place.clone(),
        second_drop: place,
        reason: reason.map_or_else(String::new, |(_, reason)| (*reason).to_owned()),
        arguments: Vec::new(),
    };
    rule.error()
}

/// Checks the rate of an optimizer.
pub(crate) fn check_schedule(optimizer: &str, schedule: &Schedule) -> Result<()> {
    match schedule.problem() {
        Some((argument, given, expects)) => Err(bad_value(optimizer, argument, given, expects)),
        None => Ok(()),
    }
}

/// SC0103 for a number outside the interval that the table of arguments has for it.
pub(crate) fn check_number(optimizer: &str, argument: &str, number: f64) -> Result<()> {
    match arguments::outside_interval(optimizer, argument, number) {
        Some(expects) => Err(bad_value(optimizer, argument, number, expects)),
        None => Ok(()),
    }
}
