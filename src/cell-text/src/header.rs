//! The lines above a cell's Rust code: evcxr's commands, and magics that stand for Rust. All parts of the kernel
//! that need to know where the Rust code begins ask here.

use std::ops::Range;

use crate::magic::{Clock, MagicLine, Repeats, Replacement, replacement};

/// What stands above a cell's Rust code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Where the Rust code starts.
    pub end: usize,
    /// The strategy of `%%scope`.
    pub scope: Option<Range<usize>>,
    /// Lines that are replaced, without the blanks around them, and what replaces them.
    pub lines: Vec<(Range<usize>, Replacement)>,
    /// `%time` or `%timeit` stands before the code.
    pub clock: Option<Clock>,
    /// How often the code behind `%timeit` runs.
    pub repeats: Repeats,
}

impl Header {
    /// Reads the lines at the top of a cell up to the first one that is Rust. A clock and `%%scope` come last.
    pub fn of(code: &str) -> Self {
        let mut header = Self::default();
        for line in code.split_inclusive('\n') {
            let start = header.end;
            let content = line.trim();
            let indent = line.len() - line.trim_start().len();
            let magic = MagicLine::of(content);
            if let Some(magic) = magic.filter(MagicLine::takes_text) {
                let text = &code[start + line.len()..];
                header.end = code.len();
                let rust = Replacement::Rust(magic.of_text(text));
                header.lines.push((start..header.end, rust));
                return header;
            }
            if let Some(magic) = magic.filter(|it| it.is_of_cell && it.name == "scope") {
                header.end = start + line.len();
                // From behind: the name of the strategy may be a part of the magic's.
                let from = start + line.rfind(magic.operand).unwrap_or(0);
                header.scope =
                    (!magic.operand.is_empty()).then(|| from..from + magic.operand.len());
                return header;
            }
            if let Some((magic, clock)) = magic.and_then(|it| Some((it, it.clock()?))) {
                // A single `%` leaves the rest of its line to the cell.
                let name = indent + 1 + usize::from(magic.is_of_cell) + magic.name.len();
                let mut options = 0;
                if clock == Clock::Often {
                    (header.repeats, options) = Repeats::of(line[name..].trim_end());
                }
                let length = match magic.is_of_cell {
                    true => line.trim_end_matches('\n').len(),
                    false => name + options,
                };
                header.end = start + length;
                header.lines.push((start..header.end, Replacement::Nothing));
                header.clock = Some(clock);
                return header;
            }
            if let Some(replacement) = replacement(content) {
                let from = start + indent;
                header.lines.push((from..from + content.len(), replacement));
            } else if !is_skipped(line) {
                break;
            }
            header.end += line.len();
        }
        header
    }

    /// The cell with the lines that are replaced blanked, byte for byte: what is left is Rust at its own place,
    /// below evcxr's commands and `%%scope`.
    pub fn without_lines(&self, code: &str) -> String {
        let blanked = self.lines.iter().map(|(range, _)| range.clone());
        blank(code, blanked)
    }

    /// The same without `%%scope`.
    pub fn without_magics(&self, code: &str) -> String {
        let scope = self.scope.as_ref().map(|strategy| {
            let start = code[..strategy.start].rfind('\n').map_or(0, |at| at + 1);
            start..strategy.end
        });
        let lines = self.lines.iter().map(|(range, _)| range.clone());
        blank(code, lines.chain(scope))
    }
}

/// Whether a line is evcxr's, and not Rust, which may begin with `::`.
fn is_command(line: &str) -> bool {
    line.starts_with(':') && !line.starts_with("::")
}

/// Lines above the code that stay as they are.
fn is_skipped(line: &str) -> bool {
    let content = line.trim();
    content.is_empty() || content.starts_with("//") || is_command(line.trim_start_matches(' '))
}

fn blank(code: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut text = String::with_capacity(code.len());
    for range in ranges {
        text.push_str(&code[text.len()..range.start]);
        text.extend(std::iter::repeat_n(' ', range.len()));
    }
    text.push_str(&code[text.len()..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_take_the_line_or_only_their_name() {
        let clock = |code: &str| {
            let header = Header::of(code);
            header.clock.map(|clock| (clock, header.end))
        };
        assert_eq!(clock("%time f()\n"), Some((Clock::Once, 5)));
        assert_eq!(clock("  %timeit f()"), Some((Clock::Often, 9)));
        assert_eq!(clock("%timeit -n 10 f()"), Some((Clock::Often, 13)));
        assert_eq!(clock("%%time \n"), Some((Clock::Once, 7)));
        assert_eq!(clock("%timer"), None);
        assert_eq!(clock("f() % time"), None);
    }

    #[test]
    fn the_text_of_a_cell_is_no_rust() {
        let code = "%env A=1\n%%bash\nif (then; \"\nls";
        let header = Header::of(code);
        assert_eq!((header.end, header.lines.len()), (code.len(), 2));
        assert_eq!(header.without_lines(code).trim(), "");
        assert_eq!(Header::of("%%bash").lines.len(), 1);
    }

    #[test]
    fn what_is_left_keeps_its_place() {
        let without_lines = |code: &str| Header::of(code).without_lines(code);
        let code = "!ls größe\n%time f(a)\n%x";
        let left = without_lines(code);
        assert_eq!(left.len(), code.len());
        assert_eq!(left.trim(), "f(a)\n%x");
        assert_eq!(left.find("f(a)"), code.find("f(a)"));
        assert_eq!(without_lines("let a = 1;\n!b"), "let a = 1;\n!b");
        assert_eq!(without_lines("%%scope s\nx"), "%%scope s\nx");
        let code = "%env A\n%%scope s\nx";
        assert_eq!(
            Header::of(code).without_magics(code),
            "      \n         \nx"
        );
    }

    #[test]
    fn a_name_that_begins_like_a_magic_is_none() {
        for code in [
            "%%scoped s\nx",
            ":dep a\n%%scoped s\nx",
            "%timed f()",
            "%environment A",
        ] {
            let header = Header::of(code);
            assert_eq!((header.scope, header.clock), (None, None), "{code}");
            assert!(header.lines.is_empty(), "{code}");
        }
        let code = "%%scope scope\nx";
        assert_eq!(Header::of(code).scope, Some(8..13));
    }
}
