//! Cells that are a question to the kernel and not Rust: one line that begins with `%` or `?`.
//!
//! They are answered beside the evaluator, so that they work when the toolchain does not. Those of
//! [`line`] are Rust with an instruction for the rewriter, as are cells that begin with `%%`.

use std::collections::BTreeMap;

use serde_json::Value;
use stratoscope_diagnostics::rules;
use stratoscope_wire::MimeBundle;

use stratoscope_cell_text::magic_line;

use crate::pages::{self, Page};
use stratoscope_session::{CellError, CellOutcome, Evaluate, MagicCell, OutputSink};

mod files;
mod lints;
mod profile;
mod table;
mod warnings;
mod wrong;

pub use table::table;

/// What the magics are called, with what they do.
const MAGICS: [(&str, &str); 17] = [
    ("%time CODE", "how long code runs; `%%time` above a cell"),
    (
        "%timeit CODE",
        "the same, repeated until it is known well; `%%timeit` above a cell",
    ),
    (
        "%vars",
        "the variables that live between cells; `%vars live`: a table that follows the cells",
    ),
    (
        "%reset",
        "forgets all variables, functions, types and imports; `%reset NAME` drops a variable",
    ),
    (
        "%explain CODE",
        "the page of a diagnostic, such as `%explain SC0102`",
    ),
    (
        "%placement MODEL",
        "where every variable of a model is, as `placement(&model)`",
    ),
    (
        "%%scope STRATEGY",
        "runs the whole cell in a strategy's scope",
    ),
    (
        "%profile NAME",
        "a version of TensorFlow whose words the cards add, such as `tf-2.3`; `off`",
    ),
    (
        "%warnings",
        "what was told; `silence`, `deny` or `default` with codes; `again`",
    ),
    (
        "%dep CRATE = \"1\"",
        "adds a crate, as `:dep`; `%dep itoa = \"1\"`",
    ),
    (
        "%env NAME=VALUE",
        "sets a variable of the environment; `%env NAME` and `%env` show",
    ),
    ("%load FILE", "puts a file's text into the cell"),
    (
        "%save FILE 1-3 5",
        "writes the cells with these numbers, or all that ran; `-f` replaces the file",
    ),
    ("%doc NAME", "what is known of a name; also `?NAME`"),
    ("%help", "this list"),
    ("!COMMAND", "runs a command of the shell"),
    ("?NAME", "what is known of a name"),
];

/// The magics by name, with what they do.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = |title: &'static str| title.split(' ').next().unwrap_or(title);
    let magics = MAGICS
        .iter()
        .map(move |(title, effect)| (name(title), *effect));
    magics.filter(|(name, _)| name.starts_with('%'))
}

/// A magic that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Magic {
    /// `%explain CODE`; without a code, all of them.
    Explain(String),
    /// `%profile`, `%profile NAME`, `%profile off`
    Profile(String),
    /// `%warnings`, alone or with what is to be done
    Warnings(String),
    /// `%vars`, `%vars live`
    Variables(String),
    /// `%reset`
    Reset,
    /// `%load FILE`
    Load(String),
    /// `%save FILE CELLS`
    Save(String),
    /// `%help`
    Help,
    /// `?name`, `%doc name`
    Inspect(String),
    /// A magic that answers by itself, with more lines below it.
    NotAlone(String),
    /// Something is missing behind it: what to say.
    Missing(String),
    /// Begins like a magic and is none.
    Unknown(String),
}

impl Magic {
    /// The magic that a cell is; `None`: it is Rust.
    pub fn parse(code: &str) -> Option<Self> {
        let code = code.trim();
        let first = code.lines().next().unwrap_or_default().trim_end();
        if let Some(name) = code.strip_prefix('?').filter(|_| first == code) {
            return Some(Magic::inspect(name));
        }
        let title = first.strip_prefix('%')?;
        let (name, rest) = title.split_once(char::is_whitespace).unwrap_or((title, ""));
        let rest = rest.trim();
        let bare = name.strip_prefix('%');
        let missing = || wrong::missing(name, first == code);
        if let Some(told) = rest.is_empty().then(missing).flatten() {
            return Some(Magic::Missing(told));
        }
        // With names it drops variables, which Rust does.
        if name == "reset" && !rest.is_empty() {
            return None;
        }
        if magic_line::NAMES.contains(&name) || bare.is_some_and(|it| CELL_MAGICS.contains(&it)) {
            return None;
        }
        if first != code && names().any(|(magic, _)| magic[1..] == *name) {
            return Some(Magic::NotAlone(name.to_owned()));
        }
        Some(match name {
            "explain" => Magic::Explain(rest.to_owned()),
            "profile" => Magic::Profile(rest.to_owned()),
            "warnings" => Magic::Warnings(rest.to_owned()),
            "vars" | "who" | "whos" => Magic::Variables(rest.to_owned()),
            "reset" => Magic::Reset,
            "load" => Magic::Load(rest.to_owned()),
            "save" => Magic::Save(rest.to_owned()),
            "doc" => Magic::inspect(rest),
            "help" => Magic::Help,
            other => Magic::Unknown(other.to_owned()),
        })
    }

    /// `?name`; a macro's name is that without its `!`.
    fn inspect(name: &str) -> Self {
        match name.trim().trim_end_matches('!') {
            "" => Self::Missing("of which name? `?NAME`, or `%doc NAME`".to_owned()),
            name => Self::Inspect(name.to_owned()),
        }
    }
}

impl MagicCell for Magic {
    fn needs_evaluator(&self) -> bool {
        matches!(
            self,
            Magic::Variables(_)
                | Magic::Inspect(_)
                | Magic::Profile(_)
                | Magic::Warnings(_)
                | Magic::Reset
        )
    }

    fn answer(
        &self,
        number: u64,
        outputs: &dyn OutputSink,
        cells: &BTreeMap<u64, String>,
    ) -> CellOutcome {
        match self {
            Magic::Explain(code) if code.is_empty() => show(outputs, list_of_codes()),
            Magic::Explain(code) => match Page::of(code) {
                Some(page) => show_page(outputs, &page),
                None => {
                    return fail(number, "UnknownCode", pages::unknown(code, "%explain"));
                }
            },
            Magic::Help => show(outputs, help()),
            Magic::Unknown(name) => {
                return fail(number, "UnknownMagic", wrong::unknown(name));
            }
            Magic::Missing(told) => {
                return fail(number, "MagicIncomplete", told.clone());
            }
            Magic::NotAlone(name) => {
                let evalue = format!("`%{name}` stands alone in its cell");
                return fail(number, "MagicNotAlone", evalue);
            }
            Magic::Load(path) => match files::load(path) {
                Ok(text) => outputs.replace_input(&text),
                Err(evalue) => return fail(number, "FileError", evalue),
            },
            Magic::Save(asked) => match files::save(asked, cells) {
                Ok(told) => show(outputs, told),
                Err(evalue) => return fail(number, "FileError", evalue),
            },
            _ => {
                return fail(
                    number,
                    "NoEvaluator",
                    "this magic needs the evaluator".to_owned(),
                );
            }
        }
        CellOutcome::Ok
    }

    fn answer_with(
        &self,
        number: u64,
        outputs: &dyn OutputSink,
        evaluator: &mut dyn Evaluate,
    ) -> CellOutcome {
        match self {
            Magic::Variables(asked) => {
                match asked.as_str() {
                    "" => outputs.result(table(&evaluator.variables())),
                    "live" => outputs.show_variables_live(table(&evaluator.variables())),
                    other => {
                        let evalue = format!(
                            "`%vars` shows all variables, `%vars live` a table that follows the \
                             cells; there is no `%vars {other}`"
                        );
                        return fail(number, "UnknownOption", evalue);
                    }
                }
                CellOutcome::Ok
            }
            Magic::Profile(asked) => {
                let mut told = Err(String::new());
                evaluator.settings(&mut |settings| told = profile::answer(asked, settings));
                match told {
                    Ok(text) => show(outputs, text),
                    Err(evalue) => return fail(number, "UnknownProfile", evalue),
                }
                CellOutcome::Ok
            }
            Magic::Warnings(asked) => {
                let mut told = Err(String::new());
                evaluator.settings(&mut |settings| told = warnings::answer(asked, settings));
                match told {
                    Ok(data) => outputs.display(data, MimeBundle::new(), None, false),
                    Err(evalue) => return fail(number, "UnknownWarning", evalue),
                }
                CellOutcome::Ok
            }
            Magic::Inspect(name) => match evaluator.inspect(name, name.len(), 1) {
                Some(data) => {
                    outputs.page(data);
                    CellOutcome::Ok
                }
                None => fail(
                    number,
                    "UnknownName",
                    format!("nothing is known of `{name}`"),
                ),
            },
            Magic::Reset => match evaluator.reset() {
                Ok(()) => {
                    show(
                        outputs,
                        "everything is forgotten; crates of `:dep` too".to_owned(),
                    );
                    CellOutcome::Ok
                }
                Err(error) => CellOutcome::Error(error),
            },
            _ => self.answer(number, outputs, &BTreeMap::new()),
        }
    }
}

/// What can stand above a whole cell, behind `%%`.
const CELL_MAGICS: [&str; 3] = ["scope", "time", "timeit"];

fn show(outputs: &dyn OutputSink, text: String) {
    let data = MimeBundle::from_iter([("text/plain".to_owned(), Value::from(text))]);
    outputs.display(data, MimeBundle::new(), None, false);
}

fn fail(number: u64, ename: &str, evalue: String) -> CellOutcome {
    CellOutcome::Error(CellError {
        ename: ename.to_owned(),
        traceback: vec![
            format!("Cell In[{number}], line 1"),
            format!("{ename}: {evalue}"),
        ],
        evalue,
    })
}

/// The page of a code: front ends draw the Markdown, a terminal has the text.
fn show_page(outputs: &dyn OutputSink, page: &Page) {
    let data = MimeBundle::from_iter([
        ("text/markdown".to_owned(), Value::from(page.markdown())),
        ("text/plain".to_owned(), Value::from(page.plain())),
    ]);
    outputs.display(data, MimeBundle::new(), None, false);
}

fn list_of_codes() -> String {
    rules::CATALOGUE
        .iter()
        .map(|entry| format!("{}  {}\n", entry.page.code, entry.page.name))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn help() -> String {
    let line = |(name, effect): &(&str, &str)| format!("{name:<17} {effect}\n");
    MAGICS
        .iter()
        .map(line)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: Option<Magic>) {
        assert_eq!(Magic::parse(code), expected, "{code}");
    }

    #[test]
    fn magics_are_told_from_rust() {
        check("%explain SC0102", Some(Magic::Explain("SC0102".into())));
        check("  %explain\n", Some(Magic::Explain(String::new())));
        check("%vars", Some(Magic::Variables(String::new())));
        check("%vars live", Some(Magic::Variables("live".into())));
        check("%profile", Some(Magic::Profile(String::new())));
        check("%profile tf-2.3", Some(Magic::Profile("tf-2.3".into())));
        check(
            "%warnings deny SC0701",
            Some(Magic::Warnings("deny SC0701".into())),
        );
        check("?Vec", Some(Magic::Inspect("Vec".into())));
        check("%magic 1", Some(Magic::Unknown("magic".into())));
        check("%%scope strategy\nlet x = 1;", None);
        check("%%scope strategy", None);
        check("1 % 2", None);
        check("let x = f()?;", None);
        check("%vars\nlet x = 1;", Some(Magic::NotAlone("vars".into())));
        check("%tiem f()\ng()", Some(Magic::Unknown("tiem".into())));
        check("%time f()", None);
        check("%%time\nf()", None);
        check("%%tiem\nf()", Some(Magic::Unknown("%tiem".into())));
        check("%env A=1\nf()", None);
        check("!ls", None);
        check("%doc Vec", Some(Magic::Inspect("Vec".into())));
        check("%reset a", None);
        check("%reset", Some(Magic::Reset));
        check("%doc Vec", Some(Magic::Inspect("Vec".into())));
        check("?compile!", Some(Magic::Inspect("compile".into())));
        let asks = |code| matches!(Magic::parse(code), Some(Magic::Missing(_)));
        for code in [
            "%time",
            "%%timeit",
            "%placement",
            "%%scope\nx",
            "%dep",
            "%doc",
            "?",
            "?!",
        ] {
            assert!(asks(code), "{code}");
        }
        check("%time\nf()", None);
        check("%env", None);
        check("", None);
    }
}
