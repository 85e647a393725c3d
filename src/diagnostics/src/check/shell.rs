//! Lines for the shell that lack their `!`: `pip install rand`.

use super::CellContext;
use crate::rules::NameOfAnotherLibrary;
use crate::{Diagnostic, Edit, Place, Rule};
use stratoscope_render::text;

/// Commands that notebooks are used to.
const COMMANDS: [&str; 22] = [
    "apt",
    "apt-get",
    "cargo",
    "cat",
    "conda",
    "cp",
    "curl",
    "echo",
    "git",
    "head",
    "kaggle",
    "ls",
    "mkdir",
    "mv",
    "nvidia-smi",
    "pip",
    "pip3",
    "pwd",
    "python",
    "rm",
    "unzip",
    "wget",
];

/// SC0130 for the first line of a cell that is a command, where the cell is no Rust.
pub(super) fn answer(cell: &str) -> Option<Diagnostic> {
    let mut start = 0;
    for line in cell.split_inclusive('\n') {
        let code = line.trim();
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        if let Some(found) = command(code, at) {
            return Some(found);
        }
    }
    None
}

/// SC0130 for a cell that is one command with options, which Rust would read as a difference: `ls -la`.
pub(super) fn with_options(cell: &str, context: &CellContext) -> Option<Diagnostic> {
    let code = cell.trim();
    let (word, rest) = code.split_once(" -")?;
    let is_options = rest.starts_with(|it: char| it.is_alphabetic() || it == '-')
        && rest
            .chars()
            .all(|it| it.is_alphanumeric() || " -_./".contains(it));
    if !is_options || context.variables.contains_key(word) {
        return None;
    }
    command(code, cell.len() - cell.trim_start().len())
}

fn command(code: &str, at: usize) -> Option<Diagnostic> {
    let (word, rest) = code.split_once(' ')?;
    let is_rust = |it: char| "=(;{".contains(it);
    let is_command = COMMANDS.contains(&word) && !rest.trim_start().starts_with(is_rust);
    if !is_command || code.ends_with(';') {
        return None;
    }
    let is_package = matches!(word, "pip" | "pip3" | "conda") && rest.starts_with("install");
    let reason = if is_package {
        "a line for the shell begins with `!`; Python's packages are not used by cells, and `%dep NAME = \"1\"` adds a crate"
    } else {
        "a line for the shell begins with `!`"
    };
    let facts = NameOfAnotherLibrary {
        given: text::excerpt(code, 60),
        written: Some(format!("!{}", text::excerpt(code, 60))),
        place: Place::span(at, at + code.len()),
        reason: reason.to_owned(),
        edits: vec![Edit {
            place: Place::span(at, at),
            replacement: "!".to_owned(),
        }],
    };
    Some(facts.diagnostic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::apply;

    #[test]
    fn a_command_gets_its_mark() {
        let cell = "let n = 1;\n  pip install rand\n";
        let found = answer(cell).expect("a command");
        assert_eq!(
            apply(cell, &found.fixes[0]).as_deref(),
            Some("let n = 1;\n  !pip install rand\n")
        );
        for cell in ["ls -l", "git status"] {
            assert!(answer(cell).is_some(), "{cell}");
        }
        for cell in [
            "let head = 1;",
            "head = 3",
            "cat (1)",
            "rm;",
            "mv a b;",
            "a b",
        ] {
            assert_eq!(answer(cell), None, "{cell}");
        }
        let context = CellContext::with_variables([("rm", "i32")]);
        assert!(with_options("ls -la\n", &context).is_some());
        for cell in ["rm -a", "ls - la", "ls -1", "a -la", "ls -la;"] {
            assert_eq!(with_options(cell, &context), None, "{cell}");
        }
    }
}
