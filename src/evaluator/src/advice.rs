//! Which of rustc's suggestions are shown as fixes: those that rustc is sure of, and names that are a slip away. All others are
//! notes, and what speaks of a package or of crates that the reader does not use is not shown at all.

use serde_json::Value;
use stratoscope_diagnostics::check::suggest;
use stratoscope_diagnostics::{Diagnostic, Fix, FixKind};

/// Crates whose names a cell knows without adding them.
const KNOWN_CRATES: [&str; 9] = [
    "alloc",
    "burn",
    "core",
    "crate",
    "ctx",
    "self",
    "std",
    "stratoscope",
    "super",
];

/// How rustc says that a name is spelled like another one.
const SIMILAR: &str = "with a similar name";

/// How suggestions begin that rustc calls uncertain, since it cannot know what was meant, and that are right in a cell.
const RIGHT_IN_A_CELL: [&str; 10] = [
    "use `!` to invoke the macro",
    "consider using the type `",
    "use parentheses to call the method",
    "remove the arguments",
    "you might have meant to use the `new` associated function",
    "you might have meant to compare for equality",
    "consider iterating over a slice",
    "you might be missing a string literal to format with",
    "try using a conversion method",
    "use the `Display` trait",
];

/// Whether a suggestion is a fix. rustc marks those that it is sure of; of the others, some are right in a cell, a name of the notebook that is one slip
/// away is a fix, and an import from the standard library if it is the only one.
pub fn is_to_be_applied(spans: &[Value], text: &str) -> bool {
    let is_sure =
        |span: &Value| span["suggestion_applicability"].as_str() == Some("MachineApplicable");
    if spans.iter().all(is_sure) || RIGHT_IN_A_CELL.iter().any(|it| text.starts_with(it)) {
        return true;
    }
    let [span] = spans else {
        return false;
    };
    let replacement = span["suggested_replacement"].as_str().unwrap_or_default();
    if text.starts_with("a method `") && text.contains("call it with parentheses") {
        return true;
    }
    let is_import = replacement.trim().starts_with("use std::")
        && replacement.trim().lines().count() == 1
        && text.contains("import");
    is_import && text.starts_with("consider importing this")
        || text.contains(SIMILAR) && is_one_slip_away(span, replacement)
}

/// Whether the text that a span marks looks like what stands in its place.
fn is_one_slip_away(span: &Value, replacement: &str) -> bool {
    let line = &span["text"][0];
    let marked = || {
        let (start, end) = (
            line["highlight_start"].as_u64()?,
            line["highlight_end"].as_u64()?,
        );
        let (start, length) = (
            usize::try_from(start).ok()?.checked_sub(1)?,
            usize::try_from(end.checked_sub(start)?).ok()?,
        );
        let text = line["text"].as_str()?.chars();
        Some(text.skip(start).take(length).collect::<String>())
    };
    let given = marked().unwrap_or_default();
    given.chars().count() > 2 && !suggest::similar(&given, [replacement]).is_empty()
}

/// Whether a text names a package's manifest, hides a result, or names a crate that the cell does not.
pub fn is_foreign(text: &str, cell: &str) -> bool {
    const NEVER: [&str; 5] = ["cargo add", "Cargo.toml", "let _ =", "edition", "nightly"];
    // Beside the macro of this name, nobody means the function.
    if text.starts_with("consider importing this function") && text.contains("fmt::format") {
        return true;
    }
    // Beside another suggestion, one for a name that takes other arguments is no help.
    if NEVER.iter().any(|it| text.contains(it)) || text.ends_with("but with different arguments") {
        return true;
    }
    // What else a text names may be a module of the notebook.
    const LISTS: [&str; 5] = [
        "import",
        "other types implement",
        "`impl`s",
        "use the `.` operator",
        "candidate",
    ];
    LISTS.iter().any(|it| text.contains(it)) && names_foreign_crate(text, cell)
}

/// Whether a path in the text begins with a crate that the cell does not name.
pub fn names_foreign_crate(text: &str, cell: &str) -> bool {
    text.match_indices("::").any(|(at, _)| {
        let before = &text[..at];
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let start = before.trim_end_matches(is_name).len();
        let (head, root) = before.split_at(start);
        // The first name of a path: none stands before it.
        let is_first = !head.ends_with(':') && !head.ends_with('>') && !root.is_empty();
        let is_crate = root.starts_with(|it: char| it.is_lowercase());
        is_first && is_crate && !KNOWN_CRATES.contains(&root) && !cell.contains(root)
    })
}

/// An error about a crate that the notebook does not have, with the line that adds it.
pub fn with_its_crate(mut found: Diagnostic) -> Diagnostic {
    let label = found.labels.first().map(|it| it.text.as_str());
    let is_missing =
        label.is_some_and(|it| it.contains("unlinked crate") || it.contains("no external crate"));
    if let Some(name) = found.message.split('`').nth(1)
        && is_missing
        && found.fixes.is_empty()
    {
        let name = name.split("::").next().unwrap_or(name);
        let fix = Fix {
            kind: FixKind::Change,
            title: format!("add the crate by a line above the code: `%dep {name} = \"*\"`"),
            edits: Vec::new(),
        };
        found.fixes.push(fix);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(line: &str, marked: &str, replacement: &str, applicability: &str) -> Value {
        let start = 1 + line.find(marked).expect("stands in the line");
        serde_json::json!({
            "suggested_replacement": replacement, "suggestion_applicability": applicability,
            "text": [{ "text": line, "highlight_start": start, "highlight_end": start + marked.len() }],
        })
    }

    #[test]
    fn crates_that_nobody_has_added_are_not_named() {
        for (text, expected) in [
            (
                "use the `.` operator to call the method `pliron::printable::Printable::print` on `&i32`",
                true,
            ),
            (
                "the following other types implement trait `BitXor<Rhs>`: `&f32` implements `BitXor<&wide::f32x16>`",
                true,
            ),
            ("consider importing this trait: `use winnow::Parser;`", true),
            (
                "if you wanted to use a crate named `rand`, use `cargo add rand` to add it to your `Cargo.toml`",
                true,
            ),
            ("use `let _ = ...` to ignore the resulting value", true),
            (
                "there is a method `lt` with a similar name, but with different arguments",
                true,
            ),
            (
                "consider importing this struct: `use std::collections::HashMap;`",
                false,
            ),
            ("`<Vec<f64> as IntoIterator>::into_iter`", false),
            ("consider `stratoscope::prelude::Dense`", false),
            ("use `Vec::new()`", false),
        ] {
            assert_eq!(is_foreign(text, "let a = b;"), expected, "{text}");
        }
        assert!(!is_foreign("use rand::Rng;", "rand::rng().random::<f64>()"));
    }

    #[test]
    fn fixes_are_what_rustc_is_sure_of_and_slips() {
        let similar = "a local variable with a similar name exists";
        for (span, text, expected) in [
            (
                span("v.len", "len", "len()", "MachineApplicable"),
                "call it",
                true,
            ),
            (
                span("v.len", "len", "len()", "HasPlaceholders"),
                "call it",
                false,
            ),
            (span("np.x", "np", "n", "MaybeIncorrect"), similar, false),
            (
                span("println!(n)", "n", "\"{}\", n", "MaybeIncorrect"),
                "you might be missing a string literal to format with",
                true,
            ),
            (
                span("naame.len()", "naame", "name", "MaybeIncorrect"),
                similar,
                true,
            ),
            (
                span("f()", "f", "use std::ptr::null;\n", "MaybeIncorrect"),
                "consider importing this function",
                true,
            ),
            (
                span("f()", "f", "use other::null;\n", "MaybeIncorrect"),
                "consider importing this function",
                false,
            ),
        ] {
            assert_eq!(is_to_be_applied(&[span], text), expected, "{text}");
        }
    }
}
