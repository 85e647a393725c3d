//! What reaches a terminal: carets under what is meant, and nothing that it obeys.

use unicode_width::UnicodeWidthChar;

use super::*;

/// Below each line of code, the columns under the carets are those of `expected`.
fn check(text: &str, span: (usize, usize), expected: &str) {
    let diagnostic =
        Diagnostic::new("SC0000", Severity::Error, "x").label(Place::span(span.0, span.1), "here");
    let shown = plain(
        &diagnostic,
        &Source {
            text,
            name: "Cell In[1]",
        },
    );
    let rows: Vec<&str> = shown.lines().collect();
    let at = rows
        .iter()
        .position(|row| row.contains('^'))
        .expect("carets");
    let code: Vec<char> = columns(rows[at - 1]);
    let marked: String = columns(rows[at])
        .iter()
        .zip(&code)
        .filter(|(caret, _)| **caret == '^')
        .map(|(_, c)| *c)
        .filter(|c| *c != '\u{0}')
        .collect();
    assert_eq!(marked, expected, "{shown}");
}

/// One entry per column; the second column of a wide character is NUL.
fn columns(row: &str) -> Vec<char> {
    let mut columns = Vec::new();
    for c in row.chars() {
        for nth in 0..c.width().unwrap_or_default() {
            columns.push(if nth == 0 { c } else { '\u{0}' });
        }
    }
    columns
}

#[test]
fn carets_stand_under_what_is_meant() {
    check("abc", (1, 2), "b");
    check("größe = x", (8, 9), "=");
    check("\t\tab", (2, 4), "ab");
    check("\"日本\" + x", (8, 9), " ");
    check("\"日本\" + x", (1, 7), "日本");
    check("a\nb\nccc", (4, 7), "ccc");
    check("x\u{1b}[31m y", (7, 8), "y");
}

#[test]
fn an_empty_span_and_the_end_of_the_text_have_a_caret() {
    let diagnostic = Diagnostic::new("SC0000", Severity::Note, "x").label(Place::span(3, 3), "end");
    let shown = plain(
        &diagnostic,
        &Source {
            text: "abc",
            name: "c",
        },
    );
    assert!(shown.contains("|    ^ end"), "{shown}");
}

#[test]
fn nothing_in_the_text_reaches_the_terminal() {
    let diagnostic = Diagnostic::new("SC0000", Severity::Error, "a\u{1b}[2Jb")
        .label(Place::span(0, 2), "\u{1b}]0;t\u{7}")
        .evidence("row", "\u{9b}31m");
    let shown = plain(
        &diagnostic,
        &Source {
            text: "\u{1b}c",
            name: "c",
        },
    );
    assert!(
        !shown.chars().any(|c| c.is_control() && c != '\n'),
        "{shown:?}"
    );
}

#[test]
fn a_traceback_does_not_repeat_the_cards() {
    let found = |code: &str| {
        Diagnostic::new(code, Severity::Error, "no such thing").label(Place::span(2, 3), "here")
    };
    let source = Source {
        text: "a\nb",
        name: "Cell In[7]",
    };
    let lines = |codes: &[&str]| {
        let found: Vec<_> = codes.iter().map(|code| found(code)).collect();
        traceback(&found, &source)
    };
    assert_eq!(lines(&["SC0101"]), ["Cell In[7], line 2: SC0101"]);
    assert_eq!(
        lines(&["SC0201", "SC0102", "SC0102"]),
        ["Cell In[7], line 2: SC0201, SC0102"]
    );
    // rustc's errors have no card.
    let both = lines(&["SC0101", "E0308"]);
    assert_eq!(both[0], "Cell In[7], line 2: SC0101");
    let rest = both[1..].join("\n");
    assert!(
        rest.contains("no such thing") && !rest.contains("SC0101"),
        "{rest}"
    );
    let two = lines(&["E0308", "E0425"]);
    assert_eq!(two[0], "Cell In[7], line 2");
    let heads = two.iter().filter(|line| line.contains("no such thing"));
    assert_eq!(heads.count(), 2);
}
