//! How a name is used that rustc does not know: what stands before it, what it is called with, what is assigned to it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use stratoscope_cell_syntax::Syntax;

use super::super::calls::{DEEPEST, inside_of, slice, span_of};
use super::super::segments;
use super::keys;
use crate::CellSpan;

/// A name with its receiver and what follows it, as far as a habit may write it in another way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// What stands before the dot or the index.
    pub receiver: Option<CellSpan>,
    /// The names before this one and `::`, or a root and `.`: `np.random` of `np.random.seed(42)`.
    pub path: Vec<String>,
    /// The name itself; empty for an index.
    pub name: String,
    /// From the receiver or the path to the end of the name.
    pub named: CellSpan,
    /// The values in the brackets behind it, and where these end.
    pub call: Option<(Vec<String>, usize)>,
    /// The values with names in these brackets.
    pub keys: Vec<(String, String)>,
    /// What stands in square brackets behind it, and where these end.
    pub index: Option<(String, usize)>,
    /// A second index behind the first, and where it ends.
    pub second: Option<(String, usize)>,
    /// What is assigned to it, and where that ends.
    pub assigned: Option<(String, usize)>,
    /// Whether a `for` goes over it.
    pub is_iterated: bool,
    /// Whether a `?` follows the call or the index.
    pub is_tried: bool,
    /// Whether a dot follows.
    pub goes_on: bool,
    /// The beginning of the names of the variables of a first layer: `dense`, of a BERT `bert`.
    pub encoder: &'static str,
    /// What follows that dot: `value_counts()` of `data.label.value_counts()`.
    pub next: Option<Box<Usage>>,
}

/// A way to write a usage as the form of a habit, and where it ends.
pub(super) struct Form {
    pub text: String,
    pub end: usize,
    /// Whether a `?` behind the end belongs to it.
    pub takes_mark: bool,
}

impl Usage {
    /// The name that stands at a place, or the index there.
    pub fn at(cell: &Syntax, span: CellSpan, is_root: bool) -> Option<Self> {
        find(cell.text(), cell.tokens()?, span, is_root, 0)
    }

    /// The same where a value is called as a function: `model(texts)`.
    pub fn of_called_value(self) -> Self {
        let value = self.named;
        Usage {
            receiver: Some(value),
            name: String::new(),
            path: Vec::new(),
            ..self
        }
    }

    /// The forms that this usage may have in the table, the most exact first: those with what follows its dot before those
    /// without.
    pub fn forms(&self) -> Vec<Form> {
        let own = self.own_forms();
        let next = self.next.as_ref().map(|it| it.own_forms());
        // What follows a second index follows no first one.
        let last = self.second.as_ref().map(|(_, end)| *end);
        let mut forms = Vec::new();
        for next in next.iter().flatten() {
            // `*` stands for any name, and a dot at the end for any that follows.
            let is_named = |it: &&Form| it.text != "*" && !it.text.ends_with('.');
            if is_named(&next) {
                let own = own.iter().filter(|it| last.is_none_or(|end| it.end == end));
                forms.extend(own.filter(is_named).map(|own| Form {
                    text: format!("{}.{}", own.text, next.text),
                    ..*next
                }));
            }
        }
        forms.extend(own);
        forms
    }

    /// Where a `?` stands behind it, or behind what follows its dot, if that is meant.
    pub fn is_tried_at(&self, end: usize) -> bool {
        match &self.next {
            Some(next) if next.named.end <= end => next.is_tried,
            _ => self.is_tried,
        }
    }

    fn own_forms(&self) -> Vec<Form> {
        let mut forms = Vec::new();
        let name = self.name.as_str();
        let form = |text: String, end: usize, takes_mark: bool| Form {
            text,
            end,
            takes_mark,
        };
        if let Some((values, end)) = &self.call {
            let blanks = vec!["_"; values.len()].join(", ");
            if let Some(with_keys) = keys::form(&blanks, &self.keys) {
                forms.push(form(format!("{name}({with_keys})"), *end, true));
            }
            if let [value] = values.as_slice() {
                forms.push(form(format!("{name}({value})"), *end, true));
                if let Some(kind) = kind_of_literal(value) {
                    forms.push(form(format!("{name}({kind})"), *end, true));
                }
            }
            forms.push(form(format!("{name}({blanks})"), *end, true));
            forms.push(form(format!("{name}(..)"), *end, true));
            return forms;
        }
        if let Some((value, end)) = &self.index {
            if let Some((second, end)) = &self.second {
                if second.contains("..") && value.starts_with('"') {
                    forms.push(form(format!("{name}[{value}][..]"), *end, true));
                }
                forms.push(form(format!("{name}[\"_\"][{second}]"), *end, true));
                forms.push(form(format!("{name}[{value}][_]"), *end, true));
            }
            forms.push(form(format!("{name}[{value}]"), *end, true));
            if value.starts_with('"') {
                forms.push(form(format!("{name}[\"_\"]"), *end, true));
            }
            if value.contains("..") {
                forms.push(form(format!("{name}[..]"), *end, true));
            }
            forms.push(form(format!("{name}[_]"), *end, true));
        }
        if let Some((value, end)) = &self.assigned {
            forms.push(form(format!("{name} = {value}"), *end, false));
            forms.push(form(format!("{name} = _"), *end, false));
        }
        if !name.is_empty() && self.goes_on {
            forms.push(form(format!("{name}."), self.named.end, false));
        }
        if !name.is_empty() {
            forms.push(form(name.to_owned(), self.named.end, false));
            if name.starts_with("val_") {
                forms.push(form("val_*".to_owned(), self.named.end, false));
            }
            forms.push(form("*".to_owned(), self.named.end, false));
        }
        forms
    }
}

/// `""`, `1`, `1.0` or `(..)` for a text, an integer, a float or a tuple that is written out.
pub(super) fn kind_of_literal(value: &str) -> Option<&'static str> {
    let number = value.strip_prefix('-').unwrap_or(value);
    let quotes = value.matches('"').count();
    if value.starts_with('(') && value.ends_with(')') && value.contains(',') {
        Some("(..)")
    } else if value.starts_with('"') && value.ends_with('"') && quotes == 2 {
        Some("\"\"")
    } else if !number.is_empty() && number.chars().all(|it| it.is_ascii_digit() || it == '_') {
        Some("1")
    } else if number.starts_with(|it: char| it.is_ascii_digit()) && number.parse::<f64>().is_ok() {
        Some("1.0")
    } else {
        None
    }
}

fn find(
    text: &str,
    tokens: TokenStream,
    span: CellSpan,
    is_root: bool,
    depth: usize,
) -> Option<Usage> {
    if depth > DEEPEST {
        return None;
    }
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        let place = span_of(tree.span());
        if place.end < span.start || place.start > span.end {
            continue;
        }
        match tree {
            TokenTree::Ident(name) if place == span => {
                let usage = read(text, &trees, index, name.to_string());
                return Some(if is_root {
                    along(text, &trees, index, usage)
                } else {
                    usage
                });
            }
            TokenTree::Group(group) => {
                let is_index = group.delimiter() == Delimiter::Bracket && index > 0;
                let is_whole = place.end == span.end && span.start < place.start;
                let is_meant = place == span || is_whole || inside_of(group) == span;
                if is_index && is_meant {
                    return Some(of_index(text, &trees, index));
                }
                let inner = find(text, group.stream(), span, is_root, depth + 1);
                if inner.is_some() {
                    return inner;
                }
            }
            _ => {}
        }
    }
    None
}

fn sign(trees: &[TokenTree], at: usize) -> Option<char> {
    match trees.get(at) {
        Some(TokenTree::Punct(sign)) => Some(sign.as_char()),
        _ => None,
    }
}

/// The first token of the expression whose last one stands at `at`: `f(x)?.rows` of its `rows`.
pub(super) fn begin_of(trees: &[TokenTree], at: usize) -> usize {
    let mut at = at;
    loop {
        if let Some(name) = behind_types(trees, at) {
            at = name;
        }
        while at > 0
            && (matches!(trees[at], TokenTree::Group(_)) || sign(trees, at) == Some('?'))
            && (matches!(&trees[at - 1], TokenTree::Group(_))
                || sign(trees, at - 1) == Some('?')
                || is_value_name(&trees[at - 1]))
        {
            at -= 1;
        }
        if at >= 2
            && sign(trees, at - 1) == Some('!')
            && matches!(trees[at - 2], TokenTree::Ident(_))
        {
            // The brackets of a macro.
            at -= 2;
        }
        if at >= 2 && sign(trees, at - 1) == Some('.') && sign(trees, at - 2) != Some('.') {
            at -= 2;
        } else if at >= 3 && sign(trees, at - 1) == Some(':') && sign(trees, at - 2) == Some(':') {
            at -= 3;
        } else {
            return at;
        }
    }
}

/// The name of a method with types, whose brackets stand at a place: `collect` of `collect::<Vec<_>>()`.
fn behind_types(trees: &[TokenTree], at: usize) -> Option<usize> {
    let is_call = matches!(&trees[at], TokenTree::Group(_)) && at > 0;
    if !is_call || sign(trees, at - 1) != Some('>') {
        return None;
    }
    let mut depth = 0_usize;
    for index in (0..at).rev() {
        match sign(trees, index) {
            Some('>') => depth += 1,
            Some('<') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            let is_path = index >= 3
                && sign(trees, index - 1) == Some(':')
                && sign(trees, index - 2) == Some(':');
            return (is_path && is_value_name(&trees[index - 3])).then(|| index - 3);
        }
    }
    None
}

/// Whether a name can end an expression that brackets follow: `in [1, 2]` begins another one.
fn is_value_name(tree: &TokenTree) -> bool {
    const WORDS: [&str; 8] = [
        "in", "return", "match", "if", "while", "else", "break", "move",
    ];
    matches!(tree, TokenTree::Ident(name) if !WORDS.contains(&name.to_string().as_str()))
}

fn read(text: &str, trees: &[TokenTree], index: usize, name: String) -> Usage {
    let span = span_of(trees[index].span());
    let begin = begin_of(trees, index);
    let start = span_of(trees[begin].span()).start;
    let is_in = |it: &TokenTree| matches!(it, TokenTree::Ident(word) if *word == "in");
    let mut usage = Usage {
        is_iterated: begin > 0 && is_in(&trees[begin - 1]),
        name,
        named: CellSpan {
            start,
            end: span.end,
        },
        ..Usage::default()
    };
    if begin < index && sign(trees, index - 1) == Some('.') {
        let end = span_of(trees[index - 2].span()).end;
        usage.receiver = Some(CellSpan { start, end });
    } else if begin < index {
        let names = trees[begin..index].iter();
        let names = names.filter(|it| matches!(it, TokenTree::Ident(_)));
        usage.path = names.map(ToString::to_string).collect();
    }
    behind(text, trees, index + 1, usage)
}

/// The brackets and the assignment that follow.
fn behind(text: &str, trees: &[TokenTree], mut next: usize, mut usage: Usage) -> Usage {
    match trees.get(next) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            let parts = segments::read(text, group, &|_| false);
            let values = parts.operands.into_iter().map(|(operand, _)| operand.text);
            let named = parts.named.into_iter();
            let named = named.map(|(argument, _)| (argument.name, argument.value));
            let (values, keys) = keys::placed(&usage.name, values.collect(), named.collect());
            usage.call = Some((values, span_of(group.span()).end));
            usage.keys = keys;
            next += 1;
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            let inside = slice(text, inside_of(group)).trim().to_owned();
            usage.index = Some((inside, span_of(group.span()).end));
            next += 1;
            if let Some(TokenTree::Group(second)) = trees.get(next) {
                let is_index = second.delimiter() == Delimiter::Bracket;
                next += usize::from(is_index);
                let inside = slice(text, inside_of(second)).replace(' ', "");
                usage.second = is_index.then(|| (inside, span_of(second.span()).end));
            }
        }
        _ => {}
    }
    usage.is_tried = sign(trees, next) == Some('?');
    usage.goes_on = sign(trees, next) == Some('.') && sign(trees, next + 1) != Some('.');
    if sign(trees, next) == Some('=') && sign(trees, next + 1) != Some('=') {
        let value = trees[next + 1..].iter();
        let value =
            value.take_while(|it| !matches!(it, TokenTree::Punct(it) if it.as_char() == ';'));
        let value: Vec<CellSpan> = value.map(|it| span_of(it.span())).collect();
        if let (Some(first), Some(last)) = (value.first(), value.last()) {
            let whole = CellSpan {
                start: first.start,
                end: last.end,
            };
            usage.assigned = Some((slice(text, whole).to_owned(), whole.end));
        }
    }
    if usage.goes_on
        && let Some(TokenTree::Ident(name)) = trees.get(next + 1)
    {
        let following = Usage {
            name: name.to_string(),
            named: span_of(name.span()),
            ..Usage::default()
        };
        usage.next = Some(Box::new(behind(text, trees, next + 2, following)));
    }
    usage
}

/// An index of a value: the group at `index`.
fn of_index(text: &str, trees: &[TokenTree], index: usize) -> Usage {
    let begin = begin_of(trees, index);
    let start = span_of(trees[begin].span()).start;
    let end = span_of(trees[index - 1].span()).end;
    let usage = Usage {
        receiver: Some(CellSpan { start, end }),
        named: CellSpan { start, end },
        ..Usage::default()
    };
    behind(text, trees, index, usage)
}

/// Goes from the root of a path along its dots and colons to its last name: `np.random.seed(42)`.
fn along(text: &str, trees: &[TokenTree], index: usize, root: Usage) -> Usage {
    let mut names = vec![root.name.clone()];
    let mut at = index;
    loop {
        let next = if sign(trees, at + 1) == Some('.') {
            at + 2
        } else if sign(trees, at + 1) == Some(':') && sign(trees, at + 2) == Some(':') {
            at + 3
        } else {
            break;
        };
        match trees.get(next) {
            Some(TokenTree::Ident(name)) => names.push(name.to_string()),
            _ => break,
        }
        at = next;
        if matches!(trees.get(at + 1), Some(TokenTree::Group(_))) {
            break;
        }
    }
    if at == index {
        return root;
    }
    let name = names.pop().unwrap_or_default();
    let start = span_of(trees[index].span()).start;
    let usage = Usage {
        path: names,
        name,
        named: CellSpan {
            start,
            end: span_of(trees[at].span()).end,
        },
        ..Usage::default()
    };
    behind(text, trees, at + 1, usage)
}
