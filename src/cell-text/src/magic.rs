//! A line that is a magic: `%name operand` or `%%name operand`, and what the lines mean that stand for Rust code.

/// How often the code behind a clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `%time`, `%%time`
    Once,
    /// `%timeit`, `%%timeit`
    Often,
}

/// How often `%timeit` repeats its code: `-n` loops in each of `-r` runs. `None`: as often as its time needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    /// `-n`
    pub loops: Option<u32>,
    /// `-r`
    pub runs: Option<u32>,
}

impl Repeats {
    /// Reads the options at the beginning of a text, as IPython writes them: `-n 100 -r5`. Returns the length of the text
    /// that they take; what is no option of this kind stays a part of the code.
    pub fn of(text: &str) -> (Self, usize) {
        let (mut repeats, mut length) = (Self::default(), 0);
        loop {
            let rest = text[length..].trim_start_matches([' ', '\t']);
            let begin = text.len() - rest.len();
            let option = rest
                .strip_prefix('-')
                .and_then(|it| it.strip_prefix(['n', 'r']));
            let Some(behind) = option else {
                return (repeats, length);
            };
            let number = behind.trim_start_matches([' ', '\t']);
            let digits = number.find(|it: char| !it.is_ascii_digit());
            let digits = digits.unwrap_or(number.len());
            let is_whole = number[digits..]
                .chars()
                .next()
                .is_none_or(char::is_whitespace);
            let value = number[..digits].parse().ok().filter(|it| *it > 0);
            let (true, Some(value)) = (is_whole, value) else {
                return (repeats, length);
            };
            match rest.as_bytes()[1] {
                b'n' => repeats.loops = Some(value),
                _ => repeats.runs = Some(value),
            }
            length = begin + (rest.len() - number.len()) + digits;
        }
    }
}

/// A line that begins with `%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MagicLine<'a> {
    /// Without its `%`; only exact names are compared, so `%%scoped` is not `%%scope`.
    pub name: &'a str,
    /// It begins with `%%` and is about the whole cell.
    pub is_of_cell: bool,
    /// The rest of the line, without blanks around it.
    pub operand: &'a str,
}

/// The magics that stand for Rust code.
pub const LINE_MAGICS: [&str; 7] = ["cd", "dep", "device", "env", "placement", "time", "timeit"];
/// Commands that IPython also takes without a `!`.
const SHELL_MAGICS: [&str; 4] = ["conda", "ls", "pip", "pwd"];
/// IPython's magics that set up what is there from the start, and what there is.
const NEEDLESS: [(&str, &str); 5] = [
    (
        "autoreload",
        "a cell that is run again replaces what it defines",
    ),
    ("config", "`%help` lists what can be set"),
    (
        "load_ext",
        "a cell that is run again replaces what it defines",
    ),
    (
        "matplotlib",
        "`plot(&values)?` and `history.plot();` draw in the notebook",
    ),
    (
        "reload_ext",
        "a cell that is run again replaces what it defines",
    ),
];
/// The magics that can stand above a whole cell, after `%%`.
pub const CELL_MAGICS: [&str; 3] = ["scope", "time", "timeit"];
/// The magics whose cell is a text, after `%%`.
const TEXT_MAGICS: [&str; 6] = ["bash", "sh", "html", "markdown", "latex", "svg"];

impl<'a> MagicLine<'a> {
    /// Reads a line, which may be indented. `None`: it does not begin with `%`.
    pub fn of(line: &'a str) -> Option<Self> {
        let line = line.trim().strip_prefix('%')?;
        let bare = line.strip_prefix('%');
        let text = bare.unwrap_or(line);
        let (name, operand) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Some(Self {
            name,
            is_of_cell: bare.is_some(),
            operand: operand.trim(),
        })
    }

    /// The clock that this magic is.
    pub fn clock(&self) -> Option<Clock> {
        match self.name {
            "time" => Some(Clock::Once),
            "timeit" => Some(Clock::Often),
            _ => None,
        }
    }

    /// Whether the rest of its cell is no Rust, but a text that it runs or shows.
    pub fn takes_text(&self) -> bool {
        self.is_of_cell && TEXT_MAGICS.contains(&self.name)
    }

    /// What stands for such a cell, whose text is this.
    pub fn of_text(&self, text: &str) -> String {
        let form = match self.name {
            "bash" | "sh" => {
                let quoted = text.replace('\'', "'\\''");
                let command = format!("exec {} -c '{quoted}'", self.name);
                return format!("::stratoscope::cell::shell({command:?})?;");
            }
            // Text that has its own dollar signs is no single formula.
            "latex" if !text.contains('$') && !text.contains("\\begin{") => "Latex",
            "markdown" | "latex" => "Markdown",
            "svg" => "Svg",
            _ => "Html",
        };
        format!(
            "::stratoscope::prelude::display(&::stratoscope::prelude::{form}({:?}));",
            text.trim_end()
        )
    }

    /// What is there without this magic, where it has nothing to do.
    fn what_is_there(&self) -> Option<&'static str> {
        // Another extension would bring magics that are not there.
        let is_extension = ["load_ext", "reload_ext"].contains(&self.name);
        if self.is_of_cell || (is_extension && self.operand != "autoreload") {
            return None;
        }
        let needless = NEEDLESS.iter().find(|(name, _)| *name == self.name);
        needless.map(|(_, there)| *there)
    }

    /// Whether its code is Rust, or it stands for Rust code: the evaluator runs it like any other code.
    pub fn is_code(&self) -> bool {
        match self.is_of_cell {
            true => CELL_MAGICS.contains(&self.name) || self.takes_text(),
            // With names it drops variables.
            false => {
                LINE_MAGICS.contains(&self.name)
                    || SHELL_MAGICS.contains(&self.name)
                    || self.what_is_there().is_some()
                    || (self.name == "reset" && !self.operand.is_empty())
            }
        }
    }
}

/// What a line is replaced by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Statements.
    Rust(String),
    /// A command of evcxr's (`:dep`).
    Command(String),
    /// Nothing: a clock, which is written around the code.
    Nothing,
}

/// What a whole line stands for: `!command`, `%device`, `%env`, `%placement model`, `%reset name` or `%dep`. It runs where
/// the cell runs, with its variables, its streams and its interrupt button. `line` has no blanks around it.
pub fn replacement(line: &str) -> Option<Replacement> {
    if let Some(command) = line.strip_prefix('!') {
        let rust = format!("::stratoscope::cell::shell({:?})?;", command.trim());
        return Some(Replacement::Rust(rust));
    }
    let magic = MagicLine::of(line).filter(|magic| !magic.is_of_cell)?;
    let operand = magic.operand;
    if let Some(there) = magic.what_is_there() {
        let note = format!("`{line}` has nothing to set here: {there}");
        return Some(Replacement::Rust(format!(
            "::std::eprintln!(\"{{}}\", {note:?});"
        )));
    }
    if SHELL_MAGICS.contains(&magic.name) {
        let command = format!("{} {operand}", magic.name);
        return Some(Replacement::Rust(format!(
            "::stratoscope::cell::shell({:?})?;",
            command.trim()
        )));
    }
    Some(match magic.name {
        "cd" => Replacement::Rust(format!("::stratoscope::cell::change_folder({operand:?})?;")),
        "dep" => Replacement::Command(format!(":dep {operand}")),
        "device" => Replacement::Rust(format!("::stratoscope::cell::device({operand:?})?;")),
        "env" => Replacement::Rust(format!("::stratoscope::cell::environment({operand:?});")),
        "placement" => {
            Replacement::Rust(format!("::stratoscope::progress::placement(&({operand}));"))
        }
        "reset" if !operand.is_empty() => {
            let names = operand.split([' ', ',']).filter(|name| !name.is_empty());
            // In a box, so that a value that is copied when it is moved goes, too.
            let dropped =
                |name| format!("let {name} = ::std::boxed::Box::new({name});drop({name});");
            Replacement::Rust(names.map(dropped).collect())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rust() {
        let rust = |text: &str| Some(Replacement::Rust(text.to_owned()));
        for (line, expected) in [
            (
                "!echo \"a\"",
                rust("::stratoscope::cell::shell(\"echo \\\"a\\\"\")?;"),
            ),
            (
                "%env A=1",
                rust("::stratoscope::cell::environment(\"A=1\");"),
            ),
            (
                "%device wgpu:0",
                rust("::stratoscope::cell::device(\"wgpu:0\")?;"),
            ),
            ("%device", rust("::stratoscope::cell::device(\"\")?;")),
            (
                "%dep itoa = \"1\"",
                Some(Replacement::Command(":dep itoa = \"1\"".to_owned())),
            ),
            (
                "%cd data",
                rust("::stratoscope::cell::change_folder(\"data\")?;"),
            ),
            ("%ls -a", rust("::stratoscope::cell::shell(\"ls -a\")?;")),
            ("%pwd", rust("::stratoscope::cell::shell(\"pwd\")?;")),
            (
                "%autoreload 2",
                rust(
                    "::std::eprintln!(\"{}\", \"`%autoreload 2` has nothing to set here: a cell that is run again replaces what it defines\");",
                ),
            ),
            (
                "%placement model",
                rust("::stratoscope::progress::placement(&(model));"),
            ),
            (
                "%reset a, b",
                rust(
                    "let a = ::std::boxed::Box::new(a);drop(a);let b = ::std::boxed::Box::new(b);drop(b);",
                ),
            ),
            ("%reset", None),
            ("%vars", None),
            ("%%env A=1", None),
            ("a % env", None),
        ] {
            assert_eq!(replacement(line), expected, "{line}");
        }
    }

    #[test]
    fn a_text_becomes_a_command_or_a_display() {
        for (line, text, expected) in [
            (
                "%%bash",
                "echo 'a'\n",
                r#"::stratoscope::cell::shell("exec bash -c 'echo '\\''a'\\''\n'")?;"#,
            ),
            (
                "%%html",
                "<b>a</b>\n",
                r#"::stratoscope::prelude::display(&::stratoscope::prelude::Html("<b>a</b>"));"#,
            ),
        ] {
            let magic = MagicLine::of(line).expect("a magic");
            assert!(magic.takes_text() && magic.is_code());
            assert_eq!(magic.of_text(text), expected);
        }
        assert!(!MagicLine::of("%html").expect("a magic").takes_text());
    }

    #[test]
    fn options_say_how_often_code_is_repeated() {
        let read = |text| {
            let (repeats, length) = Repeats::of(text);
            (repeats.loops, repeats.runs, &text[length..])
        };
        assert_eq!(read(" f(a)"), (None, None, " f(a)"));
        assert_eq!(read(" -n 100 f(a)"), (Some(100), None, " f(a)"));
        assert_eq!(read(" -r3 -n10  -x"), (Some(10), Some(3), "  -x"));
        // Rust's own signs.
        for code in [
            " -n",
            " -n - 3",
            " -n 3.0",
            " -name",
            " -n 0",
            " -n 99999999999 f()",
        ] {
            assert_eq!(read(code), (None, None, code));
        }
    }

    #[test]
    fn only_whole_names_are_magics() {
        let is_code = |line| MagicLine::of(line).is_some_and(|it| it.is_code());
        for line in ["%time", "  %%time f()", "%%scope s", "%dep x", "%reset a"] {
            assert!(is_code(line), "{line}");
        }
        for line in ["%timer", "%%scoped s", "%%dep x", "%reset", "%vars", "time"] {
            assert!(!is_code(line), "{line}");
        }
    }
}
