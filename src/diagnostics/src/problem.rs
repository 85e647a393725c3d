//! Diagnostics that optimizers, metrics and training raise in many places, made of the facts at hand. The wording is the rules' own.

use crate::arguments::{IdentifierKind, foreign_identifier};
use crate::check::suggest::similar;
use crate::rules::{InvalidArgumentValue, UnknownIdentifier};
use crate::{Diagnostic, Place, Rule};

/// SC0105 for `optimizer`.
pub fn unknown_optimizer(given: &str) -> Box<Diagnostic> {
    unknown(IdentifierKind::Optimizer, "optimizer", given)
}

/// SC0105 for `loss`.
pub fn unknown_loss(given: &str) -> Box<Diagnostic> {
    unknown(IdentifierKind::Loss, "loss", given)
}

/// SC0105 in `metrics`.
pub fn unknown_metric(given: &str) -> Box<Diagnostic> {
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
pub fn bad_value(
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
pub fn together(problems: Vec<Diagnostic>) -> Option<Box<Diagnostic>> {
    let mut problems = problems.into_iter();
    let first = problems.next()?;
    Some(Box::new(problems.fold(first, Diagnostic::related)))
}

/// SC0105: a name or a pattern that no tensor has. The card has no place: the name is text like any other.
pub fn unknown_tensor(given: &str, known: Vec<&str>) -> Box<Diagnostic> {
    /// Names that are listed.
    const MOST: usize = 20;
    let rule = UnknownIdentifier {
        kind: "tensor".to_owned(),
        given: given.to_owned(),
        place: Place::call("fit"),
        similar: Vec::new(),
        known: known
            .iter()
            .take(MOST)
            .map(|&name| name.to_owned())
            .collect(),
        hint: None,
        arguments: Vec::new(),
    };
    let mut finding = rule.diagnostic();
    finding.labels.clear();
    finding.fixes.clear();
    if known.len() > MOST {
        finding = finding.why(format!("and {} more", known.len() - MOST));
    }
    let near = similar(given, known);
    for name in near.iter().take(3) {
        finding = finding.suggest(name);
    }
    let fix =
        "use a name of the list, its end (`layer.0.output`), or a pattern such as `layer.0.*`";
    Box::new(finding.fix(fix))
}
