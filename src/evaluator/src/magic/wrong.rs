//! Messages about magics that do not exist or lack an operand.

use stratoscope_cell_text::magic::MagicLine;
use stratoscope_diagnostics::{Profile, check};

use super::{names, profile};

/// IPython's magics that do not exist here, and what does the same.
const ELSEWHERE: [(&str, &str); 9] = [
    (
        "cd",
        "`std::env::set_current_dir(\"…\")?` changes the folder",
    ),
    ("conda", "`%dep` adds a crate, `!conda …` runs conda"),
    ("ls", "`!ls` lists files"),
    ("lsmagic", "`%help` lists all"),
    (
        "matplotlib",
        "nothing needs it: `plot(&values)?` and `history.plot();` draw",
    ),
    ("pip", "`%dep` adds a crate, `!pip …` runs pip"),
    ("pwd", "`!pwd` shows the folder"),
    ("run", "`%load FILE` puts a file's text into the cell"),
    ("writefile", "`%save FILE 3` writes cell 3"),
];

/// Why there is no such magic, and which one may be meant. `given` is its name with its `%`.
pub fn unknown(given: &str) -> String {
    let bare = given.trim_start_matches('%');
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(other, _)| *other == bare) {
        return format!("there is no magic `{given}`; {instead}");
    }
    let known: Vec<&str> = names().map(|(name, _)| name).collect();
    match check::suggest::similar(given, known).first() {
        Some(meant) => format!("there is no magic `{given}`; did you mean `{meant}`?"),
        None => format!("there is no magic `{given}`; `%help` lists all"),
    }
}

/// Why there is no such profile, and which one may be meant.
pub fn unknown_profile(name: &str) -> String {
    let names = Profile::ALL.map(|profile| profile.name());
    let meant = check::suggest::similar(name, names).first().cloned();
    let meant = meant.map_or(String::new(), |it| format!("; did you mean `{it}`?"));
    format!(
        "there is no profile `{name}`; there are {}{meant}",
        profile::all()
    )
}

/// What is missing behind a magic without an operand: the code of a clock, the operand of another. `is_alone`:
/// no line follows.
pub fn missing(line: &MagicLine<'_>, is_alone: bool) -> Option<String> {
    let MagicLine {
        name,
        is_of_cell,
        operand,
    } = *line;
    if !operand.is_empty() {
        return None;
    }
    Some(match (name, is_of_cell) {
        ("time" | "timeit", false) if is_alone => {
            format!("which code? `%{name} CODE`, or `%%{name}` above a cell")
        }
        ("time" | "timeit", true) if is_alone => {
            format!("which code? `%%{name}` stands above a cell")
        }
        ("placement", false) => "which model? `%placement MODEL`".to_owned(),
        ("dep", false) => "which crate? `%dep itoa = \"1\"`".to_owned(),
        ("doc", false) => "of which name? `%doc NAME`, or `?NAME`".to_owned(),
        ("scope", true) => "which strategy? `%%scope STRATEGY` above a cell".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_said() {
        for (name, expected) in [
            ("tiem", "there is no magic `%tiem`; did you mean `%time`?"),
            ("var", "there is no magic `%var`; did you mean `%vars`?"),
            ("pwd", "there is no magic `%pwd`; `!pwd` shows the folder"),
            ("zzzzzz", "there is no magic `%zzzzzz`; `%help` lists all"),
        ] {
            assert_eq!(unknown(&format!("%{name}")), expected);
        }
        let missing = |line, is_alone| missing(&MagicLine::of(line).expect("a magic"), is_alone);
        assert!(missing("%time", false).is_none(), "the code is below");
        assert!(missing("%%scope", true).is_some_and(|it| it.starts_with("which strategy?")));
        assert!(missing("%vars", true).is_none());
    }
}
