//! Functions that use variables of the notebook, which Rust's functions do not see.

use super::calls::{Found, span_of};
use super::our_words::function_around;
use super::{CellContext, fixed};
use crate::rules::VariableInFunction;
use crate::{CellSpan, Diagnostic, Edit, Place, Rule};
use stratoscope_cell_syntax::Syntax;

/// SC1015 in place of "cannot find value".
pub(super) fn answer(
    cell: &Syntax,
    message: &str,
    span: CellSpan,
    context: &CellContext,
) -> Option<Diagnostic> {
    if !message.starts_with("cannot find value") {
        return None;
    }
    let text = cell.text();
    let name = text.get(span.start..span.end)?;
    let function = function_around(cell, span)?;
    // A variable that the cell makes hides one of the notebook, whose type may be another.
    let found = Found::of(cell, &context.defined);
    let is_of_cell = found.is_some_and(|it| it.bound.contains_key(name));
    let of_type = context.variables.get(name).filter(|_| !is_of_cell);
    if of_type.is_none() && !is_of_cell {
        return None;
    }
    let of_type = of_type.map(|it| parameter_type(it));
    let parameter = of_type.as_ref().map(|it| format!("{name}: {it}"));
    let function_name = function.sig.ident.to_string();
    let is_called = text.matches(&format!("{function_name}(")).count() > 1;
    let edits = match &parameter {
        Some(parameter) if !is_called => {
            let at = span_of(function.sig.paren_token.span.close()).start;
            let has_others = !function.sig.inputs.is_empty();
            let comma = if has_others && !function.sig.inputs.trailing_punct() {
                ", "
            } else {
                ""
            };
            let edit = Edit {
                place: Place::span(at, at),
                replacement: format!("{comma}{parameter}"),
            };
            fixed::tried(cell, vec![edit], context)
        }
        _ => Vec::new(),
    };
    let facts = VariableInFunction {
        name: name.to_owned(),
        parameter: parameter.unwrap_or_else(|| format!("{name}: …")),
        place: Place::Span(span),
        function_place: Place::Span(span_of(function.sig.ident.span())),
        function: function_name,
        edits,
    };
    Some(facts.diagnostic())
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
        // Its calls would have to change, or its type is not known.
        assert_eq!(fixed("fn f() -> i32 { n }\nf()", "n"), Some(None));
        assert_eq!(fixed("let v = g(); fn f() -> i32 { v }", "v"), Some(None));
        assert_eq!(fixed("let n = 1.0; fn f() -> f64 { n }", "n"), Some(None));
        assert_eq!(fixed("fn f() -> i32 { v }", "v"), None);
        assert_eq!(fixed("data.len()", "data"), None);
    }
}
