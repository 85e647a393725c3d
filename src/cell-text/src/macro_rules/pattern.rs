//! The left side of a rule of `macro_rules!`: what it matches, and what it binds.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser, discouraged::Speculative};
use syn::{Block, Expr, Lifetime, Lit, Meta, Pat, Path, Stmt, Token, Type, Visibility};

/// A part of a pattern.
pub enum Pattern {
    /// `$name:kind`
    Variable { name: String, kind: String },
    /// `$( … ) separator operator`
    Repetition {
        parts: Vec<Self>,
        separator: Option<TokenTree>,
        operator: char,
    },
    /// Brackets with parts between them.
    Brackets(Delimiter, Vec<Self>),
    /// A name, a sign or a literal.
    Token(TokenTree),
}

/// What the variables of a pattern stand for.
#[derive(Clone, Default)]
pub struct Bindings(BTreeMap<String, Binding>);

#[derive(Clone)]
enum Binding {
    One {
        kind: String,
        tokens: TokenStream,
    },
    /// Of each round of a repetition.
    Rounds(Vec<Bindings>),
}

impl Bindings {
    /// The kind of a variable, and the tokens that it stands for.
    pub fn get(&self, name: &Ident) -> Option<(&str, TokenStream)> {
        match self.0.get(&name.to_string())? {
            Binding::One { kind, tokens } => Some((kind, tokens.clone())),
            Binding::Rounds(_) => None,
        }
    }

    /// The bindings of each round of a repetition that uses these variables; `None`: they do not say how many rounds
    /// there are.
    pub fn rounds(&self, used: &BTreeSet<String>) -> Option<Vec<Self>> {
        let repeated = used.iter().filter_map(|name| match self.0.get(name)? {
            Binding::Rounds(rounds) => Some(rounds),
            Binding::One { .. } => None,
        });
        let mut rounds: Option<Vec<Self>> = None;
        for more in repeated {
            let so_far = rounds.get_or_insert_with(|| vec![self.clone(); more.len()]);
            if so_far.len() != more.len() {
                return None;
            }
            for (round, more) in so_far.iter_mut().zip(more) {
                round.0.extend(more.0.clone());
            }
        }
        rounds
    }
}

impl Pattern {
    /// The parts of a pattern.
    pub fn list(tokens: TokenStream) -> syn::Result<Vec<Self>> {
        let wrong = || syn::Error::new(proc_macro2::Span::call_site(), "not a pattern");
        let mut parts = Vec::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            parts.push(match token {
                TokenTree::Punct(dollar) if dollar.as_char() == '$' => match tokens.next() {
                    Some(TokenTree::Ident(name)) => {
                        let colon = tokens.next();
                        let is_colon =
                            matches!(colon, Some(TokenTree::Punct(it)) if it.as_char() == ':');
                        let Some(TokenTree::Ident(kind)) = tokens.next().filter(|_| is_colon)
                        else {
                            return Err(wrong());
                        };
                        Self::Variable {
                            name: name.to_string(),
                            kind: kind.to_string(),
                        }
                    }
                    Some(TokenTree::Group(group)) => {
                        let (separator, operator) = repetition(&mut tokens).ok_or_else(wrong)?;
                        Self::Repetition {
                            parts: Self::list(group.stream())?,
                            separator,
                            operator,
                        }
                    }
                    _ => return Err(wrong()),
                },
                TokenTree::Group(group) => {
                    Self::Brackets(group.delimiter(), Self::list(group.stream())?)
                }
                token => Self::Token(token),
            });
        }
        Ok(parts)
    }

    /// Matches all parts, and nothing may be left.
    pub fn read_all(
        parts: &[Self],
        input: ParseStream<'_>,
        into: &mut Bindings,
    ) -> syn::Result<()> {
        for part in parts {
            part.read(input, into)?;
        }
        match input.is_empty() {
            true => Ok(()),
            false => Err(input.error("too much")),
        }
    }

    fn read(&self, input: ParseStream<'_>, into: &mut Bindings) -> syn::Result<()> {
        match self {
            Self::Variable { name, kind } => {
                let begin = input.cursor();
                fragment(kind, input)?;
                let tokens = between(begin, input.cursor());
                let kind = kind.clone();
                into.0.insert(name.clone(), Binding::One { kind, tokens });
                Ok(())
            }
            Self::Repetition {
                parts,
                separator,
                operator,
            } => Self::repeated(parts, separator.as_ref(), *operator, input, into),
            Self::Brackets(delimiter, parts) => {
                let group: Group = input.parse()?;
                if group.delimiter() != *delimiter {
                    return Err(input.error("other brackets"));
                }
                let read = |input: ParseStream<'_>| Self::read_all(parts, input, into);
                read.parse2(group.stream())
            }
            Self::Token(expected) => {
                let found: TokenTree = input.parse()?;
                match found.to_string() == expected.to_string() {
                    true => Ok(()),
                    false => Err(input.error("another token")),
                }
            }
        }
    }

    fn repeated(
        parts: &[Self],
        separator: Option<&TokenTree>,
        operator: char,
        input: ParseStream<'_>,
        into: &mut Bindings,
    ) -> syn::Result<()> {
        let mut rounds = Vec::new();
        while !input.is_empty() && (operator != '?' || rounds.is_empty()) {
            let ahead = input.fork();
            let mut round = Bindings::default();
            let has_separator = match separator.filter(|_| !rounds.is_empty()) {
                Some(separator) => Self::Token(separator.clone())
                    .read(&ahead, &mut round)
                    .is_ok(),
                None => true,
            };
            let mut parts = parts.iter();
            if !has_separator || !parts.all(|part| part.read(&ahead, &mut round).is_ok()) {
                break;
            }
            // What matches nothing would match for ever.
            if ahead.cursor() == input.cursor() {
                break;
            }
            input.advance_to(&ahead);
            rounds.push(round);
        }
        if operator == '+' && rounds.is_empty() {
            return Err(input.error("at least one"));
        }
        for name in parts.iter().flat_map(Self::names) {
            into.0.insert(name, Binding::Rounds(rounds.clone()));
        }
        Ok(())
    }

    /// The variables in it.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Variable { name, .. } => vec![name.clone()],
            Self::Repetition { parts, .. } | Self::Brackets(_, parts) => {
                parts.iter().flat_map(Self::names).collect()
            }
            Self::Token(_) => Vec::new(),
        }
    }
}

/// What stands behind the brackets of a repetition: its separator and its operator.
pub fn repetition(
    tokens: &mut Peekable<impl Iterator<Item = TokenTree>>,
) -> Option<(Option<TokenTree>, char)> {
    let operator = |token: &TokenTree| match token {
        TokenTree::Punct(sign) if "*+?".contains(sign.as_char()) => Some(sign.as_char()),
        _ => None,
    };
    let first = tokens.next()?;
    if let Some(found) = operator(&first) {
        // A `+` or `*` may itself be the separator.
        return match tokens.peek().and_then(operator) {
            Some(second) if found != '?' && second != '?' => {
                tokens.next();
                Some((Some(first), second))
            }
            _ => Some((None, found)),
        };
    }
    // A separator of two signs is rare, and left to rustc.
    let found = tokens.next().as_ref().and_then(operator)?;
    Some((Some(first), found))
}

/// Reads what a variable of this kind stands for.
fn fragment(kind: &str, input: ParseStream<'_>) -> syn::Result<()> {
    match kind {
        "ident" => drop(Ident::parse_any(input)?),
        "expr" | "expr_2021" => drop(input.parse::<Expr>()?),
        "ty" => drop(input.parse::<Type>()?),
        "path" => drop(input.parse::<Path>()?),
        "pat" => drop(Pat::parse_multi_with_leading_vert(input)?),
        "pat_param" => drop(Pat::parse_single(input)?),
        "stmt" => drop(input.parse::<Stmt>()?),
        "block" => drop(input.parse::<Block>()?),
        "item" => drop(input.parse::<syn::Item>()?),
        "vis" => drop(input.parse::<Visibility>()?),
        "literal" => {
            input.parse::<Option<Token![-]>>()?;
            drop(input.parse::<Lit>()?);
        }
        "lifetime" => drop(input.parse::<Lifetime>()?),
        "meta" => drop(input.parse::<Meta>()?),
        "tt" => drop(input.parse::<TokenTree>()?),
        _ => return Err(input.error("a kind of its own")),
    }
    Ok(())
}

/// The tokens between two places.
pub fn between(mut begin: Cursor<'_>, end: Cursor<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while begin != end {
        let Some((token, next)) = begin.token_tree() else {
            break;
        };
        tokens.extend([token]);
        begin = next;
    }
    tokens
}
