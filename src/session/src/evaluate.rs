//! The interface between the front ends (the Jupyter kernel, `stratoscope run`) and the evaluator that executes
//! cells. The front ends know neither evcxr nor rustc; the evaluator knows no Jupyter message.
//!
//! One evaluator lives on one thread of its own (see [`crate::Session`]), since starting it takes
//! seconds. A cell is executed by one call of [`Evaluate::execute`] on that thread; everything
//! that must work *while* a cell runs goes through handles that are taken beforehand:
//! [`Evaluate::interrupt_handle`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_wire::{
    InspectAnswer, InspectQuestion, MimeBundle, RunAction, RunAnswer, RunRequest, RunState,
};

use crate::DiagnosticSettings;
use crate::debuggee::{CellLine, Debuggee};
use crate::past_cells::PastCells;

/// Which of the two plain streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The name that Jupyter and nbformat use.
    pub fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// Receives the outputs of a running cell. The evaluator's threads call it in the order in which the outputs are
/// to appear. No call waits for a front end, except [`OutputSink::input`].
///
/// An evaluator may keep the `Arc` after the cell has ended, for the output of threads that outlive it: it is then
/// attributed to the cell that started them.
pub trait OutputSink: Send + Sync {
    /// Text of a plain stream, as soon as it is available; not necessarily whole lines.
    fn stream(&self, stream: Stream, text: &str);

    /// A display. `update` replaces every display of that `display_id` instead of adding one.
    fn display(
        &self,
        data: MimeBundle,
        metadata: MimeBundle,
        display_id: Option<String>,
        update: bool,
    );

    /// The value of the cell's last expression; at most once a cell.
    fn result(&self, data: MimeBundle);

    /// Removes the cell's outputs; with `wait`, only when the next one arrives.
    fn clear(&self, wait: bool);

    /// Asks the user for a line and waits for it. `None`: the front end cannot ask, or an interrupt cancelled the
    /// question.
    fn input(&self, prompt: &str, password: bool) -> Option<String>;

    /// Text for the pager (`%explain`, `%doc`). Front ends without one show it as a display.
    fn page(&self, data: MimeBundle) {
        self.display(data, MimeBundle::new(), None, false);
    }

    /// Shows a table of the variables that [`OutputSink::update_variables`] updates (`%vars live`). Front ends without
    /// live tables display it once.
    fn show_variables_live(&self, table: MimeBundle) {
        self.display(table, MimeBundle::new(), None, false);
    }

    /// Whether a front end may show such a table.
    fn has_live_variables(&self) -> bool {
        false
    }

    /// Updates the live table.
    fn update_variables(&self, _table: &MimeBundle) {}

    /// A run of training begins, pauses, goes on or ends. Front ends with widgets show its buttons until it ends.
    fn run_controls(&self, _run: u64, _state: RunState) {}

    /// Opens or closes the socket at which runs can be read and steered (`%steer`); returns where it is, if it is open.
    ///
    /// # Errors
    /// The front end has none, or it cannot be opened; the reason.
    fn steer(&self, _request: SteerRequest) -> Result<Option<SteerSocket>, String> {
        Err("only a Jupyter kernel has a socket for runs".to_owned())
    }

    /// Puts a cell with this text below the executed one. `false`: the front end has no cells, or nobody sits before it.
    fn next_input(&self, _text: &str) -> bool {
        false
    }

    /// Asks a front end that is a session of its own, such as `jupyter console`, to end; others go on.
    fn ask_exit(&self) {}

    /// The cells that ran before (`%history`); `None`: the front end keeps none.
    fn history(&self) -> Option<&dyn PastCells> {
        None
    }

    /// Replaces the text of the executed cell (`%load`). Front ends without cells display the text.
    fn replace_input(&self, text: &str) {
        let data = MimeBundle::from_iter([("text/plain".to_owned(), text.into())]);
        self.display(data, MimeBundle::new(), None, false);
    }
}

/// What `%steer` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerRequest {
    /// Is the socket open?
    Show,
    /// Open it.
    Open,
    /// Close it.
    Close,
}

/// A socket at which runs can be read and steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerSocket {
    /// `http://127.0.0.1:45123/`
    pub url: String,
    /// The file with its key, which only this user can read.
    pub key_file: PathBuf,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CellOutcome {
    /// It completed.
    Ok,
    /// It did not compile, a `?` failed, or it panicked. Diagnostics, if any, have been displayed already; the front end
    /// adds exactly one `error` with these fields.
    Error(CellError),
    /// It was interrupted. `lost` says in a sentence what was lost (the variables, if the cell process had to be
    /// killed); `None`: everything is kept.
    Interrupted {
        /// What was lost, if anything.
        lost: Option<String>,
    },
}

/// The `error` output of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellError {
    /// The diagnostic's code, rustc's (`E0308`), or the kind of failure (`Panic`, `Error`).
    pub ename: String,
    /// One line that stands alone.
    pub evalue: String,
    /// ANSI text, a line each; the first begins `Cell In[N], line L`.
    pub traceback: Vec<String>,
}

impl CellError {
    /// Of an evaluation that was interrupted.
    pub fn interrupted() -> Self {
        Self {
            ename: "KeyboardInterrupt".to_owned(),
            evalue: "interrupted".to_owned(),
            traceback: Vec::new(),
        }
    }
}

/// A cell to execute.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The cell's text as typed.
    pub code: &'a str,
    /// Its number, `In[number]`; counted from 1. A silent cell has the number of the next one.
    pub number: u64,
    /// Executed for its side effects: the value of the last expression is not displayed.
    pub silent: bool,
}

/// The completions at the cursor. Positions are byte offsets in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Where the replaced text starts.
    pub start: usize,
    /// One past its end.
    pub end: usize,
    /// Best first.
    pub items: Vec<Completion>,
}

impl Completions {
    /// No completions of what is typed at byte `cursor`.
    pub fn nothing_at(cursor: usize) -> Self {
        Self {
            start: cursor,
            end: cursor,
            items: Vec::new(),
        }
    }
}

/// One of [`Completions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is inserted.
    pub text: String,
    /// `function`, `instance`, `keyword`, `param`, … (Jupyter's `_jupyter_types_experimental`).
    pub kind: String,
    /// Its signature or a few words; may be empty.
    pub detail: String,
}

/// How the last cell failed that did, for `%why`.
#[derive(Clone, Debug, PartialEq)]
pub struct LastError {
    /// The cell's number.
    pub number: u64,
    /// Its cards, as they were displayed; none if the traceback says it all.
    pub cards: Vec<MimeBundle>,
    /// Its error.
    pub error: CellError,
}

/// A variable that lives between cells, for `%vars` and variable inspectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type as rustc would print it.
    pub type_name: String,
    /// The cell that created it, if known.
    pub cell: Option<u64>,
    /// Its size in bytes, if known, without data that it shares with other variables.
    pub bytes: Option<u64>,
    /// The device of its tensors, if it has any.
    pub device: Option<String>,
}

/// Of evaluators that show no values.
const NO_INSPECTION: &str = "this evaluator shows no values";

/// Executes cells, one after the other, and keeps their variables.
pub trait Evaluate: Send {
    /// Executes one cell. All of its outputs have been sent to `outputs` when this returns. No text of a cell makes it
    /// panic.
    fn execute(&mut self, cell: Cell<'_>, outputs: &Arc<dyn OutputSink>) -> CellOutcome;

    /// Evaluates an expression for `user_expressions`, without effects on numbering or variables.
    ///
    /// # Errors
    /// The expression does not compile, or fails.
    fn evaluate_expression(&mut self, expression: &str) -> Result<MimeBundle, CellError>;

    /// Called once, when nothing was asked for some time after the start: does what the first cell would have to wait for.
    fn warm_up(&mut self) {}

    /// The completions at byte `cursor` of `code`.
    fn complete(&mut self, code: &str, cursor: usize) -> Completions;

    /// Describes the name at byte `cursor`; `None`: it is not known. `detail_level` 1 asks for more.
    fn inspect(&mut self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle>;

    /// The variables that live between cells.
    fn variables(&mut self) -> Vec<Variable>;

    /// Answers a question about values, for a debugger.
    fn inspect_values(&mut self, _question: InspectQuestion) -> InspectAnswer {
        InspectAnswer::missing(NO_INSPECTION)
    }

    /// How the last cell failed that did. `None`: none has failed, or it is not recorded.
    fn last_error(&self) -> Option<LastError> {
        None
    }

    /// Removes all variables, functions, types and imports, as if nothing had been executed.
    ///
    /// # Errors
    /// The new cell process does not start.
    fn reset(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    /// Reads or changes the settings of `%profile` and `%warnings`. By default changes are dropped.
    fn settings(&mut self, change: &mut dyn FnMut(&mut DiagnosticSettings)) {
        change(&mut DiagnosticSettings::default());
    }

    /// Taken once, before the first cell; works while [`Evaluate::execute`] is busy on its thread.
    fn interrupt_handle(&self) -> Arc<dyn Interrupt>;

    /// Ends the cell process and removes temporary folders. Called once, last.
    fn shut_down(&mut self);
}

/// Stops the running cell from another thread. Returns at once; [`Evaluate::execute`] then returns
/// [`CellOutcome::Interrupted`] as soon as it can. Nothing happens when no cell runs.
pub trait Interrupt: Send + Sync {
    /// Asks the cell to stop; the evaluator kills the cell process if the cell does not react.
    fn interrupt(&self);

    /// Kills the cell process at once: the kernel is shutting down.
    fn kill(&self);

    /// A button of a run of training was pressed. By default nothing happens.
    fn control(&self, _run: u64, _action: RunAction) {}

    /// A request to a run of the running cell. `None`: nobody answers in time. It may wait for an optimizer step.
    fn request(&self, _request: RunRequest) -> Option<RunAnswer> {
        None
    }

    /// As [`Evaluate::inspect_values`], while a cell runs: of what is not in its hands. It may wait for an optimizer step.
    fn inspect_values(&self, _question: InspectQuestion) -> InspectAnswer {
        InspectAnswer::missing(NO_INSPECTION)
    }

    /// What is known of the variables while the process of the cells is stopped and answers nothing.
    fn known_values(&self, _question: InspectQuestion) -> InspectAnswer {
        InspectAnswer::missing(NO_INSPECTION)
    }

    /// Whether cells that are compiled from now on can be debugged, by the process `adapter`, which an interrupt spares, and
    /// whether they get debug information, which takes time. By default nothing happens.
    fn set_debugging(&self, _adapter: Option<u32>, _has_information: bool) {}

    /// What the settings of the notebook make of a diagnostic that was found outside of the evaluator: `None` if it is not
    /// shown. By default it is shown.
    fn judged(&self, diagnostic: Diagnostic) -> Option<Diagnostic> {
        Some(diagnostic)
    }

    /// What a debugger attaches to. `None`: this evaluator has no process of its own.
    fn debuggee(&self) -> Option<Debuggee> {
        None
    }

    /// What the lines of the cell stand for that was compiled last, by their numbers, counted from 1.
    fn compiled_lines(&self) -> BTreeMap<u32, CellLine> {
        BTreeMap::new()
    }
}

/// Completion and inspection from the text alone: while a cell runs, and while no evaluator has started. Replies within
/// milliseconds.
pub trait Assist: Send + Sync {
    /// As [`Evaluate::complete`].
    fn complete(&self, code: &str, cursor: usize) -> Completions;

    /// As [`Evaluate::inspect`].
    fn inspect(&self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle>;
}

/// Checks the text of a cell while it is typed: without the evaluator and without a compiler, also while a cell runs or no
/// evaluator has started. Replies within milliseconds.
pub trait Lint: Send + Sync {
    /// What the checks find, with places in bytes of `code`. `strategy_elsewhere`: another cell of the notebook, which may
    /// not have run yet, may make a strategy.
    fn lint(&self, code: &str, strategy_elsewhere: bool) -> Vec<Diagnostic>;
}

/// What a session runs: it makes evaluators, and answers the cells that are a question to the kernel and not
/// Rust (`%help`), some of them also when no evaluator starts.
pub trait Backend: Send {
    /// Makes an evaluator; called on the evaluator's own thread, and again after a failure.
    ///
    /// # Errors
    /// No facade, no toolchain: shown under the first cell, and the kernel goes on.
    fn start(&self) -> Result<Box<dyn Evaluate>>;

    /// The magic that a cell is. `None`: it is Rust.
    fn magic(&self, code: &str) -> Option<Box<dyn MagicCell>>;

    /// The table of the variables that `%vars` shows.
    fn table(&self, variables: &[Variable]) -> MimeBundle;

    /// Taken once, before the first start: completes and inspects without an evaluator. `None`: such requests get empty
    /// replies.
    fn assistant(&self) -> Option<Arc<dyn Assist>> {
        None
    }

    /// Taken once, before the first start: checks cells while they are typed. `None`: nothing is checked.
    fn linter(&self) -> Option<Arc<dyn Lint>> {
        None
    }
}

/// A cell that is a question to the kernel.
pub trait MagicCell {
    /// Whether the answer needs an evaluator.
    fn needs_evaluator(&self) -> bool;

    /// Answers without an evaluator. `number` is the cell's; `cells` are the texts of the cells that ran, by
    /// number.
    fn answer(
        &self,
        number: u64,
        outputs: &dyn OutputSink,
        cells: &BTreeMap<u64, String>,
    ) -> CellOutcome;

    /// Answers with the evaluator.
    fn answer_with(
        &self,
        number: u64,
        outputs: &dyn OutputSink,
        evaluator: &mut dyn Evaluate,
    ) -> CellOutcome;
}

/// The `ename` of a cell that was interrupted.
pub const INTERRUPTED: &str = "Interrupted";

/// The error of an interrupted cell.
pub fn interrupted(number: u64, lost: Option<String>) -> CellError {
    let evalue = match &lost {
        Some(lost) => format!("the cell was interrupted; {lost}"),
        None => "the cell was interrupted; all variables are kept".to_owned(),
    };
    CellError {
        ename: INTERRUPTED.to_owned(),
        traceback: vec![
            format!("Cell In[{number}]: \u{1b}[1;31minterrupted\u{1b}[0m"),
            evalue.clone(),
        ],
        evalue,
    }
}
