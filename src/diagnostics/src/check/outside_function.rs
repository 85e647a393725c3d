//! Functions that use variables of the notebook, which Rust's functions do not see.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use stratoscope_cell_syntax::Syntax;
use syn::visit::{self, Visit};

use super::calls::{Found, span_of};
use super::our_words::function_around;
use super::slips::visit_all;
use super::{CellContext, fixed};
use crate::rules::VariableInFunction;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};

/// SC1015 in place of "cannot find value": one for all variables that the function lacks.
pub(super) fn answer(
    cell: &Syntax,
    message: &str,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    if !message.starts_with("cannot find value") {
        return None;
    }
    let name = cell.text().get(span.start..span.end)?;
    let function = function_around(cell, span)?;
    // A variable that the cell makes hides one of the notebook, whose type may be another.
    let found = Found::of(cell, &context.defined);
    let is_of_cell = |name: &str| found.as_ref().is_some_and(|it| it.bound.contains_key(name));
    if is_of_cell(name) || !context.variables.contains_key(name) {
        if !is_of_cell(name) {
            return None;
        }
        let facts = VariableInFunction {
            names: vec![name.to_owned()],
            parameters: format!("{name}: …"),
            places: vec![Place::Span(span)],
            function_place: Place::Span(span_of(function.sig.ident.span())),
            function: function.sig.ident.to_string(),
            edits: Vec::new(),
        };
        return Some(facts.diagnostic());
    }
    let mut used = variables_in(cell, &function, context);
    used.retain(|(name, _)| !is_of_cell(name));
    if !used.iter().any(|(other, _)| other == name) {
        used.insert(0, (name.to_owned(), span));
    }
    let parameters: Vec<(String, String)> = used
        .iter()
        .filter_map(|(name, _)| Some((name.clone(), parameter_type(context.variables.get(name)?))))
        .collect();
    let written = parameters.iter().map(|(name, it)| format!("{name}: {it}"));
    let written = written.collect::<Vec<_>>().join(", ");
    let edits = passed(cell, &function, &parameters, &written);
    let facts = VariableInFunction {
        names: used.iter().map(|(name, _)| name.clone()).collect(),
        parameters: written,
        places: used.iter().map(|(_, at)| Place::Span(*at)).collect(),
        function_place: Place::Span(span_of(function.sig.ident.span())),
        function: function.sig.ident.to_string(),
        edits: fixed::tried(cell, edits, context),
    };
    Some(facts.diagnostic())
}

/// The variables of the notebook that a function uses, each at its first place.
fn variables_in(
    cell: &Syntax,
    function: &syn::ImplItemFn,
    context: &CellContext,
) -> Vec<(String, CellSpan)> {
    let mut names = Own::default();
    names.visit_signature(&function.sig);
    names.visit_block(&function.block);
    let braces = function.block.brace_token.span;
    let (start, end) = (span_of(braces.open()).start, span_of(braces.close()).end);
    let mut used: Vec<(String, CellSpan)> = Vec::new();
    read(cell.tokens().unwrap_or_default(), &mut |name, at| {
        let is_inside = start <= at.start && at.end <= end;
        let is_new = is_inside && !used.iter().any(|(other, _)| other == name);
        if is_new && !names.0.contains(name) && context.variables.contains_key(name) {
            used.push((name.to_owned(), at));
        }
    });
    used
}

/// Names that a function binds itself.
#[derive(Default)]
struct Own(BTreeSet<String>);

impl<'ast> Visit<'ast> for Own {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

/// Each name that stands for a value: no field, no method, no part of a path, no name of an argument.
fn read(tokens: TokenStream, on_name: &mut dyn FnMut(&str, CellSpan)) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let sign = |at: Option<usize>| match at.and_then(|at| trees.get(at)) {
        Some(TokenTree::Punct(sign)) => Some(sign.as_char()),
        _ => None,
    };
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => read(group.stream(), on_name),
            TokenTree::Ident(name) => {
                let before = sign(at.checked_sub(1));
                let is_range = before == Some('.') && sign(at.checked_sub(2)) == Some('.');
                let after = (sign(Some(at + 1)), sign(Some(at + 2)));
                let is_named = after.0 == Some('=') && after.1 != Some('=') && before == Some(',');
                let is_part = before == Some('.') && !is_range
                    || before == Some(':')
                    || matches!(after.0, Some(':' | '!'));
                if !is_part && !is_named {
                    on_name(&name.to_string(), span_of(name.span()));
                }
            }
            _ => {}
        }
    }
}

/// The edits that pass variables to a function: its parameters, and a value for each in its calls. Empty if a call is not
/// written as one, as where the function is handed on.
fn passed(
    cell: &Syntax,
    function: &syn::ImplItemFn,
    parameters: &[(String, String)],
    written: &str,
) -> Vec<Edit> {
    let name = function.sig.ident.to_string();
    let insert = |at: usize, has_others: bool, text: &str| Edit {
        place: Place::span(at, at),
        replacement: format!("{}{text}", if has_others { ", " } else { "" }),
    };
    let close = span_of(function.sig.paren_token.span.close()).start;
    let inputs = &function.sig.inputs;
    let is_open = !inputs.is_empty() && !inputs.trailing_punct();
    let mut edits = vec![insert(close, is_open, written)];
    let values = parameters.iter().map(|(name, of_type)| {
        let is_lent = of_type.starts_with('&');
        format!("{}{name}", if is_lent { "&" } else { "" })
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let mut calls = 0;
    visit_all(cell, |it| {
        if let syn::Expr::Call(call) = it
            && matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident(&name))
        {
            calls += 1;
            let end = span_of(call.paren_token.span.close()).start;
            let is_open = !call.args.is_empty() && !call.args.trailing_punct();
            edits.push(insert(end, is_open, &values));
        }
    });
    let mut mentions = 0;
    read(cell.tokens().unwrap_or_default(), &mut |it, _| {
        mentions += usize::from(it == name)
    });
    if mentions == calls + 1 {
        edits
    } else {
        Vec::new()
    }
}

/// The type of a parameter for a variable of this type: numbers are copied, texts and all others are borrowed.
fn parameter_type(of_type: &str) -> String {
    const COPIED: [&str; 15] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
        "u32", "u64", "usize",
    ];
    if COPIED.contains(&of_type) || of_type.starts_with('&') {
        return of_type.to_owned();
    }
    let name = of_type.strip_prefix("stratoscope::").map_or(of_type, |it| {
        let head = it.split('<').next().unwrap_or(it);
        let at = head.rfind("::").map_or(0, |at| at + 2);
        &it[at..]
    });
    let heads = [
        ("ModelOf<Layers>", "Sequential"),
        (
            "ModelOf<SequenceClassifier>",
            "BertForSequenceClassification",
        ),
        ("ModelOf<TokenClassifier>", "BertForTokenClassification"),
        ("ModelOf<QuestionAnswerer>", "BertForQuestionAnswering"),
        ("ModelOf<MaskedLm>", "BertForMaskedLM"),
        ("ModelOf<MultipleChoice>", "BertForMultipleChoice"),
        ("ModelOf<SentenceEncoder>", "BertForSentenceEmbedding"),
        ("String", "str"),
    ];
    let known = heads
        .iter()
        .find(|(given, _)| without_paths(name) == *given);
    format!("&{}", known.map_or(name, |(_, short)| short))
}

fn without_paths(name: &str) -> String {
    let parts = name
        .split('<')
        .map(|it| it.rsplit("::").next().unwrap_or(it));
    parts.collect::<Vec<_>>().join("<")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;

    fn fixed(text: &str, at: &str) -> Option<Option<String>> {
        let start = text.rfind(at).expect("stands in the cell");
        let span = CellSpan {
            start,
            end: start + at.len(),
        };
        let variables = [
            ("data", "stratoscope::prelude::Dataset"),
            (
                "net",
                "stratoscope::train::ModelOf<stratoscope::train::sequential::Layers>",
            ),
            ("n", "i32"),
        ];
        let context = CellContext::with_variables(variables);
        let message = format!("cannot find value `{at}` in this scope");
        let found = Syntax::with(text, |cell| answer(cell, &message, span, &context))?;
        Some(found.fixes.first().and_then(|fix| apply(text, fix)))
    }

    #[test]
    fn a_variable_becomes_a_parameter() {
        for (text, at, expected) in [
            (
                "fn f(m: u8) -> usize { data.len() }",
                "data",
                "fn f(m: u8, data: &Dataset) -> usize { data.len() }",
            ),
            ("fn f() -> i32 { n }", "n", "fn f(n: i32) -> i32 { n }"),
            (
                "fn f() { net.summary(); }",
                "net",
                "fn f(net: &Sequential) { net.summary(); }",
            ),
        ] {
            assert_eq!(fixed(text, at), Some(Some(expected.to_owned())), "{text}");
        }
        for (text, at, expected) in [
            (
                "fn f() -> i32 { n }\nf()",
                "n",
                "fn f(n: i32) -> i32 { n }\nf(n)",
            ),
            (
                "fn f(k: u8) -> f64 { evaluate!(net, data, batch_size = 4).unwrap().loss }\nf(1)",
                "data",
                "fn f(k: u8, net: &Sequential, data: &Dataset) -> f64 { evaluate!(net, data, batch_size = 4).unwrap().loss }\n\
                 f(1, &net, &data)",
            ),
        ] {
            assert_eq!(fixed(text, at), Some(Some(expected.to_owned())), "{text}");
        }
        // Its calls cannot be seen, or its type is not known.
        let handed_on = "fn f(k: i32) -> i32 { k + n }\nv.map(f)";
        assert_eq!(fixed(handed_on, "n"), Some(None));
        assert_eq!(fixed("let v = g(); fn f() -> i32 { v }", "v"), Some(None));
        assert_eq!(fixed("let n = 1.0; fn f() -> f64 { n }", "n"), Some(None));
        assert_eq!(fixed("fn f() -> i32 { v }", "v"), None);
        assert_eq!(fixed("data.len()", "data"), None);
    }
}
