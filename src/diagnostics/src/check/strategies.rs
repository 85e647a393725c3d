//! Which variable holds the strategy that a diagnostic speaks of. The process that finds a model
//! outside a scope knows the strategy's kind but not what the notebook calls it.

use proc_macro2::{TokenStream, TokenTree};

use super::calls::DEEPEST;
use super::cell::with_tokens;
use crate::Diagnostic;

/// What stands for the variable in a rule's own text.
const PLACEHOLDER: &str = "strategy";

/// The variables that a cell binds to a strategy it makes, in the order of the text:
/// `let mirrored = MirroredStrategy::logical(2)?;`.
pub fn strategies_made_in(text: &str) -> Vec<String> {
    if !text.contains("Strategy") {
        return Vec::new();
    }
    with_tokens(text, |tokens, _| {
        let mut names = Vec::new();
        find(tokens, 0, &mut names);
        names.dedup();
        names
    })
    .unwrap_or_default()
}

/// Writes the variable's name into the ways out of SC0201.
pub fn name_strategy(diagnostic: &mut Diagnostic, variable: &str) {
    if diagnostic.code != "SC0201" {
        return;
    }
    for fix in &mut diagnostic.fixes {
        for before in ["scope!(", "%%scope "] {
            let placeholder = format!("{before}{PLACEHOLDER}");
            fix.title = fix
                .title
                .replace(&placeholder, &format!("{before}{variable}"));
        }
    }
}

fn find(tokens: TokenStream, depth: usize, names: &mut Vec<String>) {
    if depth > DEEPEST {
        return;
    }
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let is_end = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ';');
    for statement in trees.split(is_end) {
        for tree in statement {
            if let TokenTree::Group(group) = tree {
                find(group.stream(), depth + 1, names);
            }
        }
        let [
            TokenTree::Ident(word),
            TokenTree::Ident(name),
            TokenTree::Punct(equals),
            value @ ..,
        ] = statement
        else {
            continue;
        };
        let makes = |pair: &[TokenTree]| {
            matches!(pair, [TokenTree::Ident(kind), TokenTree::Punct(colon)]
                if kind.to_string().ends_with("Strategy") && colon.as_char() == ':')
        };
        if word == "let" && equals.as_char() == '=' && value.windows(2).any(makes) {
            names.push(name.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(strategies_made_in(text), expected, "{text}");
    }

    #[test]
    fn a_strategy_is_found_by_what_makes_it() {
        check(
            "let mirrored = MirroredStrategy::logical(2)?;\nlet x = 1;",
            &["mirrored"],
        );
        check(
            "{ let a = stratoscope::prelude::OneDeviceStrategy::new(cpu(0))?; }",
            &["a"],
        );
        check("let n = 1; // MirroredStrategy::", &[]);
        check("use MirroredStrategy as M; let n = 2;", &[]);
    }

    #[test]
    fn only_the_placeholder_is_replaced() {
        let told = || {
            Diagnostic::new("SC0201", Severity::Error, "outside `mirrored#1`'s scope")
                .fix("`scope!(strategy, { … });`, or `%%scope strategy`")
                .fix("pass `strategy = none`")
        };
        let mut named = told();
        name_strategy(&mut named, "two");
        assert_eq!(
            named.fixes[0].title,
            "`scope!(two, { … });`, or `%%scope two`"
        );
        assert_eq!(named.fixes[1], told().fixes[1]);
    }
}
