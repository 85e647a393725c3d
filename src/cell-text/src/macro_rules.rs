//! Expands the macros that cells define with `macro_rules!`, where they stand for items.
//!
//! evcxr keeps the items of a cell for the cells that come, and takes the call of a macro for an expression: a type that
//! a macro makes would end with its cell, and variables of that type could not be named in the next one. So such a call is
//! replaced by its items, as if they had been written out. Items have no hygiene, so nothing changes its meaning.
//!
//! A call that this expander does not understand, or whose expansion is more than items, stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{Item, ItemMacro, Macro, Stmt};

mod pattern;

use pattern::{Bindings, Pattern};

/// A macro that calls itself more often does not end.
const MAX_DEPTH: usize = 128;

/// A longer expansion is left to rustc.
const MAX_TOKENS: usize = 20_000;

/// The macros that cells have defined, by name.
#[derive(Clone, Debug, Default)]
pub struct Macros(BTreeMap<String, String>);

/// `(pattern) => { body }`
struct Rule {
    pattern: Vec<Pattern>,
    body: TokenStream,
}

impl Macros {
    /// Those that are defined at the top of a cell.
    pub(crate) fn among(statements: &[Stmt]) -> Self {
        let mut found = Self::default();
        for statement in statements {
            if let Stmt::Item(item) = statement {
                found.add(item);
            }
        }
        found
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds macros; a later one replaces an earlier one of the same name.
    pub fn extend(&mut self, new: Self) {
        self.0.extend(new.0);
    }

    /// Forgets all macros.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, item: &Item) {
        if let Some((name, definition)) = definition(item) {
            self.0.insert(name, definition.mac.tokens.to_string());
        }
    }

    /// The items that a call stands for, as code. `None`: it is not the call of a macro of a cell, or stands for something
    /// else.
    pub(crate) fn items_of(&self, called: &Macro) -> Option<String> {
        let name = called.path.get_ident()?.to_string();
        if !self.0.contains_key(&name) {
            return None;
        }
        let mut items = TokenStream::new();
        self.clone().expand(called, MAX_DEPTH, &mut items)?;
        (!items.is_empty()).then(|| items.to_string())
    }

    /// Whether there is an item among the statements that a call stands for.
    pub(crate) fn makes_items(&self, called: &Macro) -> bool {
        let statements = || -> Option<Vec<Stmt>> {
            let name = called.path.get_ident()?.to_string();
            let rules = rules.parse_str(self.0.get(&name)?).ok()?;
            let expanded = rules.iter().find_map(|rule| rule.expand(&called.tokens))?;
            syn::Block::parse_within.parse2(expanded).ok()
        };
        let statements = statements().unwrap_or_default();
        statements.iter().any(|it| matches!(it, Stmt::Item(_)))
    }

    fn expand(&mut self, called: &Macro, depth: usize, output: &mut TokenStream) -> Option<()> {
        let name = called.path.get_ident()?.to_string();
        let rules = rules.parse_str(self.0.get(&name)?).ok()?;
        let depth = depth.checked_sub(1)?;
        let expanded = rules.iter().find_map(|rule| rule.expand(&called.tokens))?;
        if count(&expanded) > MAX_TOKENS {
            return None;
        }
        for (item, tokens) in items.parse2(expanded).ok()? {
            match &item {
                Item::Macro(call) if call.ident.is_none() => {
                    self.expand(&call.mac, depth, output)?;
                }
                // Something that syn does not know.
                Item::Verbatim(_) => return None,
                _ => {
                    self.add(&item);
                    output.extend(tokens);
                }
            }
        }
        Some(())
    }
}

/// Items, each with its tokens.
fn items(input: ParseStream<'_>) -> syn::Result<Vec<(Item, TokenStream)>> {
    let mut items = Vec::new();
    while !input.is_empty() {
        let begin = input.cursor();
        let item = input.parse()?;
        items.push((item, pattern::between(begin, input.cursor())));
    }
    Ok(items)
}

/// The name of the macro that an item defines.
fn definition(item: &Item) -> Option<(String, &ItemMacro)> {
    let Item::Macro(definition) = item else {
        return None;
    };
    Some((definition.ident.as_ref()?.to_string(), definition))
}

fn rules(input: ParseStream<'_>) -> syn::Result<Vec<Rule>> {
    let mut rules = Vec::new();
    while !input.is_empty() {
        let pattern: Group = input.parse()?;
        input.parse::<syn::Token![=>]>()?;
        let body: Group = input.parse()?;
        input.parse::<Option<syn::Token![;]>>()?;
        rules.push(Rule {
            pattern: Pattern::list(pattern.stream())?,
            body: body.stream(),
        });
    }
    Ok(rules)
}

impl Rule {
    fn expand(&self, operands: &TokenStream) -> Option<TokenStream> {
        let read = |input: ParseStream<'_>| {
            let mut bindings = Bindings::default();
            Pattern::read_all(&self.pattern, input, &mut bindings)?;
            Ok(bindings)
        };
        let bindings = read.parse2(operands.clone()).ok()?;
        let mut output = TokenStream::new();
        transcribe(self.body.clone(), &bindings, &mut output)?;
        Some(output)
    }
}

/// The body of a rule with its variables filled in; `None` where it has something that is not understood.
fn transcribe(body: TokenStream, bindings: &Bindings, output: &mut TokenStream) -> Option<()> {
    let mut body = body.into_iter().peekable();
    while let Some(token) = body.next() {
        match token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => match body.next()? {
                TokenTree::Ident(name) if name == "crate" => {
                    output.extend([TokenTree::Ident(Ident::new("crate", Span::call_site()))]);
                }
                TokenTree::Ident(name) => match bindings.get(&name) {
                    Some((kind, tokens)) => {
                        let is_path = body.peek().is_some_and(is_colon);
                        output.extend(whole(kind, tokens, is_path));
                    }
                    // Of a macro that this one defines.
                    None => output.extend([TokenTree::Punct(dollar), TokenTree::Ident(name)]),
                },
                TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                    let (separator, _) = pattern::repetition(&mut body)?;
                    repeat(&group, separator, bindings, output)?;
                }
                _ => return None,
            },
            TokenTree::Group(group) => {
                let mut inside = TokenStream::new();
                transcribe(group.stream(), bindings, &mut inside)?;
                output.extend([TokenTree::Group(Group::new(group.delimiter(), inside))]);
            }
            token => output.extend([token]),
        }
    }
    Some(())
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(sign) if sign.as_char() == ':' && sign.spacing() == Spacing::Joint)
}

/// What a variable stands for, as code that stays whole wherever it is put: `(1 + 1)`, and `<Vec<u8>>` before `::`.
fn whole(kind: &str, tokens: TokenStream, is_path: bool) -> TokenStream {
    let is_one = tokens.clone().into_iter().nth(1).is_none();
    match kind {
        "expr" | "expr_2021" if !is_one => {
            TokenTree::Group(Group::new(Delimiter::Parenthesis, tokens)).into()
        }
        "ty" if !is_one && is_path => around('<', tokens, '>'),
        _ => tokens,
    }
}

/// `$( … ) separator *`
fn repeat(
    group: &Group,
    separator: Option<TokenTree>,
    bindings: &Bindings,
    output: &mut TokenStream,
) -> Option<()> {
    let mut used = BTreeSet::new();
    variables(group.stream(), &mut used);
    for (index, round) in bindings.rounds(&used)?.iter().enumerate() {
        if index > 0 {
            output.extend(separator.clone());
        }
        transcribe(group.stream(), round, output)?;
    }
    Some(())
}

/// The names behind a `$`.
fn variables(body: TokenStream, names: &mut BTreeSet<String>) {
    let mut is_behind_dollar = false;
    for token in body {
        match &token {
            TokenTree::Ident(name) if is_behind_dollar => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => variables(group.stream(), names),
            _ => {}
        }
        is_behind_dollar = matches!(&token, TokenTree::Punct(it) if it.as_char() == '$');
    }
}

fn count(tokens: &TokenStream) -> usize {
    let of = |token: TokenTree| match token {
        TokenTree::Group(group) => 1 + count(&group.stream()),
        _ => 1,
    };
    tokens.clone().into_iter().map(of).sum()
}

/// Two signs around tokens.
fn around(open: char, tokens: TokenStream, close: char) -> TokenStream {
    let sign = |sign| TokenTree::Punct(Punct::new(sign, Spacing::Alone));
    let begin = TokenStream::from(sign(open));
    begin
        .into_iter()
        .chain(tokens)
        .chain([sign(close)])
        .collect()
}

#[cfg(test)]
mod tests;
