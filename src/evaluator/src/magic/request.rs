//! The magic that a cell is, parsed: what is asked, with every option as a value.

use stratoscope_cell_text::ParsedCell;
use stratoscope_cell_text::cursor::is_name;
use stratoscope_cell_text::magic::MagicLine;
use stratoscope_diagnostics::Profile;
use stratoscope_diagnostics::policy::Level;
use stratoscope_session::SteerRequest;

use super::history::HistoryRequest;
use super::{names, steer, wrong};
use crate::python_cell;

/// A cell that is a question to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Magic {
    /// `%explain`: the list of all codes.
    ListCodes,
    /// `%explain CODE`
    Explain(String),
    /// `%profile`, `%profile NAME`, `%profile off`
    Profile(ProfileRequest),
    /// `%warnings`, alone or with what is to be done.
    Warnings(WarningsRequest),
    /// `%vars`: a table of the variables; `%vars live`: one that follows the cells.
    Variables {
        /// See [`Magic::Variables`].
        is_live: bool,
    },
    /// `%steer`, `%steer socket`, `%steer off`
    Steer(SteerRequest),
    /// `%reset`
    Reset,
    /// `%why`
    Why,
    /// `%load FILE`
    Load(String),
    /// `%save FILE CELLS`
    Save(String),
    /// `%history`, with what is looked for or to be changed.
    History(HistoryRequest),
    /// `%help`
    Help,
    /// `exit`, `quit`, as Python's: the name that was written.
    Exit(String),
    /// `?name`, `%doc name`
    Inspect(String),
    /// It cannot be answered.
    Invalid(Invalid),
}

/// What `%profile` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileRequest {
    /// Which one is set?
    Show,
    /// Quote no version.
    Off,
    /// Quote this version.
    Set(Profile),
}

/// What `%warnings` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningsRequest {
    /// The table.
    Show,
    /// Every warning is shown once more.
    Again,
    /// `silence`, `deny` or `default` (no level) with codes or names of rustc's lints.
    Set {
        /// `None`: the default.
        level: Option<Level>,
        /// At least one.
        codes: Vec<String>,
    },
}

/// The name of the error of a magic that does not exist.
const UNKNOWN: &str = "UnknownMagic";

/// Why a cell that begins like a magic cannot be answered: the error's name and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// `UnknownMagic`, `MagicIncomplete`, …
    pub ename: &'static str,
    /// One line.
    pub evalue: String,
}

impl Invalid {
    pub(super) fn new(ename: &'static str, evalue: impl Into<String>) -> Self {
        Self {
            ename,
            evalue: evalue.into(),
        }
    }
}

impl Magic {
    /// The magic that a cell is; `None`: it is Rust, or a magic that stands for Rust.
    pub fn parse(code: &str) -> Option<Self> {
        let code = code.trim();
        let first = code.lines().next().unwrap_or_default().trim_end();
        let is_alone = first == code;
        if let Some(name) = code.strip_prefix('?').filter(|_| is_alone) {
            return Some(Self::inspect(name));
        }
        let word = code.trim_end_matches(';').trim_end_matches("()");
        if let "exit" | "quit" | "%exit" | "%quit" = word {
            return Some(Self::Exit(word.trim_start_matches('%').to_owned()));
        }
        if let Some(message) = wrong::for_the_shell(code) {
            return Some(Self::Invalid(Invalid::new("ShellCommand", message)));
        }
        let line = MagicLine::of(first)?;
        if let Some(message) = wrong::missing(&line, is_alone) {
            return Some(Self::Invalid(Invalid::new("MagicIncomplete", message)));
        }
        if line.is_code() {
            return None;
        }
        match Self::of_line(&line, is_alone) {
            // A pasted cell of Python may begin with a line for IPython, which its translation leaves out.
            Err(invalid)
                if invalid.ename == UNKNOWN
                    && !line.is_of_cell
                    && !is_alone
                    && python_cell::is_python(&ParsedCell::of(code).syntax) =>
            {
                None
            }
            magic => Some(magic.unwrap_or_else(Self::Invalid)),
        }
    }

    fn of_line(line: &MagicLine<'_>, is_alone: bool) -> Result<Self, Invalid> {
        let MagicLine {
            name,
            is_of_cell,
            operand,
        } = *line;
        let title = if is_of_cell {
            format!("%%{name}")
        } else {
            format!("%{name}")
        };
        if !is_alone && names().any(|(magic, _)| magic == title) {
            let message = format!("`{title}` stands alone in its cell");
            return Err(Invalid::new("MagicNotAlone", message));
        }
        if is_of_cell {
            return Err(Invalid::new(UNKNOWN, wrong::unknown(&title)));
        }
        Ok(match name {
            "explain" if operand.is_empty() => Self::ListCodes,
            "explain" => Self::Explain(operand.to_owned()),
            "profile" => Self::Profile(ProfileRequest::of(operand)?),
            "warnings" => Self::Warnings(WarningsRequest::of(operand)?),
            "vars" | "who" | "whos" => Self::variables(operand)?,
            "steer" => Self::Steer(steer::parse(operand)?),
            "reset" => Self::Reset,
            "why" | "debug" | "tb" => Self::Why,
            "load" => Self::Load(operand.to_owned()),
            "save" => Self::Save(operand.to_owned()),
            "history" | "hist" => Self::History(HistoryRequest::of(operand)?),
            "doc" => Self::inspect(operand),
            "help" => Self::Help,
            "load_ext" | "reload_ext" if wrong::is_known(operand) => {
                return Err(Invalid::new(
                    UNKNOWN,
                    wrong::unknown(&format!("%{operand}")),
                ));
            }
            _ => return Err(Invalid::new(UNKNOWN, wrong::unknown(&title))),
        })
    }

    /// `?name`; a macro's name is that without its `!`.
    pub fn inspect(name: &str) -> Self {
        match name.trim().trim_end_matches('!') {
            "" => Self::Invalid(Invalid::new(
                "MagicIncomplete",
                "of which name? `?NAME`, or `%doc NAME`",
            )),
            name => Self::Inspect(name.to_owned()),
        }
    }

    fn variables(operand: &str) -> Result<Self, Invalid> {
        match operand {
            "" => Ok(Self::Variables { is_live: false }),
            "live" => Ok(Self::Variables { is_live: true }),
            other => Err(Invalid::new(
                "UnknownOption",
                format!(
                    "`%vars` shows all variables, `%vars live` a table that follows the cells; there is no \
                     `%vars {other}`"
                ),
            )),
        }
    }
}

/// What is asked in IPython's or Python's way, alone in its cell: `name?`, `name??` or `help(name)`. All of them may also be
/// Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedHelp<'a> {
    /// What help is wanted about; empty for `help()`.
    pub name: &'a str,
    /// It is written as a call of a function `help`.
    pub is_call: bool,
}

impl<'a> AskedHelp<'a> {
    /// Reads a cell; `None`: it is something else.
    pub fn of(code: &'a str) -> Option<Self> {
        let code = code.trim().trim_end_matches(';').trim_end();
        let called = code
            .strip_prefix("help(")
            .and_then(|it| it.strip_suffix(')'));
        let name = match called {
            Some(name) => name.trim(),
            None => code.strip_suffix("??").or(code.strip_suffix('?'))?,
        };
        let is_path = |name: &str| {
            name.starts_with(|it: char| it.is_alphabetic() || it == '_')
                && name.chars().all(|it| is_name(it) || "!:.".contains(it))
        };
        let is_call = called.is_some();
        (is_path(name) || (is_call && name.is_empty())).then_some(Self { name, is_call })
    }
}

impl ProfileRequest {
    fn of(operand: &str) -> Result<Self, Invalid> {
        match operand {
            "" => Ok(Self::Show),
            "off" | "none" | "default" => Ok(Self::Off),
            name => match Profile::parse(name) {
                Some(profile) => Ok(Self::Set(profile)),
                None => Err(Invalid::new("UnknownProfile", wrong::unknown_profile(name))),
            },
        }
    }
}

/// What `%warnings` can be followed by.
pub const WARNINGS_USAGE: &str = "`%warnings silence CODE`, `%warnings deny CODE`, `%warnings default CODE`, \
                                  `%warnings again`";

impl WarningsRequest {
    fn of(operand: &str) -> Result<Self, Invalid> {
        let mut words = operand.split([' ', ',']).filter(|word| !word.is_empty());
        let Some(word) = words.next() else {
            return Ok(Self::Show);
        };
        let level = match word {
            "silence" => Some(Level::Silenced),
            "deny" => Some(Level::Denied),
            "default" => None,
            "again" => return Ok(Self::Again),
            other => {
                let message = format!("`%warnings` has no `{other}`; there is {WARNINGS_USAGE}");
                return Err(Invalid::new("UnknownWarning", message));
            }
        };
        let codes: Vec<String> = words.map(str::to_owned).collect();
        if codes.is_empty() {
            let message = format!("which code? `%warnings {word} SC0410`");
            return Err(Invalid::new("UnknownWarning", message));
        }
        Ok(Self::Set { level, codes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: Option<Magic>) {
        assert_eq!(Magic::parse(code), expected, "{code}");
    }

    fn ename(code: &str) -> Option<&'static str> {
        match Magic::parse(code) {
            Some(Magic::Invalid(invalid)) => Some(invalid.ename),
            _ => None,
        }
    }

    #[test]
    fn magics_are_distinguished_from_rust() {
        check("%explain SC0102", Some(Magic::Explain("SC0102".into())));
        check("  %explain\n", Some(Magic::ListCodes));
        check("%vars", Some(Magic::Variables { is_live: false }));
        check("%vars live", Some(Magic::Variables { is_live: true }));
        check("%profile", Some(Magic::Profile(ProfileRequest::Show)));
        check(
            "%profile tf-2.3",
            Some(Magic::Profile(ProfileRequest::Set(Profile::Tf23))),
        );
        check(
            "%warnings deny SC0701",
            Some(Magic::Warnings(WarningsRequest::Set {
                level: Some(Level::Denied),
                codes: vec!["SC0701".into()],
            })),
        );
        for code in ["?Vec", "%doc Vec"] {
            check(code, Some(Magic::Inspect("Vec".into())));
        }
        check("?compile!", Some(Magic::Inspect("compile".into())));
        check("%reset", Some(Magic::Reset));
        for code in ["%why", "%tb", "%debug"] {
            check(code, Some(Magic::Why));
        }
        for code in [
            "",
            "%%scope strategy\nlet x = 1;",
            "%%scope strategy",
            "1 % 2",
            "let x = f()?;",
            "%time f()",
            "%time\nf()",
            "%%time\nf()",
            "%env A=1\nf()",
            "%env",
            "!ls",
            "%reset a",
        ] {
            check(code, None);
        }
    }

    #[test]
    fn help_is_asked_as_in_python() {
        for (code, expected) in [
            ("AdamW?", Some(("AdamW", false))),
            ("fit!??\n", Some(("fit!", false))),
            ("model.predict?", Some(("model.predict", false))),
            ("help(AdamW)", Some(("AdamW", true))),
            ("help(compile!);", Some(("compile!", true))),
            ("help()", Some(("", true))),
            ("f()?", None),
            ("let x = a?;", None),
            ("a + b?", None),
            ("help(1)", None),
            ("help(f(x))", None),
            ("?", None),
            ("a\nb?", None),
        ] {
            let found = AskedHelp::of(code).map(|it| (it.name, it.is_call));
            assert_eq!(found, expected, "{code}");
        }
    }

    #[test]
    fn lines_for_ipython_above_python_are_no_magics() {
        let keras = "import tensorflow as tf\nmodel = tf.keras.Sequential()";
        let loss = "model.compile(optimizer=\"adam\", loss=\"mse\")\nmodel.fit(train)";
        for (line, rest, expected) in [
            ("%matplotlib inline", keras, None),
            ("%load_ext tensorboard", keras, None),
            ("%matplotlib inline\n%load_ext tensorboard", loss, None),
            ("%matplotlib inline", "let x = 1;", None),
            ("%matplotlib inline", "", None),
            ("%pylab inline", "let x = 1;", Some("UnknownMagic")),
            ("%pylab inline", "f()", Some("UnknownMagic")),
            ("%%writefile net.py", keras, Some("UnknownMagic")),
            ("%vars", keras, Some("MagicNotAlone")),
        ] {
            let code = format!("{line}\n{rest}");
            assert_eq!(ename(&code), expected, "{code}");
            assert_eq!(Magic::parse(&code).is_none(), expected.is_none(), "{code}");
        }
        let deep = format!("%pylab inline\n{}", "(".repeat(100_000));
        assert_eq!(ename(&deep), Some("UnknownMagic"));
    }

    #[test]
    fn what_cannot_be_answered_is_an_error_with_a_name() {
        for (code, expected) in [
            ("%magic 1", "UnknownMagic"),
            ("%tiem f()\ng()", "UnknownMagic"),
            ("%%tiem\nf()", "UnknownMagic"),
            ("%%scoped s\nf()", "UnknownMagic"),
            ("%vars\nlet x = 1;", "MagicNotAlone"),
            ("%vars all", "UnknownOption"),
            ("%profile tf-9", "UnknownProfile"),
            ("%history -n", "UnknownOption"),
            ("%warnings mute SC0407", "UnknownWarning"),
            ("%warnings silence", "UnknownWarning"),
            ("%time", "MagicIncomplete"),
            ("%%timeit", "MagicIncomplete"),
            ("%placement", "MagicIncomplete"),
            ("%%scope\nx", "MagicIncomplete"),
            ("%dep", "MagicIncomplete"),
            ("%doc", "MagicIncomplete"),
            ("pip install serde", "ShellCommand"),
            ("%dep <b> = \"1\"", "MagicIncomplete"),
            ("?", "MagicIncomplete"),
            ("?!", "MagicIncomplete"),
        ] {
            assert_eq!(ename(code), Some(expected), "{code}");
        }
    }
}
