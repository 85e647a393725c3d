//! The calls in a cell: `compile!`, `fit!` and `evaluate!` with their operands and arguments, and
//! the optimizers that are built by a chain of methods.
//!
//! Read from tokens, not from parsed expressions: so a call is found wherever it stands, in another
//! macro too, and one slip inside it does not hide the rest.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use stratoscope_cell_syntax::{CellSyntax, Syntax};

use super::definitions::{self, DefinedNames};
use super::kind;
use super::patterns;
use super::plain::{self, Plain};
use super::scope::{self, Misplaced};
use super::segments::Slip;
use crate::arguments::Kind;
use crate::{CellSpan, arguments};

mod read;

use self::read::read_chain;
pub(super) use self::read::{inside_of, read_call, read_methods, slice, span_of};

/// Groups nested deeper than this are not looked into.
pub(super) const DEEPEST: usize = 128;

/// A call of `compile!`, `fit!` or `evaluate!` in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name without `!`.
    pub name: String,
    /// From the name to the closing bracket.
    pub span: CellSpan,
    /// The name alone.
    pub name_span: CellSpan,
    /// Between the brackets.
    pub inside: CellSpan,
    /// Whether it stands in a `scope!` of this cell, or `%%scope` stands above it.
    pub in_scope: bool,
    /// What stands before the named arguments: the model, the data.
    pub operands: Vec<Operand>,
    /// The named arguments, in the order of the text.
    pub arguments: Vec<CallArgument>,
}

/// An operand without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its text.
    pub text: String,
    /// Its place.
    pub span: CellSpan,
}

/// `name = value` in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArgument {
    /// The name.
    pub name: String,
    /// The value's text; empty if there is none.
    pub value: String,
    /// The name alone.
    pub name_span: CellSpan,
    /// The value alone; empty if there is none.
    pub value_span: CellSpan,
    /// Name and value.
    pub span: CellSpan,
    /// What goes when the argument goes: a comma too, and its line if it stands alone on it.
    pub drop_span: CellSpan,
}

impl Call {
    /// The argument of a name, the first one if it is written twice.
    pub fn argument(&self, name: &str) -> Option<&CallArgument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }
}

/// The calls in a cell, in the order of the text; none if the cell is no Rust.
pub fn calls(cell: impl Into<CellSyntax>) -> Vec<Call> {
    let calls = cell.into().read(|cell| Some(calls_of(cell)));
    calls.unwrap_or_default()
}

/// See [`calls`].
pub(super) fn calls_of(cell: &Syntax) -> Vec<Call> {
    let text = cell.text();
    if !arguments::CALLS.iter().any(|call| text.contains(call.name)) {
        return Vec::new();
    }
    let found = Found::of(cell, &DefinedNames::default()).unwrap_or_default();
    found.calls.into_iter().map(|call| call.call).collect()
}

/// All that the checker looks at, with tokens.
#[derive(Default)]
pub(super) struct Found {
    /// The cell.
    pub text: String,
    pub calls: Vec<ParsedCall>,
    pub chains: Vec<Chain>,
    /// Paths `Name::` whose first segment is a name that ends in `Strategy`.
    pub strategies: Vec<(String, CellSpan)>,
    /// Names that the cell itself defines, and those of earlier cells.
    pub defined: DefinedNames,
    /// Variables that the cell binds, and what they are where that is seen.
    pub bound: BTreeMap<String, Option<Kind>>,
    /// Calls of functions and methods that may be meant as ours.
    pub plain: Vec<Plain>,
    /// `scope!`s that are not written as they should be.
    pub scopes: Vec<Misplaced>,
}

/// A call and the tokens of its values, in the order of its arguments.
pub(super) struct ParsedCall {
    pub call: Call,
    /// Those of its operands.
    pub operands: Vec<Vec<TokenTree>>,
    pub values: Vec<Vec<TokenTree>>,
    /// What is not written as it should be.
    pub slips: Vec<Slip>,
}

/// `AdamW::new(5e-5).weight_decay(0.01)`.
pub(super) struct Chain {
    /// The type's name.
    pub optimizer: String,
    /// Between the brackets of the constructor.
    pub inside: CellSpan,
    /// From the type's name to the last method.
    pub span: CellSpan,
    /// After the closing bracket of the constructor.
    pub after: usize,
    /// The texts of the constructor's operands.
    pub operands: Vec<String>,
    /// The text of the constructor's first operand: the rate.
    pub rate: String,
    /// Where that stands; nowhere if there is none.
    pub rate_span: Option<CellSpan>,
    /// `name = value` inside the constructor, the Python way.
    pub named: Vec<CallArgument>,
    /// The methods that follow.
    pub methods: Vec<Method>,
}

/// `.name(value)`.
pub(super) struct Method {
    pub name: String,
    pub name_span: CellSpan,
    /// From the dot to the closing bracket.
    pub span: CellSpan,
    /// The text between the brackets.
    pub value: String,
    /// Where that stands.
    pub value_span: CellSpan,
}

impl Found {
    /// Reads a cell; `earlier`: what the cells before it define. `None`: it is no Rust.
    pub(super) fn of(cell: &Syntax, earlier: &DefinedNames) -> Option<Self> {
        let tokens = cell.tokens()?;
        Some(Self::read(cell.text(), tokens, cell.in_scope(), earlier))
    }

    /// Reads the tokens of a cell. `in_scope`: `%%scope` stands above it.
    pub(super) fn read(
        text: &str,
        tokens: TokenStream,
        in_scope: bool,
        earlier: &DefinedNames,
    ) -> Self {
        let mut found = Self {
            text: text.to_owned(),
            defined: earlier.clone(),
            ..Self::default()
        };
        found.defined.read(tokens.clone(), DEEPEST);
        found.walk(text, tokens, in_scope, 0);
        found
    }

    fn walk(&mut self, text: &str, tokens: TokenStream, in_scope: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut patterns = patterns::of_arms(&trees).into_iter().peekable();
        let mut index = 0;
        while index < trees.len() {
            if let Some(item) = definitions::item(&trees[index..]) {
                index += item.length;
                continue;
            }
            while patterns.next_if(|it| it.start < index).is_some() {}
            if let Some(pattern) = patterns.next_if(|it| it.start == index) {
                index = pattern.end;
                self.bind_all(&trees[pattern]);
                continue;
            }
            index += match &trees[index] {
                TokenTree::Group(group) => {
                    self.walk(text, group.stream(), in_scope, depth + 1);
                    1
                }
                TokenTree::Ident(_) => self.name(text, &trees, index, in_scope, depth),
                _ => 1,
            };
        }
    }

    /// Looks at the tokens from a name on; returns how many it has consumed.
    fn name(
        &mut self,
        text: &str,
        trees: &[TokenTree],
        index: usize,
        in_scope: bool,
        depth: usize,
    ) -> usize {
        let TokenTree::Ident(ident) = &trees[index] else {
            return 1;
        };
        let name = ident.to_string();
        match (name.as_str(), &trees[index + 1..]) {
            ("let", rest) => 1 + self.bind(text, rest),
            ("for", [pattern, ..]) => {
                self.bind_all(std::slice::from_ref(pattern));
                1
            }
            (_, [TokenTree::Punct(bang), TokenTree::Group(group), rest @ ..])
                if bang.as_char() == '!' =>
            {
                let has_our_name = arguments::call(&name).is_some() || name == "scope";
                // `mine::fit!` is another one.
                if !has_our_name || definitions::may_be_ours_at(trees, index, &self.defined) {
                    self.macro_call(text, (ident, group), rest, in_scope, depth);
                }
                3
            }
            (_, [TokenTree::Punct(first), TokenTree::Punct(second), rest @ ..])
                if first.as_char() == ':' && second.as_char() == ':' =>
            {
                // `mine::Adam` is another one. What begins a path has none before it.
                if definitions::may_be_ours_at(trees, index, &self.defined) {
                    self.path(text, ident, rest);
                }
                3
            }
            (_, [TokenTree::Group(group), ..]) if group.delimiter() == Delimiter::Parenthesis => {
                if !patterns::is_one(trees, index) {
                    self.plain.extend(plain::read(text, trees, index));
                }
                1
            }
            (_, [TokenTree::Punct(colon), ..]) if colon.as_char() == ':' => {
                // An operand of a function or a closure, or a field.
                self.note(name, None);
                1
            }
            _ => {
                if matches!(index.checked_sub(1).map(|before| &trees[before]),
                    Some(TokenTree::Punct(bar)) if bar.as_char() == '|')
                {
                    self.note(name, None);
                }
                1
            }
        }
    }

    /// `name!(…)`, with the tokens that follow it.
    fn macro_call(
        &mut self,
        text: &str,
        (ident, group): (&Ident, &Group),
        rest: &[TokenTree],
        in_scope: bool,
        depth: usize,
    ) {
        let name = ident.to_string();
        // A macro that the cell defines may do anything with its operands.
        if self.defined.items.contains(&name) {
            return;
        }
        let is_ours = arguments::call(&name).is_some();
        if is_ours {
            let call = read_call(text, &name, ident.span(), group, in_scope);
            self.calls.push(call);
        }
        if name == "scope" {
            let misplaced = scope::misplaced(text, ident, group, rest);
            self.scopes.extend(misplaced);
        }
        if name == "matches" {
            // What follows the value is a pattern.
            let is_comma =
                |tree: &TokenTree| matches!(tree, TokenTree::Punct(it) if it.as_char() == ',');
            let tokens = group.stream().into_iter();
            let value = tokens.take_while(|tree| !is_comma(tree)).collect();
            self.walk(text, value, in_scope, depth + 1);
        }
        // What another macro makes of its tokens is not known.
        if CALLING.contains(&name.as_str()) || is_ours {
            self.walk(text, group.stream(), in_scope || name == "scope", depth + 1);
        }
    }

    /// `Name::` and what follows it: a strategy, or the constructor of an optimizer.
    fn path(&mut self, text: &str, ident: &Ident, rest: &[TokenTree]) {
        let name = ident.to_string();
        if name.ends_with("Strategy") {
            self.strategies.push((name.clone(), span_of(ident.span())));
        }
        if arguments::optimizer(&name).is_some()
            && let [TokenTree::Ident(new), TokenTree::Group(group), methods @ ..] = rest
            && new == "new"
            && group.delimiter() == Delimiter::Parenthesis
        {
            self.chains.push(read_chain(text, ident, group, methods));
        }
    }

    /// Notes what a name is bound to. Of one that is bound to different things nothing is known: which one it is
    /// depends on the place.
    fn note(&mut self, name: String, kind: Option<Kind>) {
        let earlier = self.bound.get(&name);
        let kind = kind.filter(|_| earlier.is_none_or(|earlier| *earlier == kind));
        self.bound.insert(name, kind);
    }

    /// Notes what a `let` binds, from behind that word on; returns how many tokens its pattern has.
    fn bind(&mut self, text: &str, rest: &[TokenTree]) -> usize {
        let is_sign = |tree: &TokenTree, sign: char| matches!(tree, TokenTree::Punct(it) if it.as_char() == sign);
        let end = rest.iter().position(|tree| is_sign(tree, ';'));
        let statement = &rest[..end.unwrap_or(rest.len())];
        let equals = statement.iter().position(|tree| is_sign(tree, '='));
        let (pattern, value) = statement.split_at(equals.unwrap_or(statement.len()));
        let value = value.get(1..).unwrap_or_default();
        match pattern {
            [TokenTree::Ident(name)] => {
                let kind = kind::of(text, value, &self.defined);
                self.note(name.to_string(), kind);
            }
            [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mut" => {
                let kind = kind::of(text, value, &self.defined);
                self.note(name.to_string(), kind);
            }
            _ => self.bind_all(pattern),
        }
        pattern.len()
    }

    /// Of these variables nothing is known.
    fn bind_all(&mut self, pattern: &[TokenTree]) {
        for tree in pattern {
            match tree {
                TokenTree::Ident(name) => self.note(name.to_string(), None),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.bind_all(&inner);
                }
                _ => {}
            }
        }
    }
}

/// Macros whose operands are Rust, and run as it stands there.
const CALLING: [&str; 24] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "join",
    "panic",
    "print",
    "println",
    "scope",
    "thread_local",
    "todo",
    "try",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];
