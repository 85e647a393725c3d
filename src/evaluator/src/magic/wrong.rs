//! What is answered to somebody who asks for a magic in a wrong way.

use stratoscope_diagnostics::check;

use super::names;

/// Magics of IPython's that there are none of, and what does the same here.
const ELSEWHERE: [(&str, &str); 10] = [
    (
        "cd",
        "`std::env::set_current_dir(\"…\")?` changes the folder",
    ),
    ("conda", "`%dep` adds a crate, `!conda …` runs conda"),
    ("history", "the front end's own history, or `%save FILE`"),
    ("ls", "`!ls` lists files"),
    ("lsmagic", "`%help` lists all"),
    ("matplotlib", "nothing needs it: `history.plot();` draws"),
    ("pip", "`%dep` adds a crate, `!pip …` runs pip"),
    ("pwd", "`!pwd` shows the folder"),
    ("run", "`%load FILE` puts a file's text into the cell"),
    ("writefile", "`%save FILE 3` writes cell 3"),
];

/// Why there is no such magic, and which was meant.
pub fn unknown(name: &str) -> String {
    let given = format!("%{name}");
    let bare = name.trim_start_matches('%');
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(other, _)| *other == bare) {
        return format!("there is no magic `{given}`; {instead}");
    }
    let known: Vec<&str> = names().map(|(name, _)| name).collect();
    match check::suggest::similar(&given, known).first() {
        Some(meant) => format!("there is no magic `{given}`; did you mean `{meant}`?"),
        None => format!("there is no magic `{given}`; `%help` lists all"),
    }
}

/// What the cell lacks that begins with the magic `name` and has nothing behind it: the code of a
/// clock, the operand of another.
pub fn missing(name: &str, is_all: bool) -> Option<String> {
    Some(match name {
        "time" | "timeit" if is_all => {
            format!("which code? `%{name} CODE`, or `%%{name}` above a cell")
        }
        "%time" | "%timeit" if is_all => format!("which code? `%{name}` stands above a cell"),
        "placement" => "which model? `%placement MODEL`".to_owned(),
        "dep" => "which crate? `%dep itoa = \"1\"`".to_owned(),
        "doc" => "of which name? `%doc NAME`, or `?NAME`".to_owned(),
        "%scope" => "which strategy? `%%scope STRATEGY` above a cell".to_owned(),
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
            assert_eq!(unknown(name), expected);
        }
        assert!(missing("time", false).is_none(), "the code is below");
        assert!(missing("%scope", true).is_some_and(|it| it.starts_with("which strategy?")));
        assert!(missing("vars", true).is_none());
    }
}
