//! The diagnostics of this crate, made from the facts at hand; the wording is the rules' own.

use stratoscope_diagnostics::arguments::{IdentifierKind, foreign_identifier};
use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::{InvalidArgumentValue, UnknownIdentifier};
use stratoscope_diagnostics::{Diagnostic, Place, Rule};

/// SC0105 for `optimizer`.
pub(crate) fn unknown_optimizer(given: &str) -> Box<Diagnostic> {
    unknown(IdentifierKind::Optimizer, "optimizer", given)
}

/// SC0105 for `loss`.
pub(crate) fn unknown_loss(given: &str) -> Box<Diagnostic> {
    unknown(IdentifierKind::Loss, "loss", given)
}

/// SC0105 in `metrics`.
pub(crate) fn unknown_metric(given: &str) -> Box<Diagnostic> {
    unknown(IdentifierKind::Metric, "metrics", given)
}

fn unknown(kind: IdentifierKind, argument: &str, given: &str) -> Box<Diagnostic> {
    let foreign = foreign_identifier(kind, given);
    let mut names: Vec<String> = foreign.iter().map(|(name, _)| (*name).to_owned()).collect();
    for name in similar(given, kind.names().iter().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rule = UnknownIdentifier {
        kind: kind.word().to_owned(),
        given: given.to_owned(),
        place: Place::argument("compile", argument),
        similar: names,
        known: kind.names().iter().map(|name| (*name).to_owned()).collect(),
        hint: foreign.map(|(_, hint)| hint.to_owned()),
        arguments: Vec::new(),
    };
    rule.error()
}

/// SC0103: a value that this model or this data cannot have, in an argument of a call.
pub(crate) fn bad_value(
    call: &str,
    argument: &str,
    given: impl ToString,
    expects: impl Into<String>,
) -> Diagnostic {
    let rule = InvalidArgumentValue {
        call: call.to_owned(),
        argument: argument.to_owned(),
        given: given.to_string(),
        expects: expects.into(),
        place: Place::argument(call, argument),
        replacement: None,
        arguments: Vec::new(),
    };
    rule.diagnostic()
}

/// The first problem, the others related to it.
pub(crate) fn together(problems: Vec<Diagnostic>) -> Option<Box<Diagnostic>> {
    let mut problems = problems.into_iter();
    let first = problems.next()?;
    Some(Box::new(problems.fold(first, Diagnostic::related)))
}
