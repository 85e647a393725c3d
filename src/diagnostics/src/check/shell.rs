//! Lines for the shell that lack their `!`: `pip install rand`.

use super::CellContext;
use crate::rules::{A_COMMAND, NameOfAnotherLibrary};
use crate::{Diagnostic, Edit, Place, Rule};
use stratoscope_render::text;

/// Commands that notebooks are used to.
const COMMANDS: [&str; 49] = [
    "apt",
    "apt-get",
    "cargo",
    "cat",
    "cd",
    "conda",
    "cp",
    "curl",
    "df",
    "docker",
    "du",
    "echo",
    "free",
    "git",
    "head",
    "hf",
    "htop",
    "huggingface-cli",
    "jupyter",
    "kaggle",
    "ls",
    "lsb_release",
    "lscpu",
    "make",
    "mamba",
    "mkdir",
    "mv",
    "nvidia-smi",
    "pip",
    "pip3",
    "poetry",
    "ps",
    "pwd",
    "python",
    "python3",
    "rm",
    "source",
    "tail",
    "tar",
    "tensorboard",
    "top",
    "touch",
    "tree",
    "uname",
    "unzip",
    "uv",
    "wget",
    "which",
    "whoami",
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
    if COMMANDS.contains(&code) && code.contains('-') {
        // `nvidia-smi`, of which each half may be a variable.
        let mut halves = code.split('-');
        let is_known = halves.any(|it| context.variables.contains_key(it));
        return (!is_known).then(|| with_mark(code, cell.len() - cell.trim_start().len(), ""));
    }
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
    if let Some(found) = magic(code, word, rest, at) {
        return Some(found);
    }
    let is_rust = |it: char| "=(;{".contains(it);
    let is_command = COMMANDS.contains(&word) && !rest.trim_start().starts_with(is_rust);
    if !is_command || code.ends_with(';') {
        return None;
    }
    Some(with_mark(code, at, rest))
}

/// SC0130 for a command, with the `!` that it lacks.
fn with_mark(code: &str, at: usize, rest: &str) -> Diagnostic {
    let word = code.split(' ').next().unwrap_or(code);
    let is_package = matches!(word, "pip" | "pip3" | "conda" | "mamba" | "uv" | "poetry")
        && ["install", "add", "pip install"]
            .iter()
            .any(|it| rest.starts_with(it));
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
        label: A_COMMAND,
    };
    facts.diagnostic()
}

/// SC0130 for a magic of the whole cell that is not its first line: `%%time` between two statements.
pub(super) fn misplaced(cell: &str) -> Option<Diagnostic> {
    let at = cell.find("\n%%").map(|at| at + 1)?;
    let code = cell[at..].lines().next()?.trim_end();
    let is_magic = code[2..].starts_with(char::is_alphabetic);
    if !is_magic || cell[..at].trim().is_empty() {
        return None;
    }
    let line = at..cell.len().min(at + code.len() + 1);
    let facts = NameOfAnotherLibrary {
        given: code.to_owned(),
        written: Some(format!("{code} in the first line of the cell")),
        place: Place::span(at, at + code.len()),
        reason: "`%%` is of the whole cell, and stands before it; `%time` in the first line does the same here".to_owned(),
        edits: vec![
            Edit {
                place: Place::span(0, 0),
                replacement: format!("{code}\n"),
            },
            Edit {
                place: Place::span(line.start, line.end),
                replacement: String::new(),
            },
        ],
        label: "a magic of the whole cell",
    };
    Some(facts.diagnostic())
}

/// What the kernel has a magic for: `export NAME=value`, `cargo add rand`, and a magic of the whole cell behind its first line.
fn magic(code: &str, word: &str, rest: &str, at: usize) -> Option<Diagnostic> {
    let (written, reason) = match word {
        "export" | "setenv" if rest.contains('=') => (
            format!("%env {}", rest.trim()),
            "`%env` sets a variable of the environment, for the kernel and what it starts",
        ),
        "cargo" if rest.starts_with("add ") => {
            let name = rest.trim_start_matches("add ").split(' ').next()?;
            let (name, version) = name.split_once('@').unwrap_or((name, "*"));
            (
                format!("%dep {name} = \"{version}\""),
                "`%dep` adds a crate to the notebook; its version stands in quotes, `*` is the newest",
            )
        }
        _ => return None,
    };
    let place = Place::span(at, at + code.len());
    let facts = NameOfAnotherLibrary {
        given: text::excerpt(code, 60),
        written: Some(text::excerpt(&written, 60)),
        place: place.clone(),
        reason: reason.to_owned(),
        edits: vec![Edit {
            place,
            replacement: written,
        }],
        label: A_COMMAND,
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
        for (cell, written) in [
            (
                "export CUDA_VISIBLE_DEVICES=0",
                "%env CUDA_VISIBLE_DEVICES=0",
            ),
            ("cargo add rand", "%dep rand = \"*\""),
            ("cargo add rand@0.9", "%dep rand = \"0.9\""),
        ] {
            let found = answer(cell).expect("a magic");
            assert_eq!(apply(cell, &found.fixes[0]).as_deref(), Some(written));
        }
        let cell = "let a = 1;\n%%time\nlet b = 2;";
        let found = misplaced(cell).expect("a magic");
        let fixed = apply(cell, &found.fixes[0]);
        assert_eq!(fixed.as_deref(), Some("%%time\nlet a = 1;\nlet b = 2;"));
        assert_eq!(misplaced("%%time\nlet a = 5\n%2;"), None);
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
        assert!(with_options("nvidia-smi", &context).is_some());
        let known = CellContext::with_variables([("nvidia", "i32")]);
        assert_eq!(with_options("nvidia-smi", &known), None);
        for cell in ["rm -a", "ls - la", "ls -1", "a -la", "ls -la;"] {
            assert_eq!(with_options(cell, &context), None, "{cell}");
        }
    }
}
