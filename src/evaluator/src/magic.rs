//! Cells that are a request to the kernel and not Rust: one line that begins with `%` or `?`.
//!
//! Most are answered without the evaluator, so that they work when the toolchain does not. Magics that stand for
//! Rust code are read by `stratoscope_cell_text::header`.

use std::collections::BTreeMap;

use serde_json::Value;
use stratoscope_diagnostics::rules;
use stratoscope_wire::MimeBundle;

use crate::pages::{self, Page};
use stratoscope_session::{
    CellError, CellOutcome, Evaluate, LastError, MagicCell, OutputSink, Stream,
};

mod files;
mod history;
mod lints;
mod profile;
mod request;
mod steer;
pub(crate) mod table;
mod warnings;
mod wrong;

pub use request::{AskedHelp, Magic};
pub use table::table;

/// The magics: how they are written, and what they do.
const MAGICS: [(&str, &str); 25] = [
    (
        "%time CODE",
        "the time that code takes to run; `%%time` for a whole cell",
    ),
    (
        "%timeit CODE",
        "the same, repeated: mean and deviation; `%%timeit` for a whole cell",
    ),
    (
        "%vars",
        "the variables of the notebook; `%vars live`: a table that is updated after each cell",
    ),
    (
        "%reset",
        "removes all variables, functions, types and imports; `%reset NAME`: one variable",
    ),
    (
        "%explain CODE",
        "the documentation of a diagnostic, such as `%explain SC0102`",
    ),
    (
        "%why",
        "the cards and the traceback of the last cell that failed, once more",
    ),
    (
        "%placement MODEL",
        "where every variable of a model is, as `placement(&model)`",
    ),
    (
        "%device NAME",
        "models outside of a scope compute on it: `cpu`, `wgpu:0`, `cuda:0`, `auto`; without a name: the devices",
    ),
    (
        "%%scope STRATEGY",
        "runs the whole cell in a strategy's scope",
    ),
    ("%%bash", "runs the whole cell in a shell, as `%%sh`"),
    (
        "%%html",
        "shows the whole cell as a page; also `%%markdown`, `%%latex` and `%%svg`",
    ),
    (
        "%steer socket",
        "lets programs of this user read and steer runs; `%steer off` ends it, `%steer` shows where",
    ),
    (
        "%profile NAME",
        "cards quote this version of TensorFlow, such as `tf-2.3`; `off`: none",
    ),
    (
        "%warnings",
        "the warnings so far; `silence`, `deny` or `default` with codes; `again`: show repeated ones",
    ),
    (
        "%cd FOLDER",
        "changes the folder in which cells run; without a name: the home folder",
    ),
    (
        "%dep CRATE = \"1\"",
        "adds a crate, for example `%dep itoa = \"1\"`",
    ),
    (
        "%env NAME=VALUE",
        "sets an environment variable; `%env NAME` shows one, `%env` all",
    ),
    ("%load FILE", "loads the text of a file into the cell"),
    (
        "%save FILE 1-3 5",
        "writes the source of executed cells, of all without numbers; `-f` replaces the file",
    ),
    (
        "%history TEXT",
        "earlier cells with that text, of all sessions; `-n 50`: more of them; `off`, `on`, `clear`: what is kept",
    ),
    (
        "%doc NAME",
        "the type and the documentation of a name; also `?NAME`, `NAME?` and `help(NAME)`",
    ),
    (
        "%exit",
        "ends `jupyter console`, as `exit`, `quit` and Ctrl-D do",
    ),
    ("%help", "this list"),
    ("!COMMAND", "runs a shell command"),
    ("?NAME", "the same as `%doc NAME`"),
];

/// The magics by name, with what they do.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = |title: &'static str| title.split(' ').next().unwrap_or(title);
    let magics = MAGICS
        .iter()
        .map(move |(title, effect)| (name(title), *effect));
    magics.filter(|(name, _)| name.starts_with('%'))
}

impl MagicCell for Magic {
    fn needs_evaluator(&self) -> bool {
        matches!(
            self,
            Magic::Variables { .. }
                | Magic::Inspect(_)
                | Magic::Profile(_)
                | Magic::Warnings(_)
                | Magic::Reset
                | Magic::Why
                | Magic::Exit(_)
        )
    }

    fn answer(
        &self,
        number: u64,
        outputs: &dyn OutputSink,
        cells: &BTreeMap<u64, String>,
    ) -> CellOutcome {
        match self {
            Magic::ListCodes => show(outputs, list_of_codes()),
            Magic::Explain(code) => match Page::of(code) {
                Some(page) => show_page(outputs, &page),
                None => {
                    return fail(number, "UnknownCode", pages::unknown(code, "%explain"));
                }
            },
            Magic::Help => show(outputs, help()),
            Magic::Invalid(invalid) => {
                return fail(number, invalid.ename, invalid.evalue.clone());
            }
            Magic::Steer(request) => match outputs.steer(*request) {
                Ok(socket) => show(outputs, steer::text(socket.as_ref())),
                Err(evalue) => return fail(number, "SteerError", evalue),
            },
            Magic::Load(path) => match files::load(path) {
                Ok(text) => outputs.replace_input(&text),
                Err(evalue) => return fail(number, "FileError", evalue),
            },
            Magic::Save(asked) => match files::save(asked, cells, number) {
                Ok(text) => show(outputs, text),
                Err(evalue) => return fail(number, "FileError", evalue),
            },
            Magic::History(request) => match history::answer(request, outputs.history(), number) {
                Ok(data) => outputs.display(data, MimeBundle::new(), None, false),
                Err(evalue) => return fail(number, "HistoryError", evalue),
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
            Magic::Variables { is_live } => {
                let table = table(&evaluator.variables());
                match is_live {
                    true => outputs.show_variables_live(table),
                    false => outputs.result(table),
                }
                CellOutcome::Ok
            }
            Magic::Profile(request) => {
                let mut text = String::new();
                evaluator.settings(&mut |settings| text = profile::answer(*request, settings));
                show(outputs, text);
                CellOutcome::Ok
            }
            Magic::Warnings(request) => {
                let mut answer = Err(String::new());
                evaluator.settings(&mut |settings| answer = warnings::answer(request, settings));
                match answer {
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
            Magic::Exit(name) => {
                // Nobody loses a session by looking at a variable.
                if evaluator.variables().iter().any(|it| it.name == *name) {
                    let message = format!(
                        "`{name}` alone ends a session, and a variable has this name: `{{{name}}}` shows it, `%reset {name}` \
                         drops it"
                    );
                    return fail(number, "NameOfVariable", message);
                }
                outputs.ask_exit();
                let text = "A console ends here. A notebook goes on: its kernel is ended in the menu Kernel.";
                show(outputs, text.to_owned());
                CellOutcome::Ok
            }
            Magic::Why => {
                why(outputs, evaluator.last_error());
                CellOutcome::Ok
            }
            Magic::Reset => match evaluator.reset() {
                Ok(()) => {
                    show(
                        outputs,
                        "all variables, functions, types, imports and crates of `:dep` were removed".to_owned(),
                    );
                    CellOutcome::Ok
                }
                Err(error) => CellOutcome::Error(error),
            },
            _ => self.answer(number, outputs, &BTreeMap::new()),
        }
    }
}

/// The last error as it was shown, with where it was and where more is said about it.
fn why(outputs: &dyn OutputSink, last: Option<LastError>) {
    let Some(LastError {
        number,
        cards,
        error,
    }) = last
    else {
        return show(outputs, "no cell has failed yet".to_owned());
    };
    let is_explained = Page::of(&error.ename).is_some();
    let more = match is_explained {
        true => format!("; `%explain {}` has its page", error.ename),
        false => String::new(),
    };
    show(
        outputs,
        format!("cell {number} failed: {}{more}", error.evalue),
    );
    for card in cards {
        outputs.display(card, MimeBundle::new(), None, false);
    }
    let traceback = error.traceback.join("\n");
    outputs.stream(Stream::Stdout, &format!("{}\n", traceback.trim_end()));
}

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
