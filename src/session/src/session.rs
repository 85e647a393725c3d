//! One evaluator on a thread of its own, and the handles that work while it is busy.
//!
//! An evaluator takes seconds to start, so a session is available at once and its evaluator later: cells wait in
//! a queue until it has started. The Jupyter kernel and `stratoscope run` use sessions; a session knows neither.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use stratoscope_diagnostics::rules::EvaluatorFailed;
use stratoscope_diagnostics::{Diagnostic, Rule};
use stratoscope_wire::{InspectAnswer, InspectQuestion, MimeBundle, RunAction};
use tokio::sync::oneshot;

use crate::evaluate::{
    Assist, Backend, Cell, CellError, CellOutcome, Completions, Evaluate, Lint, OutputSink,
};
use crate::failures::{not_started, panic_message, start_error};
use crate::shared::Shared;
use stratoscope_os::{console, process};

/// When nothing is asked for so long after the start, the evaluator is warmed up. A front end that executes all cells is
/// faster than this.
const IDLE: Duration = Duration::from_millis(200);

/// How long a question that the text alone does not answer waits for an evaluator that is starting or warming up.
/// JupyterLab drops an answer that takes longer than a second; others wait.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// An evaluator, addressed from other threads.
pub struct Session {
    commands: Mutex<mpsc::Sender<Command>>,
    linter: Option<Arc<dyn Lint>>,
    assistant: Option<Arc<dyn Assist>>,
    shared: Arc<Shared>,
}

/// One cell to execute, owned.
#[derive(Clone, Debug)]
pub struct OwnedCell {
    /// As [`Cell::code`].
    pub code: String,
    /// As [`Cell::number`].
    pub number: u64,
    /// As [`Cell::silent`].
    pub silent: bool,
}

impl Session {
    /// Starts the evaluator's thread and returns at once.
    pub fn start(backend: Box<dyn Backend>) -> Self {
        let (commands, inbox) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let (linter, assistant) = (backend.linter(), backend.assistant());
        let worker = Worker {
            backend,
            evaluator: None,
            texts: BTreeMap::new(),
            shared: shared.clone(),
        };
        let spawned = std::thread::Builder::new()
            .name("evaluator".to_owned())
            // rustc's own habit: parsing deeply nested cells recurses.
            .stack_size(64 << 20)
            .spawn(move || worker.run(inbox));
        if let Err(error) = spawned {
            // The closure has been dropped with the inbox, so every command gets a closed channel as its answer.
            console::warn(&format!(
                "the evaluator's thread could not be started: {error}"
            ));
        }
        Self {
            commands: Mutex::new(commands),
            linter,
            assistant,
            shared,
        }
    }

    /// Checks cells while they are typed, from any thread and at any time.
    pub fn linter(&self) -> Option<Arc<dyn Lint>> {
        self.linter.clone()
    }

    /// Executes a cell after all earlier ones. The receiver fails only when the session has been shut down.
    pub fn execute(
        &self,
        cell: OwnedCell,
        outputs: Arc<dyn OutputSink>,
    ) -> oneshot::Receiver<CellOutcome> {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        self.ask(|answer| Command::Execute {
            cell,
            outputs,
            answer,
        })
    }

    /// Evaluates an expression, as [`Evaluate::evaluate_expression`].
    pub fn evaluate_expression(
        &self,
        expression: String,
    ) -> oneshot::Receiver<Result<MimeBundle, CellError>> {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        self.ask(|answer| Command::Expression { expression, answer })
    }

    /// As [`Evaluate::complete`]; while a cell runs, and at once while the evaluator is not ready, as [`Assist::complete`].
    /// What only the evaluator knows waits a while for one that is starting.
    pub async fn complete(&self, code: String, cursor: usize) -> Completions {
        let of_text = || match &self.assistant {
            Some(assistant) => assistant.complete(&code, cursor),
            None => Completions::nothing_at(cursor),
        };
        if !self.answers() {
            let found = of_text();
            if !found.items.is_empty() {
                return found;
            }
        }
        let command = |answer| Command::Complete {
            code: code.clone(),
            cursor,
            answer,
        };
        self.question(command).await.unwrap_or_else(of_text)
    }

    /// As [`Evaluate::inspect`]; while a cell runs, and at once while the evaluator is not ready, as [`Assist::inspect`].
    pub async fn inspect(
        &self,
        code: String,
        cursor: usize,
        detail_level: u8,
    ) -> Option<MimeBundle> {
        let of_text = || (self.assistant.as_ref()?).inspect(&code, cursor, detail_level);
        if !self.answers()
            && let Some(found) = of_text()
        {
            return Some(found);
        }
        let command = |answer| Command::Inspect {
            code: code.clone(),
            cursor,
            detail_level,
            answer,
        };
        self.question(command).await.unwrap_or_else(of_text)
    }

    /// Whether a cell or an expression is queued or running.
    pub fn is_executing(&self) -> bool {
        self.shared.waiting.load(Ordering::SeqCst) > 0
    }

    fn answers(&self) -> bool {
        self.shared.answers.load(Ordering::SeqCst)
    }

    /// What the evaluator answers. `None`: it executes a cell, or is not ready in time.
    async fn question<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        if self.is_executing() {
            return None;
        }
        let answer = self.ask(command);
        if self.answers() {
            return answer.await.ok();
        }
        tokio::time::timeout(START_TIMEOUT, answer).await.ok()?.ok()
    }

    /// A button of a run of training was pressed. Nothing happens when there is no such run.
    pub fn control(&self, run: u64, action: RunAction) {
        if let Some(evaluator) = &*self.shared.interrupt.lock() {
            evaluator.control(run, action);
        }
    }

    /// Stops the running cell, or the next one when the evaluator is still starting. Nothing
    /// happens when no cell runs or waits.
    pub fn interrupt(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let running = self.shared.running.load(Ordering::SeqCst);
        match &*self.shared.interrupt.lock() {
            Some(handle) if running => handle.interrupt(),
            _ => self.shared.interrupted_early.store(true, Ordering::SeqCst),
        }
    }

    /// Kills the cell that runs, if one does, and ends the evaluator. The receiver is answered when the processes have ended and
    /// the folders are removed.
    pub fn shut_down(&self) -> oneshot::Receiver<()> {
        self.shared.stopping.store(true, Ordering::SeqCst);
        match &*self.shared.interrupt.lock() {
            Some(handle) if self.is_busy() => handle.kill(),
            Some(_) => {}
            None => self.give_up_starting(),
        }
        self.ask(|answer| Command::ShutDown { answer })
    }

    /// Kills the processes that a starting evaluator waits for (mostly cargo), so that the start fails. One call may not
    /// be enough, since the evaluator may be between two processes.
    pub fn give_up_starting(&self) {
        if !self.shared.has_started.load(Ordering::SeqCst) {
            process::kill_descendants();
        }
    }

    fn is_busy(&self) -> bool {
        self.shared.waiting.load(Ordering::SeqCst) > 0
            || !self.shared.has_started.load(Ordering::SeqCst)
    }

    fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> oneshot::Receiver<T> {
        let (answer, receiver) = oneshot::channel();
        // When the thread has ended, the command is dropped with its sender, and the receiver fails.
        let _ = self.commands.lock().send(command(answer));
        receiver
    }
}

enum Command {
    Execute {
        cell: OwnedCell,
        outputs: Arc<dyn OutputSink>,
        answer: oneshot::Sender<CellOutcome>,
    },
    Expression {
        expression: String,
        answer: oneshot::Sender<Result<MimeBundle, CellError>>,
    },
    Complete {
        code: String,
        cursor: usize,
        answer: oneshot::Sender<Completions>,
    },
    Inspect {
        code: String,
        cursor: usize,
        detail_level: u8,
        answer: oneshot::Sender<Option<MimeBundle>>,
    },
    InspectValues {
        question: InspectQuestion,
        answer: oneshot::Sender<InspectAnswer>,
    },
    ShutDown {
        answer: oneshot::Sender<()>,
    },
}

/// Lives on the evaluator's thread.
struct Worker {
    backend: Box<dyn Backend>,
    evaluator: Option<Box<dyn Evaluate>>,
    /// The cells that ran, by number, for `%save`.
    texts: BTreeMap<u64, String>,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(mut self, inbox: mpsc::Receiver<Command>) {
        // This start belongs to no cell; its error is reported when a cell needs the evaluator. A start that a
        // shutdown has killed is not repeated.
        let _ = self.evaluator();
        self.shared.has_started.store(true, Ordering::SeqCst);
        let first = match inbox.recv_timeout(IDLE) {
            Err(RecvTimeoutError::Timeout) => {
                self.warm_up();
                self.shared.answers.store(true, Ordering::SeqCst);
                inbox.recv().ok()
            }
            received => received.ok(),
        };
        self.shared.answers.store(true, Ordering::SeqCst);
        let others = std::iter::from_fn(|| inbox.recv().ok());
        for command in first.into_iter().chain(others) {
            // A dropped receiver means that nobody waits for the answer.
            match command {
                Command::Execute {
                    cell,
                    outputs,
                    answer,
                } => {
                    let outcome = self.execute(&cell, &outputs);
                    self.update_variables(outputs.as_ref());
                    self.shared.end_of_evaluation();
                    let _ = answer.send(outcome);
                }
                Command::Expression { expression, answer } => {
                    let result = self.expression(&expression);
                    self.shared.end_of_evaluation();
                    let _ = answer.send(result);
                }
                Command::Complete {
                    code,
                    cursor,
                    answer,
                } => {
                    let result = self.with(|it| it.complete(&code, cursor));
                    let _ = answer.send(result.unwrap_or(Completions::nothing_at(cursor)));
                }
                Command::Inspect {
                    code,
                    cursor,
                    detail_level,
                    answer,
                } => {
                    let result = self.with(|it| it.inspect(&code, cursor, detail_level));
                    let _ = answer.send(result.unwrap_or(None));
                }
                Command::InspectValues { question, answer } => {
                    let result = self.with(|it| it.inspect_values(question));
                    let failed = |error: CellError| InspectAnswer::missing(error.evalue);
                    let _ = answer.send(result.unwrap_or_else(failed));
                }
                Command::ShutDown { answer } => {
                    if let Some(mut evaluator) = self.evaluator.take() {
                        let _ = catch_unwind(AssertUnwindSafe(|| evaluator.shut_down()));
                    }
                    let _ = answer.send(());
                    return;
                }
            }
        }
    }

    fn execute(&mut self, cell: &OwnedCell, outputs: &Arc<dyn OutputSink>) -> CellOutcome {
        let magic = self.backend.magic(&cell.code);
        if let Some(magic) = magic.as_ref().filter(|magic| !magic.needs_evaluator()) {
            return magic.answer(cell.number, outputs.as_ref(), &self.texts);
        }
        if self.shared.stopping.load(Ordering::SeqCst) {
            return CellOutcome::Interrupted { lost: None };
        }
        if let Err(diagnostic) = self.evaluator() {
            return CellOutcome::Error(start_error(&diagnostic, cell, outputs.as_ref()));
        }
        if self.shared.is_called_off() {
            return CellOutcome::Interrupted { lost: None };
        }
        if let Some(magic) = magic {
            return self
                .with(|it| magic.answer_with(cell.number, outputs.as_ref(), it))
                .unwrap_or_else(CellOutcome::Error);
        }
        self.shared.running.store(true, Ordering::SeqCst);
        let cell = Cell {
            code: &cell.code,
            number: cell.number,
            silent: cell.silent,
        };
        let outcome = self.with(|it| it.execute(cell.clone(), outputs));
        if outcome == Ok(CellOutcome::Ok) && !cell.silent {
            self.texts.insert(cell.number, cell.code.to_owned());
        }
        outcome.unwrap_or_else(CellOutcome::Error)
    }

    /// Evaluates an expression, which an interrupt ends as it ends a cell.
    fn expression(&mut self, expression: &str) -> Result<MimeBundle, CellError> {
        if self.shared.stopping.load(Ordering::SeqCst) {
            return Err(CellError::interrupted());
        }
        self.evaluator().map_err(|it| not_started(&it))?;
        if self.shared.is_called_off() {
            return Err(CellError::interrupted());
        }
        self.shared.running.store(true, Ordering::SeqCst);
        self.with(|it| it.evaluate_expression(expression))?
    }

    /// Updates the live table of variables, if a front end shows one.
    fn update_variables(&mut self, outputs: &dyn OutputSink) {
        if outputs.has_live_variables() && self.evaluator.is_some() {
            let variables = self.with(|it| it.variables()).unwrap_or_default();
            outputs.update_variables(&self.backend.table(&variables));
        }
    }

    fn warm_up(&mut self) {
        // One that could not be started is tried again by a cell, which shows why.
        if self.evaluator.is_some() {
            let _ = self.with(|it| it.warm_up());
        }
    }

    /// The evaluator, started if there is none.
    fn evaluator(&mut self) -> Result<&mut Box<dyn Evaluate>, Box<Diagnostic>> {
        if self.evaluator.is_none() {
            let started = catch_unwind(AssertUnwindSafe(|| self.backend.start()));
            let evaluator = started.unwrap_or_else(|panic| {
                let reason = panic_message(&*panic).to_owned();
                Err(EvaluatorFailed { reason }.error())
            })?;
            *self.shared.interrupt.lock() = Some(evaluator.interrupt_handle());
            self.evaluator = Some(evaluator);
        }
        Ok(self.evaluator.as_mut().expect("it was put there above"))
    }

    /// Calls the evaluator. A panic in it is a bug of this project: the evaluator may be in any state, so it is dropped,
    /// and the next cell starts another one.
    fn with<T>(&mut self, call: impl FnOnce(&mut dyn Evaluate) -> T) -> Result<T, CellError> {
        let evaluator = self.evaluator().map_err(|it| not_started(&it))?;
        let result = catch_unwind(AssertUnwindSafe(|| call(evaluator.as_mut())));
        result.map_err(|panic| {
            *self.shared.interrupt.lock() = None;
            let evaluator = self.evaluator.take();
            let _ = catch_unwind(AssertUnwindSafe(move || drop(evaluator)));
            let evalue = format!(
                "the kernel's evaluator failed, all variables are lost: {}",
                panic_message(&*panic)
            );
            CellError {
                ename: "InternalError".to_owned(),
                traceback: vec![
                    evalue.clone(),
                    "this is a bug of stratoscope; the next cell starts a new evaluator".to_owned(),
                ],
                evalue,
            }
        })
    }
}

mod values;

#[cfg(test)]
mod tests;
