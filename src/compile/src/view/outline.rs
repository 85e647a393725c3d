//! The outline of a Rust source: its items and their signatures, without the bodies of functions.
//!
//! rust-analyzer names the types of variables by signatures. Bodies, tables and the attributes that
//! only the compiler reads are most of what there is to parse in the standard library and in burn, and
//! in their macros they are expanded and parsed again for every integer type. A body is kept where a type
//! hangs on it: behind `-> impl Trait`, and that of a `const fn`, which may be the length of an
//! array. Documentation is kept except in macros.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Attributes that say nothing about types, nor about what is offered for completion.
const FOR_THE_COMPILER: [&str; 16] = [
    "allow",
    "cold",
    "inline",
    "must_use",
    "optimize",
    "rustc_allow_const_fn_unstable",
    "rustc_as_ptr",
    "rustc_confusables",
    "rustc_const_stable",
    "rustc_const_unstable",
    "rustc_diagnostic_item",
    "rustc_inherit_overflow_checks",
    "rustc_never_returns_null_ptr",
    "rustc_on_unimplemented",
    "stable",
    "track_caller",
];

/// A table of so many bytes is left out.
const LONG_TABLE: usize = 200;

/// The outline of `text`; `None` when it cannot be read as Rust.
pub fn outline(text: &str) -> Option<String> {
    let tokens = TokenStream::from_str(text).ok()?;
    let mut cuts = Cuts::default();
    cuts.visit(tokens, Where::Code);
    Some(cuts.apply(text))
}

/// Writes the outlines of all sources in the folder `from` into `to`, without tests.
pub fn folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if is_test {
            continue;
        }
        if path.is_dir() {
            folder(&path, &to.join(name))?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            fs::write(to.join(name), outline(&text).unwrap_or(text))?;
        }
    }
    Ok(())
}

/// Where tokens stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Code,
    /// In the definition of a macro.
    Definition,
    /// In the arguments of a macro, which may ask for every one of their tokens.
    Call,
}

/// What is left out, in order.
#[derive(Default)]
struct Cuts(Vec<Range<usize>>);

impl Cuts {
    fn visit(&mut self, tokens: TokenStream, place: Where) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let Some(function) = Function::at(&tokens, at) {
                if place == Where::Definition || !function.is_needed {
                    let span = function.body.span().byte_range();
                    self.0.push(span.start + 1..span.end - 1);
                }
                at = function.end;
                continue;
            }
            match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(attribute) = needless_attribute(&tokens[at..], place) {
                        let start = punct.span().byte_range().start;
                        self.0.push(start..attribute.span().byte_range().end);
                        at += 2;
                        continue;
                    }
                }
                TokenTree::Group(table) if is_table(table, &tokens[..at]) => {
                    let span = table.span().byte_range();
                    self.0.push(span.start + 1..span.end - 1);
                }
                TokenTree::Group(group) => {
                    let inside = macro_before(&tokens[..at]).unwrap_or(place);
                    self.visit(group.stream(), inside);
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn apply(&self, text: &str) -> String {
        let mut outline = String::with_capacity(text.len());
        let mut end = 0;
        for cut in &self.0 {
            // A documentation comment has one span for both of its tokens.
            if cut.start >= end && cut.end >= cut.start {
                outline += &text[end..cut.start];
                end = cut.end;
            }
        }
        outline + &text[end..]
    }
}

/// A function with a body.
struct Function<'a> {
    body: &'a Group,
    /// Whether a type hangs on the body.
    is_needed: bool,
    /// The index behind the body.
    end: usize,
}

impl<'a> Function<'a> {
    /// The one whose `fn` is the token `at`.
    fn at(tokens: &'a [TokenTree], at: usize) -> Option<Self> {
        let is_name = |token: &TokenTree| match token {
            TokenTree::Ident(_) => true,
            // The name is a parameter of a macro.
            TokenTree::Punct(punct) => punct.as_char() == '$',
            _ => false,
        };
        if !is_ident(tokens.get(at)?, "fn") || !is_name(tokens.get(at + 1)?) {
            return None;
        }
        let before = tokens[..at].iter().rev();
        let is_const = before
            .take_while(|token| matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_)))
            .any(|token| is_ident(token, "const"));
        let mut returns_impl = false;
        for (index, token) in tokens.iter().enumerate().skip(at + 1) {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
                TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                    return Some(Self {
                        body,
                        is_needed: is_const || returns_impl,
                        end: index + 1,
                    });
                }
                token => returns_impl |= mentions_impl(token),
            }
        }
        None
    }
}

/// Also where `impl Trait` is a parameter: there it does no harm.
fn mentions_impl(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.stream().into_iter().any(|it| mentions_impl(&it)),
        token => is_ident(token, "impl"),
    }
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

/// The brackets of an attribute that is left out.
fn needless_attribute(tokens: &[TokenTree], place: Where) -> Option<&Group> {
    match tokens.get(1)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            let first = group.stream().into_iter().next()?;
            let is_needless = FOR_THE_COMPILER.iter().any(|name| is_ident(&first, name));
            let is_left_out = match place {
                Where::Code => is_needless,
                Where::Definition => is_needless || is_ident(&first, "doc"),
                Where::Call => false,
            };
            is_left_out.then_some(group)
        }
        _ => None,
    }
}

/// Whether this is the value of a constant: `= [1, 2, …]`.
fn is_table(group: &Group, before: &[TokenTree]) -> bool {
    let span = group.span().byte_range();
    group.delimiter() == Delimiter::Bracket
        && span.len() > LONG_TABLE
        && matches!(before.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '=')
}

/// Whether what comes next is a macro's definition, `macro_rules! name` or `macro name`, or its
/// arguments, `name!`.
fn macro_before(before: &[TokenTree]) -> Option<Where> {
    let is_bang = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == '!');
    match before {
        [.., TokenTree::Ident(_), last] if is_bang(last) => Some(Where::Call),
        [.., name, bang, TokenTree::Ident(_)] if is_bang(bang) => {
            is_ident(name, "macro_rules").then_some(Where::Definition)
        }
        [.., word, TokenTree::Ident(_)] if is_ident(word, "macro") => Some(Where::Definition),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_stay_and_bodies_go() {
        for (text, expected) in [
            ("fn f(x: u8) -> u8 { x + 1 }", "fn f(x: u8) -> u8 {}"),
            (
                "impl A { /// Adds.\n pub fn g<T: B>(&self) -> T where T: C { loop {} } }",
                "impl A { /// Adds.\n pub fn g<T: B>(&self) -> T where T: C {} }",
            ),
            (
                "fn h() -> impl Iterator<Item = u8> { 0..3 }",
                "fn h() -> impl Iterator<Item = u8> { 0..3 }",
            ),
            (
                "pub const fn n() -> usize { 3 }",
                "pub const fn n() -> usize { 3 }",
            ),
            (
                "trait T { fn a(); fn b() { 1 } const C: u8 = { 2 }; }",
                "trait T { fn a(); fn b() {} const C: u8 = { 2 }; }",
            ),
            (
                "type F = fn(u8) -> u8; struct S { x: u8 }",
                "type F = fn(u8) -> u8; struct S { x: u8 }",
            ),
            (
                "macro_rules! m { ($n:ident) => {\n/// Says ü.\n#[doc = \"x\"]\npub const fn $n() { 1 } } }",
                "macro_rules! m { ($n:ident) => {\n\n\npub const fn $n() {} } }",
            ),
            (
                "m! { #[stable(feature = \"x\")] fn f() { 1 } }",
                "m! { #[stable(feature = \"x\")] fn f() {} }",
            ),
            (
                "#[inline] #[stable(feature = \"x\")]\n#[lang = \"y\"] #[doc = \"z\"] struct A;",
                " \n#[lang = \"y\"] #[doc = \"z\"] struct A;",
            ),
            (
                "mod x { fn a() { 1 } } fn b() { 2 } // end",
                "mod x { fn a() {} } fn b() {} // end",
            ),
        ] {
            assert_eq!(outline(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(outline("fn f( {"), None);
        let table = format!("static T: [u8; 99] = [{}];", "1, ".repeat(99));
        assert_eq!(outline(&table).as_deref(), Some("static T: [u8; 99] = [];"));
    }
}
