//! A cell that is a program: it defines `main`, which nobody calls.

use proc_macro2::{Delimiter, TokenTree};

use super::calls::span_of;
use crate::rules::MainNotCalled;
use crate::{Diagnostic, Place, Rule};

/// SC1016, if the function stands at the top of the cell and its name nowhere else.
pub(super) fn not_called(text: &str, trees: &[TokenTree]) -> Option<Diagnostic> {
    let is_word =
        |at: usize, word: &str| matches!(trees.get(at), Some(TokenTree::Ident(it)) if it == word);
    let at = (0..trees.len()).find(|&at| is_word(at, "fn") && is_word(at + 1, "main"))?;
    let is_async = at > 0 && is_word(at - 1, "async");
    let names = text.matches("main").count();
    if names != 1 || is_async {
        return None;
    }
    let block = trees[at..].iter().position(
        |tree| matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
    )?;
    let returns = trees[at..at + block].iter();
    let fails = returns.into_iter().any(|tree| tree.to_string() == "Result");
    let name = span_of(trees[at + 1].span());
    let end = text.trim_end().len();
    let facts = MainNotCalled {
        place: Place::Span(name),
        call: if fails { "main()?;" } else { "main();" }.to_owned(),
        end: Place::span(end, end),
    };
    Some(facts.diagnostic())
}
