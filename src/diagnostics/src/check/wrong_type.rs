//! Wrong types that only rustc sees: a variable that holds an optimizer, given for a loss. Its words about
//! traits and bounds become the two that matter.

use super::calls::{Call, CallArgument, calls_of};
use super::kind;
use super::{our_words, table};
use crate::arguments::{self, Argument, CallTable, Kind};
use crate::rules::ArgumentTypeMismatch;
use crate::{CellSpan, Diagnostic, Place, Rule};
use stratoscope_cell_syntax::Syntax;
use stratoscope_render::text;

/// SC0120 in place of an error of rustc's about an argument of a call in the cell; `None`: it is about
/// something else. Its first label is the primary one, a span of `text`.
pub(super) fn wrong_type(cell: &Syntax, found: &Diagnostic) -> Option<Diagnostic> {
    let (expected, got) = match found.code.as_str() {
        "E0277" => of_a_trait(&found.message)?,
        "E0308" => of_a_type(&found.labels.first()?.text)?,
        _ => return None,
    };
    let Place::Span(span) = found.labels.first()?.place else {
        return None;
    };
    let holds = |outer: CellSpan| outer.start <= span.start && span.end <= outer.end;
    let all = calls_of(cell);
    let call = all
        .iter()
        .filter(|call| holds(call.span))
        .min_by_key(|call| call.span.end - call.span.start)?;
    let table = arguments::call(&call.name)?;
    let kind = kind::of_type(&got);
    let got = kind.map_or_else(|| got.clone(), |kind| kind.word().to_owned());
    // What a macro borrows has the place of the whole call: the type alone tells which one is meant.
    let is_meant = |argument: &&CallArgument| match span == call.span {
        true => arguments::find(table.arguments, &argument.name)
            .is_some_and(|known| takes(known, &expected)),
        false => holds(argument.value_span),
    };
    let mut meant = call.arguments.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(argument), None) => of_an_argument(call, table, argument, &expected, got, kind),
        (None, _) if span == call.span && Kind::of_word(&expected) == Some(Kind::Dataset) => {
            let data = call.operands.get(1)?;
            let facts = ArgumentTypeMismatch {
                argument: String::new(),
                given: text::excerpt(&data.text, 60),
                expected,
                got,
                place: Place::Span(data.span),
                fixes: Vec::new(),
                arguments: Vec::new(),
            };
            let diagnostic = facts.diagnostic();
            // A pair under a name: its two halves.
            if !facts.got.trim_start_matches('&').starts_with('(') {
                return Some(
                    diagnostic
                        .fix("create one from arrays: `Dataset::from_arrays(x, y)?`")
                        .fix("or load one, such as `Dataset::tsv(\"train.tsv\")?`"),
                );
            }
            let written =
                kind::from_arrays(&format!("{}.0", data.text), &format!("{}.1", data.text));
            let title = format!("write `{written}`");
            Some(diagnostic.fix_edit(title, Place::Span(data.span), written))
        }
        _ => None,
    }
}

/// Whether an argument takes what rustc says was expected: a kind of the table, or a type that only the table's words
/// describe.
fn takes(known: &Argument, expected: &str) -> bool {
    match Kind::of_word(expected) {
        Some(kind) => kind::expected(known) == Some(kind::Expected::Kind(kind)),
        None => known.expects.contains(expected.trim_start_matches("a ")),
    }
}

fn of_an_argument(
    call: &Call,
    table: &CallTable,
    argument: &CallArgument,
    expected: &str,
    got: String,
    kind: Option<Kind>,
) -> Option<Diagnostic> {
    let known = arguments::find(table.arguments, &argument.name)?;
    let index = call
        .arguments
        .iter()
        .position(|other| other.span == argument.span)?;
    let facts = ArgumentTypeMismatch {
        argument: argument.name.clone(),
        given: text::excerpt(&argument.value, 60),
        expected: expected.to_owned(),
        got,
        place: Place::Span(argument.value_span),
        fixes: kind::ways_out(call, known, argument, kind),
        arguments: table::rows(call, &[index], |_| None),
    };
    Some(facts.diagnostic())
}

/// "expected a loss, got `Adam`", as our traits have rustc say it.
fn of_a_trait(message: &str) -> Option<(String, String)> {
    let (expected, got) = message.strip_prefix("expected ")?.rsplit_once(", got ")?;
    Some((without_article(expected), without_marks(got)))
}

/// "expected `&Dataset`, found `&usize`", as rustc labels a mismatch.
fn of_a_type(label: &str) -> Option<(String, String)> {
    let (expected, got) = label.strip_prefix("expected ")?.split_once(", found ")?;
    let expected = without_marks(expected);
    let expected = kind::of_type(&expected).map_or(expected.clone(), |kind| kind.word().to_owned());
    Some((expected, without_marks(got)))
}

fn without_article(expected: &str) -> String {
    let name = ["a ", "an "]
        .iter()
        .find_map(|article| expected.strip_prefix(article));
    name.unwrap_or(expected).to_owned()
}

/// A type without backticks, without rustc's braces around what it has inferred (`{float}`), and without
/// the path of our own types, which says nothing to a reader of the cell.
fn without_marks(name: &str) -> String {
    let name = name.trim_matches('`');
    // `fn() -> Metric {stratoscope::prelude::accuracy}`: the brackets were forgotten.
    if let Some(function) = our_words::is_function_item(name) {
        return format!("the function `{function}`");
    }
    let inferred = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    let name = inferred.unwrap_or(name);
    let (sign, path) = match name.strip_prefix('&') {
        Some(path) => ("&", path),
        None => ("", name),
    };
    match path.rsplit_once("::") {
        Some((_, last)) if !path.contains('<') => format!("{sign}{last}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    /// rustc's error at `at` in the cell, and the message and the text that ours marks.
    fn check(text: &str, code: &str, message: &str, label: &str, at: &str, expected: [&str; 2]) {
        let start = text.rfind(at).expect("stands in the cell");
        let found = Diagnostic::new(code, Severity::Error, message)
            .label(Place::span(start, start + at.len()), label);
        let diagnostic = Syntax::with(text, |cell| wrong_type(cell, &found));
        let diagnostic = diagnostic.expect("is about an argument");
        assert_eq!(diagnostic.code, "SC0120");
        let Place::Span(span) = diagnostic.labels[0].place else {
            panic!("{:?}", diagnostic.labels)
        };
        assert_eq!(
            [diagnostic.message.as_str(), &text[span.start..span.end]],
            expected
        );
        assert!(!diagnostic.fixes.is_empty());
    }

    #[test]
    fn traits_and_types_become_two_words() {
        let text = "compile!(model, optimizer = o, loss = adam, strategy = n)?;";
        check(
            text,
            "E0277",
            "expected a loss, got `stratoscope::prelude::Adam`",
            "a loss",
            "adam",
            ["`loss = adam`: expected `loss`, got `optimizer`", "adam"],
        );
        check(
            text,
            "E0277",
            "expected `none` or a strategy, got `&usize`",
            "",
            "compile!(model, optimizer = o, loss = adam, strategy = n)",
            [
                "`strategy = n`: expected `none` or a strategy, got `&usize`",
                "n",
            ],
        );
        let text = "fit!(model, n, shuffle = m)?;";
        check(
            text,
            "E0308",
            "mismatched types",
            "expected `bool`, found `usize`",
            "m",
            ["`shuffle = m`: expected `bool`, got `usize`", "m"],
        );
        check(
            text,
            "E0308",
            "mismatched types",
            "expected `&Dataset`, found `&usize`",
            "fit!(model, n, shuffle = m)",
            ["`n`: expected `dataset`, got `&usize`", "n"],
        );
    }

    #[test]
    fn other_errors_stay_rustcs() {
        let at = |code: &str, message: &str, label: &str, span: (usize, usize)| {
            Diagnostic::new(code, Severity::Error, message)
                .label(Place::span(span.0, span.1), label)
        };
        let text = "let x: i32 = y; compile!(m, optimizer = o)?;";
        for found in [
            at(
                "E0308",
                "mismatched types",
                "expected `i32`, found `u8`",
                (13, 14),
            ),
            at("E0425", "cannot find value `o`", "not found", (40, 41)),
            at(
                "E0277",
                "the trait bound `A: B` is not satisfied",
                "",
                (40, 41),
            ),
        ] {
            let ours = Syntax::with(text, |cell| wrong_type(cell, &found));
            assert_eq!(ours, None, "{}", found.message);
        }
    }
}
