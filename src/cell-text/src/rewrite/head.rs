//! The lines above a cell's Rust code: evcxr's commands, and magics that stand for Rust.

use std::ops::Range;

use super::statement::Facts;
use super::{at, line_of};
use crate::magic_line::{self, Timed};

/// What stands above a cell's Rust code.
#[derive(Default)]
pub struct Head {
    /// Where the Rust code starts.
    pub end: usize,
    /// The strategy of `%%scope`.
    pub scope: Option<Range<usize>>,
    /// Lines that stand for Rust, and that Rust.
    pub lines: Vec<(Range<usize>, String)>,
    /// `%time` or `%timeit` stands before the code.
    pub timed: Option<Timed>,
}

/// Whether a line is for evcxr, and not Rust, which may begin with `::`.
pub fn is_command(line: &str) -> bool {
    line.starts_with(':') && !line.starts_with("::")
}

/// Passes over evcxr's command lines and the magics.
pub fn head(code: &str) -> Head {
    let mut head = Head::default();
    for line in code.split_inclusive('\n') {
        let start = head.end;
        let content = line.trim();
        if let Some(strategy) = content.strip_prefix("%%scope") {
            let strategy = strategy.trim();
            // From behind: the name of the strategy may be a part of the magic's.
            let from = start + line.rfind(strategy).unwrap_or(0);
            head.end = start + line.len();
            head.scope = (!strategy.is_empty()).then(|| from..from + strategy.len());
            return head;
        }
        if let Some((timed, length)) = magic_line::timed(line) {
            head.lines.push((start..start + length, String::new()));
            head.end = start + length;
            head.timed = Some(timed);
            return head;
        }
        if let Some(rust) = magic_line::rust_of_line(content) {
            let from = start + line.len() - line.trim_start().len();
            let number = line_of(code, from);
            // A command of evcxr's begins its line; anything else is a statement of this line.
            let rust = match is_command(&rust) {
                true => rust,
                false => format!("{}{rust}", at(number, number, &Facts::of_text(&rust))),
            };
            head.lines.push((from..from + content.len(), rust));
        } else if !(is_command(line.trim_start_matches(' '))
            || content.is_empty()
            || content.starts_with("//"))
        {
            break;
        }
        head.end += line.len();
    }
    head
}
