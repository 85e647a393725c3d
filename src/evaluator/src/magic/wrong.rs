//! Messages about magics that do not exist or lack an operand.

use stratoscope_cell_text::magic::MagicLine;
use stratoscope_diagnostics::{Profile, check};

use super::{names, profile};

/// IPython's magics that do not exist here, and what does the same.
const ELSEWHERE: [(&str, &str); 16] = [
    (
        "capture",
        "end the cell with `;` to show no result; `!COMMAND > FILE` keeps the output of a command",
    ),
    (
        "javascript",
        "`display_html(\"<script>…</script>\");` runs a script where the front end allows it",
    ),
    (
        "load_ext",
        "there are no extensions: `%time` and `%timeit` are there, `history.plot();` draws, and a cell that is run again \
         replaces what it defines",
    ),
    ("lsmagic", "`%help` lists all"),
    ("memit", "`%vars` shows the size of each variable"),
    ("pdb", "`%why` shows the last error once more"),
    ("prun", "`%time` and `%timeit` measure"),
    (
        "python",
        "a cell of Python is translated to Rust; `!python3 FILE` runs a program",
    ),
    (
        "python3",
        "a cell of Python is translated to Rust; `!python3 FILE` runs a program",
    ),
    (
        "reload_ext",
        "there are no extensions; run a cell again to replace what it defines",
    ),
    ("run", "`%load FILE` puts a file's text into the cell"),
    ("script", "`%%bash` runs the cell in a shell"),
    ("system", "`!COMMAND` runs a command, `%%bash` a cell"),
    (
        "tensorboard",
        "`callbacks = [TensorBoard::new(\"logs\")?]` in `fit!` writes its files, and `!tensorboard --logdir logs` shows them",
    ),
    ("writefile", "`%save FILE 3` writes cell 3"),
    ("xmode", "`%why` shows the last error once more"),
];

/// Whether a magic of IPython has an answer of its own, by its bare name: an extension brings one of its name.
pub fn is_known(bare: &str) -> bool {
    ELSEWHERE.iter().any(|(other, _)| *other == bare)
}

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

/// The first version of TensorFlow 2 whose Keras is Keras 3.
const FIRST_OF_KERAS_3: u32 = 16;

/// Why there is no such profile, and which one may be meant.
pub fn unknown_profile(name: &str) -> String {
    let version = name.strip_prefix("tf-2.").or(name.strip_prefix("2."));
    if version.is_some_and(|minor| {
        minor
            .parse()
            .is_ok_and(|minor: u32| minor >= FIRST_OF_KERAS_3)
    }) {
        return format!(
            "there is no profile `{name}`; TensorFlow 2.{FIRST_OF_KERAS_3} and later have Keras 3: `%profile keras-3`"
        );
    }
    let names = Profile::ALL.map(|profile| profile.name());
    let meant = check::suggest::similar(name, names).first().cloned();
    let meant = meant.map_or(String::new(), |it| format!("; did you mean `{it}`?"));
    format!(
        "there is no profile `{name}`; there are {}, and `off`{meant}",
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
        let is_crate = name != "dep" || is_of_cell || names_crate(operand);
        return (!is_crate).then(|| {
            format!("`{operand}` is no crate: `%dep itoa = \"1\"`, or only its name, `%dep itoa`")
        });
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

/// The programs that install packages, which notebooks of Python call without a sign.
const INSTALLERS: [&str; 5] = ["pip", "pip3", "conda", "mamba", "apt"];

/// What to write instead of a cell that is one call of an installer.
pub fn for_the_shell(code: &str) -> Option<String> {
    let mut words = code.split_whitespace();
    let (program, verb) = (words.next()?, words.next()?);
    let is_one = INSTALLERS.contains(&program) && verb == "install" && code.lines().count() == 1;
    is_one.then(|| {
        format!("a command for the shell begins with `!`: `!{code}`; a crate of Rust is added by `%dep NAME = \"1\"`")
    })
}

/// Whether the operand of `%dep` begins with a name, and `=` follows or nothing.
fn names_crate(operand: &str) -> bool {
    let name = operand.split('=').next().unwrap_or_default().trim();
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    name.starts_with(|it: char| it.is_ascii_alphabetic()) && name.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_said() {
        for (name, expected) in [
            ("tiem", "there is no magic `%tiem`; did you mean `%time`?"),
            ("var", "there is no magic `%var`; did you mean `%vars`?"),
            (
                "run",
                "there is no magic `%run`; `%load FILE` puts a file's text into the cell",
            ),
            ("zzzzzz", "there is no magic `%zzzzzz`; `%help` lists all"),
        ] {
            assert_eq!(unknown(&format!("%{name}")), expected);
        }
        let missing = |line, is_alone| missing(&MagicLine::of(line).expect("a magic"), is_alone);
        assert!(missing("%time", false).is_none(), "the code is below");
        assert!(missing("%%scope", true).is_some_and(|it| it.starts_with("which strategy?")));
        assert!(missing("%vars", true).is_none());
        assert!(missing("%dep itoa", true).is_none());
        assert!(missing("%dep rand_core = { version = \"0.9\" }", true).is_none());
        let refused = missing("%dep <img src=x> = \"1\"", true);
        assert!(refused.is_some_and(|it| it.contains("is no crate")));
        for name in ["tf-2.16", "tf-2.19", "2.17"] {
            assert!(
                unknown_profile(name).ends_with("`%profile keras-3`"),
                "{name}"
            );
        }
        assert!(unknown_profile("tf-2.9").contains("`off`"));
        assert!(unknown("%load_ext").contains("there are no extensions"));
        assert!(unknown("%%python").contains("is translated"));
        assert!(
            for_the_shell("pip install -q serde")
                .is_some_and(|it| it.contains("`!pip install -q serde`"))
        );
        for code in [
            "pip",
            "pip install a\nlet x = 1;",
            "install pip",
            "pip.install(x)",
        ] {
            assert_eq!(for_the_shell(code), None, "{code}");
        }
    }
}
