//! Checks of a cell's text, before rustc sees it, and the way back from named places to the text.
//!
//! [`check_cell`] looks at the text alone: no file, no network, no state but [`CellContext`]. It takes
//! well below a millisecond for an ordinary cell. [`resolve`] finds the text that a diagnostic raised
//! at run time talks about; the process that raised it knows no text. [`calls`] is for the kernel,
//! which rewrites cells.
//!
//! What reads a cell takes a [`CellSyntax`], whose text is parsed once for all of them, or a text. Everything below
//! reads the [`Syntax`] on the thread that has it.

mod call;
mod calls;
mod comprehensions;
mod constructors;
mod data_frames;
mod definitions;
mod ends_early;
mod fixed;
mod habits;
mod kind;
mod literal;
mod main_function;
mod moved;
mod not_code;
mod of_the_cell;
mod optimizer;
mod our_words;
mod outside_function;
mod patterns;
mod places;
mod plain;
mod python;
mod python_expressions;
mod python_values;
mod readers;
mod resolve;
mod returned;
mod scan;
mod scope;
mod segments;
mod shell;
mod signatures;
mod slips;
mod strategies;
pub mod suggest;
mod syntax;
mod table;
mod with_blocks;
mod wrong_type;

pub use calls::{Call, CallArgument, Operand, calls};
pub use comprehensions::iterator_form;
pub use definitions::{DefinedNames, defined_in};
pub use fixed::Trial;
pub use of_the_cell::name_what_is_meant;
pub use our_words::in_our_words;
pub use resolve::{resolve, resolve_at};
pub use slips::owned;
pub use strategies::name_strategies;

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use stratoscope_cell_syntax::{CellSyntax, Syntax};

use crate::rules::{STRATEGIES, StrategyNotAvailable};
use crate::{Diagnostic, Place, Profile, Rule};
use calls::Found;

/// Strategies of TensorFlow that have no counterpart here.
const FOREIGN_STRATEGIES: &[&str] = &[
    "CentralStorageStrategy",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "TpuStrategy",
];

/// What is known about the notebook while a cell is checked.
#[derive(Clone, Debug, Default)]
pub struct CellContext {
    /// The version whose exact words the cards quote; `None` quotes none.
    pub profile: Option<Profile>,
    /// Whether a strategy is active or any model may be bound to one. `None` leaves SC0102 to run
    /// time; `Some(false)` says that there is no strategy at all in the notebook.
    pub active_scope: Option<bool>,
    /// The notebook's variables and their types.
    pub variables: BTreeMap<String, String>,
    /// What earlier cells define: of a type with the name of one of ours nothing is known.
    pub defined: DefinedNames,
}

impl CellContext {
    /// Of a notebook that has variables of these types, by name.
    pub fn with_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, kind): (&str, &str)| (name.to_owned(), kind.to_owned());
        Self {
            variables: variables.into_iter().map(owned).collect(),
            ..Self::default()
        }
    }

    /// Whether a text begins with an index of a variable, `texts[0:10]`, or makes a list by a loop over one,
    /// `[len(it) for it in texts]`.
    pub fn uses_a_variable(&self, text: &str) -> bool {
        let name = text.split_once('[').map(|(name, _)| name.trim());
        let is_indexed = name.is_some_and(|name| self.variables.contains_key(name));
        let is_one_line = text.trim().lines().count() == 1;
        let looped = text.split_once(" for ").filter(|_| is_one_line);
        let items = looped.and_then(|(_, rest)| rest.split_once(" in "));
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let items = items.map(|(_, rest)| rest.split(|it| !is_name(it)).find(|it| !it.is_empty()));
        is_indexed
            || items
                .flatten()
                .is_some_and(|name| self.variables.contains_key(name))
    }
}

/// Everything the text alone decides, in the order of the text. Of a cell that is no Rust, why it is none,
/// unless rustc tells that well.
pub fn check_cell(cell: impl Into<CellSyntax>, context: &CellContext) -> Vec<Diagnostic> {
    let context = context.clone();
    let found = cell.into().read(move |cell| Some(find(cell, &context)));
    found.unwrap_or_default()
}

fn find(cell: &Syntax, context: &CellContext) -> Vec<Diagnostic> {
    if let Some(found) = shell::misplaced(cell.text()).or_else(|| not_code::answer(cell)) {
        return vec![found];
    }
    let mut findings = match cell.tokens() {
        Some(tokens) => of_rust(cell, tokens, context),
        None => syntax::explain(cell, context).into_iter().collect(),
    };
    findings.sort_by_key(primary_start);
    let findings = findings.into_iter();
    findings.map(|it| returned::settled(cell, it)).collect()
}

fn of_rust(cell: &Syntax, tokens: TokenStream, context: &CellContext) -> Vec<Diagnostic> {
    let text = cell.text();
    if let Some(found) = shell::with_options(text, context) {
        return vec![found];
    }
    if !may_matter(text) {
        return Vec::new();
    }
    let trees: Vec<_> = tokens.clone().into_iter().collect();
    let found = Found::read(text, tokens, cell.in_scope(), &context.defined);
    let mut findings: Vec<Diagnostic> = Vec::new();
    findings.extend(main_function::not_called(text, &trees));
    for call in &found.calls {
        if !found.defined.items.contains(&call.call.name) {
            findings.extend(call::check(call, &found, context));
        }
    }
    for chain in &found.chains {
        if !found.defined.items.contains(&chain.optimizer) {
            findings.extend(optimizer::check(chain));
        }
    }
    for (name, span) in &found.strategies {
        let foreign = FOREIGN_STRATEGIES.contains(&name.as_str());
        let is_own = found.defined.items.contains(name);
        if foreign && !STRATEGIES.contains(&name.as_str()) && !is_own {
            let place = Place::Span(*span);
            findings.push(
                StrategyNotAvailable {
                    given: name.clone(),
                    place,
                }
                .diagnostic(),
            );
        }
    }
    let is_known = |place: &Diagnostic, all: &[Diagnostic]| {
        // A call inside of one that is reported as another call.
        let start = primary_start(place);
        all.iter().any(|other| primary_start(other) == start)
    };
    let plain = found.plain.iter();
    let plain = plain.filter_map(|call| {
        scope::without_its_mark(call, &found).or_else(|| plain::check(call, &found))
    });
    for found in plain {
        if !is_known(&found, &findings) {
            findings.push(found);
        }
    }
    findings.extend(found.scopes.iter().map(scope::Misplaced::diagnostic));
    findings
}

/// Whether a cell is no code of any language.
pub fn is_no_code(cell: impl Into<CellSyntax>) -> bool {
    let is_none = cell
        .into()
        .read(|cell| Some(not_code::answer(cell).is_some()));
    is_none.unwrap_or(false)
}

/// Whether a cell is Rust, apart from its lines for the kernel.
pub fn is_rust(cell: impl Into<CellSyntax>) -> bool {
    let is_rust = cell.into().read(|cell| Some(cell.is_rust()));
    is_rust.unwrap_or(false)
}

/// A cheap look, so that most cells cost nothing.
fn may_matter(text: &str) -> bool {
    let calls = crate::arguments::CALLS.iter().map(|call| call.name);
    let optimizers = crate::arguments::OPTIMIZERS
        .iter()
        .map(|optimizer| optimizer.name);
    calls
        .chain(optimizers)
        .chain(constructors::words())
        .chain([
            "Strategy", "scope", "print", "fn main", "predict(", "embed(",
        ])
        .any(|word| text.contains(word))
}

fn primary_start(diagnostic: &Diagnostic) -> usize {
    match diagnostic.labels.first().map(|label| &label.place) {
        Some(Place::Span(span)) => span.start,
        _ => usize::MAX,
    }
}
