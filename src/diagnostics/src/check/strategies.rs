//! Which variable holds the strategy that a diagnostic speaks of. The process that finds a model
//! outside a scope knows the strategy's kind but not what the notebook calls it.

use proc_macro2::{TokenStream, TokenTree};

use super::calls::DEEPEST;
use super::cell::with_tokens;
use crate::Diagnostic;
use crate::rules::ModelOutsideScope;

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

/// Replaces the placeholder in the fix of SC0201 by the variable's name.
pub fn name_strategy(diagnostic: &mut Diagnostic, variable: &str) {
    let placeholder = ModelOutsideScope::build_inside(ModelOutsideScope::STRATEGY);
    for fix in &mut diagnostic.fixes {
        if *fix == placeholder {
            *fix = ModelOutsideScope::build_inside(variable);
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
        let finding = || {
            let mut diagnostic = Diagnostic::new("SC0201", Severity::Error, "outside");
            diagnostic
                .fixes
                .push(ModelOutsideScope::build_inside("strategy"));
            diagnostic.fix("pass `strategy = none`")
        };
        let mut named = finding();
        name_strategy(&mut named, "two");
        assert_eq!(named.fixes[0], ModelOutsideScope::build_inside("two"));
        assert!(named.fixes[0].title.contains("`%%scope two`"));
        assert_eq!(named.fixes[1], finding().fixes[1]);
    }
}
