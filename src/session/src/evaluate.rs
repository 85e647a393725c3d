//! The seam between the front ends (the Jupyter kernel, `stratoscope run`) and whatever executes
//! cells. The front ends know neither evcxr nor rustc; the evaluator knows no Jupyter message.
//!
//! One evaluator lives on one thread of its own (see [`crate::Session`]), since starting it takes
//! seconds. A cell is executed by one call of [`Evaluate::execute`] on that thread; everything
//! that must work *while* a cell runs goes through handles that are taken beforehand:
//! [`Evaluate::interrupt_handle`].

use std::collections::BTreeMap;
use std::sync::Arc;

use stratoscope_diagnostics::Result;
use stratoscope_wire::MimeBundle;

use crate::Settings;

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

/// Where a running cell's outputs go. Called from the evaluator's threads, in the order in which
/// the outputs are to appear. No call waits for a front end, save [`Outputs::input`].
///
/// An evaluator may keep the `Arc` beyond the cell for output of threads that outlive it: it is
/// then attributed to the cell that started them.
pub trait Outputs: Send + Sync {
    /// Text of a plain stream, as soon as it is there; not necessarily whole lines.
    fn stream(&self, stream: Stream, text: &str);

    /// Something drawn. `update` replaces every display of that `display_id` instead of adding one.
    fn display(
        &self,
        data: MimeBundle,
        metadata: MimeBundle,
        display_id: Option<String>,
        update: bool,
    );

    /// The value of the cell's last expression; at most once a cell.
    fn result(&self, data: MimeBundle);

    /// Removes the cell's outputs; `wait`: only when the next one arrives.
    fn clear(&self, wait: bool);

    /// Asks the person at the notebook for a line and waits for it. `None`: nobody can be asked,
    /// or the question was cancelled by an interrupt.
    fn input(&self, prompt: &str, password: bool) -> Option<String>;

    /// Text for the pager (`%explain`, `%doc`). Front ends without one show it as a display.
    fn page(&self, data: MimeBundle) {
        self.display(data, MimeBundle::new(), None, false);
    }

    /// Shows a table of the variables that [`Outputs::update_variables`] changes from then on
    /// (`%vars live`). Front ends without such tables show it as it is.
    fn show_variables_live(&self, table: MimeBundle) {
        self.display(table, MimeBundle::new(), None, false);
    }

    /// Whether anybody may be looking at such a table.
    fn has_live_variables(&self) -> bool {
        false
    }

    /// The variables are these now.
    fn update_variables(&self, _table: &MimeBundle) {}

    /// Puts a text into the cell in place of what was executed (`%load`). Front ends without cells
    /// show it.
    fn replace_input(&self, text: &str) {
        let data = MimeBundle::from_iter([("text/plain".to_owned(), text.into())]);
        self.display(data, MimeBundle::new(), None, false);
    }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CellOutcome {
    /// It ran to its end.
    Ok,
    /// It did not compile, a `?` failed, or it panicked. Diagnostics have been displayed already,
    /// where there were any; the front end adds exactly one `error` with these fields.
    Error(CellError),
    /// It was interrupted. `lost` says in a sentence what the interrupt cost (variables of a cell
    /// process that had to be ended); `None`: everything is kept.
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

/// One cell as it is handed to the evaluator.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The cell's text as its author typed it.
    pub code: &'a str,
    /// Its number, `In[number]`; counted from 1. A silent cell has the number of the next one.
    pub number: u64,
    /// Executed for its effects alone: nothing is displayed for the last expression.
    pub silent: bool,
}

/// What could be written at the cursor. Positions are byte offsets in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Where the replaced text starts.
    pub start: usize,
    /// One past its end.
    pub end: usize,
    /// Best first.
    pub items: Vec<Completion>,
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

/// A variable that lives between cells, for `%vars` and variable inspectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type as rustc would print it.
    pub type_name: String,
    /// The cell that made it, where known.
    pub cell: Option<u64>,
    /// What it holds, in bytes, where known; without what other variables share with it.
    pub bytes: Option<u64>,
    /// The device of its numbers, where it has one.
    pub device: Option<String>,
}

/// Executes cells, one after the other, and keeps their variables.
pub trait Evaluate: Send {
    /// Executes one cell. Everything it shows has been given to `outputs` when this returns.
    /// Never panics on anything a cell contains.
    fn execute(&mut self, cell: Cell<'_>, outputs: &Arc<dyn Outputs>) -> CellOutcome;

    /// Evaluates an expression without side effects on numbering or variables, for
    /// `user_expressions`: its representation, or why it has none.
    fn evaluate_expression(&mut self, expression: &str) -> Result<MimeBundle, CellError>;

    /// What could be written at byte `cursor` of `code`.
    fn complete(&mut self, code: &str, cursor: usize) -> Completions;

    /// What is known of the name at byte `cursor`; `None`: nothing. `detail_level` 1 asks for more.
    fn inspect(&mut self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle>;

    /// The variables that live between cells.
    fn variables(&mut self) -> Vec<Variable>;

    /// Forgets all variables, functions, types and imports, as if nothing had been executed.
    ///
    /// # Errors
    /// The new cell process does not start.
    fn reset(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    /// Reads or changes what `%profile` and `%warnings` set. An evaluator without settings forgets.
    fn settings(&mut self, change: &mut dyn FnMut(&mut Settings)) {
        change(&mut Settings::default());
    }

    /// Taken once, before the first cell; works while [`Evaluate::execute`] is busy on its thread.
    fn interrupt_handle(&self) -> Arc<dyn Interrupt>;

    /// Taken once, before the first cell: completes and inspects while a cell runs, from whatever
    /// it knows without the evaluator. `None`: such requests are answered with nothing.
    fn assistant(&self) -> Option<Arc<dyn Assist>> {
        None
    }

    /// Ends the cell process and removes temporary folders. Called once, last.
    fn shut_down(&mut self);
}

/// Stops the running cell from another thread. Returns at once; [`Evaluate::execute`] then comes
/// back with [`CellOutcome::Interrupted`] as soon as it can. Nothing happens when no cell runs.
pub trait Interrupt: Send + Sync {
    /// Asks first; the evaluator ends the cell process if the cell does not listen.
    fn interrupt(&self);

    /// Ends the cell process now, without asking: the kernel is being shut down.
    fn kill(&self);
}

/// Completion and inspection while a cell runs. Answers within milliseconds.
pub trait Assist: Send + Sync {
    /// As [`Evaluate::complete`].
    fn complete(&self, code: &str, cursor: usize) -> Completions;

    /// As [`Evaluate::inspect`].
    fn inspect(&self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle>;
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
        outputs: &dyn Outputs,
        cells: &BTreeMap<u64, String>,
    ) -> CellOutcome;

    /// Answers with the evaluator.
    fn answer_with(
        &self,
        number: u64,
        outputs: &dyn Outputs,
        evaluator: &mut dyn Evaluate,
    ) -> CellOutcome;
}

/// The name of a cell's error when the interrupt button has ended it.
pub const INTERRUPTED: &str = "Interrupted";

/// The error that tells of an interrupt.
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
