//! What the text decides about one call of `compile!`, `fit!` or `evaluate!`. All its problems are
//! reported together, each with the same table.

use proc_macro2::TokenTree;

use super::calls::{CallArgument, Chain, Found, ParsedCall};
use super::definitions::DefinedNames;
use super::kind::{self, Expected};
use super::literal::{self, Literal};
use super::{CellContext, primary_start, suggest, table};
use crate::arguments::{self, Accepts, Argument, CallTable, IdentifierKind, Kind};
use crate::rules::{
    ArgumentTypeMismatch, ConflictingArguments, DuplicateArgument, InvalidArgumentValue,
    MissingOptimizer, StepsPerExecutionWithoutScope, UnknownIdentifier, VersionSpecificArgument,
};
use crate::{CellSpan, Diagnostic, Place, Rule, Severity};
use stratoscope_render::text;

mod colons;
mod known;
mod metrics;
mod named_data;
mod names;
mod operands;

/// A finding and the arguments that are at fault.
struct Finding {
    arguments: Vec<usize>,
    diagnostic: Diagnostic,
}

/// The findings of one call.
pub(super) fn check(parsed: &ParsedCall, found: &Found, context: &CellContext) -> Vec<Diagnostic> {
    let Some(table) = arguments::call(&parsed.call.name) else {
        return Vec::new();
    };
    let mut checker = Checker {
        parsed,
        text: &found.text,
        chains: &found.chains,
        defined: &found.defined,
        cell: found,
        table,
        context,
        findings: Vec::new(),
    };
    checker.slips();
    checker.operands();
    checker.none();
    checker.names();
    checker.duplicates();
    checker.conflicts();
    checker.values();
    checker.pair_of_arrays();
    if parsed.call.name == "compile" {
        checker.optimizer();
        checker.scope();
        checker.versions();
    }
    let invalid: Vec<usize> = checker
        .findings
        .iter()
        .flat_map(|finding| finding.arguments.iter().copied())
        .collect();
    let rows = table::rows(&parsed.call, &invalid, |name| {
        checker.similar(name).first().cloned()
    });
    let mut findings: Vec<Diagnostic> = checker
        .findings
        .into_iter()
        .map(|finding| finding.diagnostic)
        .collect();
    findings.sort_by_key(|finding| (finding.severity != Severity::Error, primary_start(finding)));
    // The table is the same for all of them: the first one shows it. To a note it would add nothing.
    if let Some(first) = findings.first_mut()
        && first.severity != Severity::Note
    {
        first.arguments = rows;
    }
    findings
}

struct Checker<'a> {
    parsed: &'a ParsedCall,
    /// The cell.
    text: &'a str,
    chains: &'a [Chain],
    /// Names that the notebook itself defines.
    defined: &'a DefinedNames,
    cell: &'a Found,
    table: &'static CallTable,
    context: &'a CellContext,
    findings: Vec<Finding>,
}

impl<'a> Checker<'a> {
    fn given(&self) -> impl Iterator<Item = (usize, &'a CallArgument, &'a [TokenTree])> + use<'a> {
        let parsed = self.parsed;
        parsed
            .call
            .arguments
            .iter()
            .zip(&parsed.values)
            .enumerate()
            .map(|(index, (argument, value))| (index, argument, value.as_slice()))
    }

    fn found(&mut self, arguments: Vec<usize>, diagnostic: Diagnostic) {
        self.findings.push(Finding {
            arguments,
            diagnostic,
        });
    }

    fn knows(&self, name: &str) -> bool {
        arguments::find(self.table.arguments, name).is_some()
    }

    /// SC0117.
    fn duplicates(&mut self) {
        let call = &self.parsed.call;
        for (index, argument, _) in self.given() {
            let Some(first) = call.arguments[..index]
                .iter()
                .position(|other| other.name == argument.name)
            else {
                continue;
            };
            let diagnostic = DuplicateArgument {
                call: call.name.clone(),
                argument: argument.name.clone(),
                first: Place::Span(call.arguments[first].span),
                second: Place::Span(argument.span),
                first_drop: Place::Span(call.arguments[first].drop_span),
                second_drop: Place::Span(argument.drop_span),
                arguments: Vec::new(),
            }
            .diagnostic();
            self.found(vec![first, index], diagnostic);
        }
    }

    /// SC0118.
    fn conflicts(&mut self) {
        let call = &self.parsed.call;
        for (index, argument, _) in self.given() {
            let Some(known) = arguments::find(self.table.arguments, &argument.name) else {
                continue;
            };
            for (other, reason) in known.conflicts {
                let Some(first) = call.arguments[..index]
                    .iter()
                    .position(|given| given.name == *other)
                else {
                    continue;
                };
                let earlier = &call.arguments[first];
                let diagnostic = ConflictingArguments {
                    call: format!("{}!", call.name),
                    first: earlier.name.clone(),
                    first_place: Place::Span(earlier.span),
                    first_drop: Place::Span(earlier.drop_span),
                    second: argument.name.clone(),
                    second_place: Place::Span(argument.span),
                    second_drop: Place::Span(argument.drop_span),
                    reason: (*reason).to_owned(),
                    arguments: Vec::new(),
                }
                .diagnostic();
                self.found(vec![first, index], diagnostic);
            }
        }
    }

    /// SC0120, SC0103 and SC0105.
    fn values(&mut self) {
        for (index, argument, value) in self.given() {
            let Some(known) = arguments::find(self.table.arguments, &argument.name) else {
                continue;
            };
            // `None` has a diagnostic of its own.
            if matches!(value, [TokenTree::Ident(word)] if word == "None") {
                continue;
            }
            let uncalled = self.uncalled_metrics(known, argument, value);
            if let Some(diagnostic) = uncalled.or_else(|| self.wrong_kind(known, argument, value)) {
                self.found(vec![index], diagnostic);
                continue;
            }
            if let Some(literal) = literal::read(value)
                && let Err(refusal) = literal::judge(known, &literal)
            {
                let diagnostic = InvalidArgumentValue {
                    call: self.table.name.to_owned(),
                    argument: argument.name.clone(),
                    given: argument.value.clone(),
                    expects: refusal.expects,
                    place: Place::Span(argument.value_span),
                    replacement: refusal.replacement,
                    arguments: Vec::new(),
                }
                .diagnostic();
                self.found(vec![index], diagnostic);
            }
            if let Accepts::Identifier(kind) = known.accepts {
                for (text, span) in literal::texts(value) {
                    if !kind.knows(&text) {
                        let diagnostic = self.unknown_identifier(kind, text, span);
                        self.found(vec![index], diagnostic);
                    }
                }
            }
        }
    }

    /// A value that is of another kind than the argument takes.
    fn wrong_kind(
        &self,
        known: &Argument,
        argument: &CallArgument,
        value: &[TokenTree],
    ) -> Option<Diagnostic> {
        let expected = kind::expected(known)?;
        let kind = kind::of(self.text, value, self.defined);
        let arrays =
            kind::arrays(&argument.value).filter(|_| expected == Expected::Kind(Kind::Dataset));
        let got = match (kind, expected) {
            _ if arrays.is_some() => "two arrays",
            (Some(kind), expected) if expected == Expected::Kind(kind) => return None,
            (Some(kind), _) => kind.word(),
            // Texts name losses, metrics and optimizers; no literal is anything else of ours.
            (None, Expected::Kind(wanted)) => match literal::read(value)? {
                Literal::Text(_) if wanted.has_names() => return None,
                literal => literal.word(),
            },
            (None, Expected::Plain) => return None,
        };
        let expected = match expected {
            Expected::Kind(kind) => kind.word(),
            Expected::Plain => known.expects,
        };
        let facts = ArgumentTypeMismatch {
            argument: argument.name.clone(),
            given: text::excerpt(&argument.value, 60),
            expected: expected.to_owned(),
            got: got.to_owned(),
            place: Place::Span(argument.value_span),
            fixes: match arrays {
                Some(arrays) => vec![self.of_arrays(&arrays, argument)],
                None => kind::ways_out(&self.parsed.call, known, argument, kind),
            },
            arguments: Vec::new(),
        };
        Some(facts.diagnostic())
    }

    /// SC0120 for `(x, y)` in place of the dataset.
    fn pair_of_arrays(&mut self) {
        let call = &self.parsed.call;
        if call.name == "compile" {
            return;
        }
        if let Some(data) = call.operands.get(1)
            && let Some(arrays) = kind::arrays(&data.text)
        {
            let diagnostic = ArgumentTypeMismatch {
                argument: String::new(),
                given: text::excerpt(&data.text, 60),
                expected: Kind::Dataset.word().to_owned(),
                got: "two arrays".to_owned(),
                place: Place::Span(data.span),
                fixes: vec![self.of_a_pair(&arrays, data.span, "")],
                arguments: Vec::new(),
            }
            .diagnostic();
            self.found(Vec::new(), diagnostic);
        }
    }

    fn unknown_identifier(
        &self,
        kind: IdentifierKind,
        given: String,
        span: CellSpan,
    ) -> Diagnostic {
        let mut similar = suggest::similar(&given, kind.names().iter().copied());
        let foreign = arguments::foreign_identifier(kind, &given);
        if let Some((name, _)) = foreign {
            similar.retain(|other| other != name);
            similar.insert(0, name.to_owned());
        }
        UnknownIdentifier {
            kind: kind.word().to_owned(),
            given,
            place: Place::Span(span),
            similar,
            known: kind.names().iter().map(|name| (*name).to_owned()).collect(),
            hint: foreign.map(|(_, hint)| hint.to_owned()),
            arguments: Vec::new(),
        }
        .diagnostic()
    }

    /// SC0116, unless a misspelt name was meant as the optimizer, or the rate was given alone.
    fn optimizer(&mut self) {
        let call = &self.parsed.call;
        let Some(model) = call.operands.first() else {
            return;
        };
        let meant = |argument: &CallArgument| {
            argument.name == "optimizer"
                || (!self.knows(&argument.name)
                    && self
                        .similar(&argument.name)
                        .first()
                        .is_some_and(|name| name == "optimizer"))
        };
        // An optimizer that was written for another argument is SC0120 already.
        let is_optimizer =
            |value: &[TokenTree]| kind::of(self.text, value, self.defined) == Some(Kind::Optimizer);
        if self.given().any(|(_, _, value)| is_optimizer(value)) {
            return;
        }
        // A second operand is probably an optimizer without its name: that is SC0123 already.
        let is_unnamed = call.operands.len() > 1 || operands::has_unnamed_optimizer(self);
        if is_unnamed || call.arguments.iter().any(meant) {
            return;
        }
        let end = model.span.end;
        let diagnostic = MissingOptimizer {
            place: Place::Span(call.name_span),
            insert: Some(Place::Span(CellSpan { start: end, end })),
            arguments: Vec::new(),
        }
        .diagnostic();
        self.found(Vec::new(), diagnostic);
    }

    /// SC0102, where the notebook is known to have no strategy at all.
    fn scope(&mut self) {
        let call = &self.parsed.call;
        let asks_to_drop = call.argument("drop_unsupported").is_some();
        if self.context.active_scope != Some(false) || call.in_scope || asks_to_drop {
            return;
        }
        for (index, argument, value) in self.given() {
            if argument.name != "steps_per_execution" || call.argument("strategy").is_some() {
                continue;
            }
            let Some(Literal::Integer(steps)) = literal::read(value) else {
                continue;
            };
            let Ok(value @ 2..) = usize::try_from(steps) else {
                continue;
            };
            let facts = StepsPerExecutionWithoutScope::of_text(value, false);
            let mut diagnostic = facts.diagnostic();
            place_at(&mut diagnostic, argument);
            self.found(vec![index], diagnostic);
        }
    }

    /// SC0119: what the version of the notebook's profile does not know.
    fn versions(&mut self) {
        let Some(profile) = self.context.profile else {
            return;
        };
        for (_, argument, _) in self.given() {
            if !VersionSpecificArgument::concerns(profile, &argument.name) {
                continue;
            }
            let diagnostic = VersionSpecificArgument {
                argument: argument.name.clone(),
                place: Place::Span(argument.span),
                profile,
            }
            .diagnostic();
            // A note: the argument is accepted.
            self.found(Vec::new(), diagnostic);
        }
    }
}

/// Puts the places that name this argument where it stands.
fn place_at(diagnostic: &mut Diagnostic, argument: &CallArgument) {
    let names =
        |place: &Place| matches!(place, Place::Argument { name, .. } if *name == argument.name);
    for label in &mut diagnostic.labels {
        if names(&label.place) {
            label.place = Place::Span(argument.span);
        }
    }
    for edit in diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
        if names(&edit.place) {
            let drops = edit.replacement.is_empty();
            edit.place = Place::Span(if drops {
                argument.drop_span
            } else {
                argument.span
            });
        }
    }
}
