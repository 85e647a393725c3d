//! The procedural macro `scope!`, for plain crates and for functions; in a cell the kernel rewrites `scope!` instead.
//!
//! It is a procedural macro because it must read its body: a body of statements keeps its `let`s in the surrounding
//! scope, any other body is a value. The expansion calls `stratoscope::cell`. Start reading at [`scope`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Runs statements under a distribution strategy: `scope!(strategy, { … });`.
///
/// A body that ends in `;` is opened up: what its `let`s bind is there after the macro. Any other
/// body is a value: `let model = scope!(strategy, { …; model });`. A failing `?` in the body leaves
/// the scope; entering it is itself fallible, so the function around it returns a `Result`.
#[proc_macro]
pub fn scope(input: TokenStream) -> TokenStream {
    let mut operands: Vec<TokenTree> = input.into_iter().collect();
    if operands.last().is_some_and(is_comma) {
        operands.pop();
    }
    let body = match operands.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        other => return error(other.as_ref()),
    };
    match operands.pop() {
        Some(comma) if is_comma(&comma) && !operands.is_empty() => {}
        other => return error(other.as_ref()),
    }
    expand(operands.into_iter().collect(), &body)
}

fn expand(strategy: TokenStream, body: &Group) -> TokenStream {
    let last = body.stream().into_iter().last();
    let is_value =
        last.is_some_and(|token| !matches!(token, TokenTree::Punct(sign) if sign.as_char() == ';'));
    // A name that the body can neither see nor shadow.
    let guard = TokenTree::from(Ident::new("scope_guard", Span::mixed_site()));
    let mut tokens = parsed("let");
    tokens.extend([guard.clone()]);
    tokens.extend(parsed("= ::stratoscope::cell::guard"));
    let mut reference = parsed("&");
    reference.extend([TokenTree::from(Group::new(
        Delimiter::Parenthesis,
        strategy,
    ))]);
    tokens.extend([TokenTree::from(Group::new(
        Delimiter::Parenthesis,
        reference,
    ))]);
    tokens.extend(parsed("?;"));
    tokens.extend(body.stream());
    if is_value {
        return TokenTree::from(Group::new(Delimiter::Brace, tokens)).into();
    }
    tokens.extend(parsed("::core::mem::drop"));
    tokens.extend([TokenTree::from(Group::new(
        Delimiter::Parenthesis,
        guard.into(),
    ))]);
    tokens.extend(parsed(";"));
    tokens
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',')
}

/// Our own text, where each piece is complete.
fn parsed(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

fn error(place: Option<&TokenTree>) -> TokenStream {
    let span = place.map_or_else(Span::call_site, TokenTree::span);
    let text = "::core::compile_error!(\"`scope!` takes a strategy and a block: `scope!(strategy, { … });`\")";
    parsed(text)
        .into_iter()
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}
