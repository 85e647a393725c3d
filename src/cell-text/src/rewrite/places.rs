//! Which line of which cell a compiled line stands for. While the debugger is on, each line inside of a statement or an item
//! begins with a comment that names its cell and its line as typed: evcxr compiles functions of earlier cells again with each
//! cell, and moves items to the front. The first line of a statement has the statement's own mark.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::Stmt;
use syn::spanned::Spanned;

use super::Editor;
use crate::ParsedCell;
use crate::tokens::Kind;

/// Around the place.
const BEGIN: &str = "/*@";
const END: &str = "*/";
/// What the marks of statements become, with their lines behind it.
const STATEMENTS: [&str; 2] = [
    "::stratoscope::cell::evcxr::stops(",
    "::stratoscope::cell::at(",
];
/// What every cell begins with; its number follows.
const NUMBER: &str = "stratoscope::cell::begin(";

/// A line of a cell that can be marked.
pub(crate) struct Line {
    /// The byte behind its indentation.
    pub start: usize,
    /// Counted from 1.
    pub number: usize,
}

/// The lines of the Rust code that begin neither in a text nor in a comment.
pub(crate) fn lines(cell: &ParsedCell<'_>) -> Vec<Line> {
    let is_long = |kind: Kind| matches!(kind, Kind::Text { .. } | Kind::BlockComment { .. });
    let mut long = cell.tokens.iter().filter(|it| is_long(it.kind)).peekable();
    let mut found = Vec::new();
    let mut begin = 0;
    for (index, line) in cell.code.split_inclusive('\n').enumerate() {
        let start = begin + line.len() - line.trim_start().len();
        begin += line.len();
        if line.trim().is_empty() || start < cell.header.end {
            continue;
        }
        while long.next_if(|it| it.range.end <= start).is_some() {}
        if long.peek().is_none_or(|it| it.range.start >= start) {
            let number = index + 1;
            found.push(Line { start, number });
        }
    }
    found
}

/// The mark of a line of cell `number`.
pub(crate) fn mark(number: u64, line: usize) -> String {
    format!("{BEGIN}{number}:{line}{END}")
}

impl Editor<'_> {
    /// Marks the lines inside of statements and items; where a statement begins, its own mark says so.
    pub(super) fn places(&mut self, lines: &[Line], statements: &[Stmt], number: u64) {
        let ranges: Vec<Range<usize>> =
            statements.iter().map(|it| it.span().byte_range()).collect();
        for line in lines {
            let is_inside = |it: &Range<usize>| it.start < line.start && line.start < it.end;
            let next = ranges.partition_point(|it| it.end <= line.start);
            if ranges.get(next).is_some_and(is_inside) && !self.starts.contains(&line.start) {
                self.insert(line.start, mark(number, line.number));
            }
        }
    }
}

/// What a compiled line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the cell.
    pub cell: u64,
    /// The line as typed, counted from 1.
    pub line: u32,
    /// A statement of the cell that runs begins there.
    pub begins: bool,
}

/// Reads the marks of a cell as it was compiled: compiled lines, counted from 1, and what they stand for.
pub fn read(compiled: &str) -> BTreeMap<u32, Place> {
    let numbered = compiled
        .lines()
        .find_map(|line| number_behind(line, NUMBER));
    let mut statement = None;
    let mut found = BTreeMap::new();
    for (compiled, line) in (1..).zip(compiled.lines()) {
        let typed = STATEMENTS.iter().find_map(|it| number_behind(line, it));
        if let (Some(cell), Some(line)) = (numbered, typed) {
            statement = Some((cell, line));
            continue;
        }
        let begins = statement.take();
        if let Some((cell, line)) = begins.or_else(|| marked(line)) {
            let place = Place {
                cell,
                line: u32::try_from(line).unwrap_or(u32::MAX),
                begins: begins.is_some(),
            };
            found.insert(compiled, place);
        }
    }
    found
}

fn marked(line: &str) -> Option<(u64, u64)> {
    let (place, _) = line.split_once(BEGIN)?.1.split_once(END)?;
    let (cell, line) = place.split_once(':')?;
    Some((cell.parse().ok()?, line.parse().ok()?))
}

fn number_behind(line: &str, text: &str) -> Option<u64> {
    let (_, rest) = line.split_once(text)?;
    let digits = rest.find(|it: char| !it.is_ascii_digit())?;
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(code: &str) -> String {
        let cell = ParsedCell::of(code).debugged(true);
        cell.rewrite(3, false).rewritten.text
    }

    #[test]
    fn lines_inside_of_statements_and_items_are_marked() {
        let text = marks(
            "fn f(x: u8) -> u8 {\n    let y = x;\n    y\n}\nlet a = f(\n    1,\n);\nlet b = 2;",
        );
        for line in [
            "    /*@3:2*/let y",
            "    /*@3:3*/y",
            "\n/*@3:4*/}",
            "    /*@3:6*/1,",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        for line in ["/*@3:1*/", "/*@3:5*/", "/*@3:8*/"] {
            assert!(!text.contains(line), "{line} in {text}");
        }
        assert!(
            !ParsedCell::of("f(\n1);")
                .rewrite(3, false)
                .rewritten
                .text
                .contains("/*@")
        );
    }

    #[test]
    fn texts_and_comments_stay() {
        let text =
            marks("let a = (\n\"one\ntwo\",\n/* three\nfour */ r#\"\nfive\"#,\nb\"six\",\n);");
        for line in ["\ntwo\",", "\nfour */", "\nfive\"#", "/*@3:7*/b\"six\""] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn compiled_lines_lead_back() {
        let compiled = "/*@2:9*/old();\nstratoscope::cell::begin(3);\n\
            if ::stratoscope::cell::evcxr::stops(4, 5) { break } run(|| {\nlet x = (\n    /*@3:5*/1\n})\n\
            ::stratoscope::cell::at(7, 7)?;\nf();\n/*@x:1*/\n";
        let found: Vec<_> = read(compiled)
            .into_iter()
            .map(|(compiled, it)| (compiled, it.cell, it.line, it.begins))
            .collect();
        let expected = [
            (1, 2, 9, false),
            (4, 3, 4, true),
            (5, 3, 5, false),
            (8, 3, 7, true),
        ];
        assert_eq!(found, expected);
        assert!(read("f();").is_empty());
    }
}
