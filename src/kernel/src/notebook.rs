//! `stratoscope run NOTEBOOK`: executes a notebook in this process, without Jupyter, and writes
//! its outputs into it.
//!
//! <https://nbformat.readthedocs.io/en/latest/format_description.html>

mod expected;
mod file;
mod record;
mod stop;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::cli::RunArguments;
use expected::{Expected, Verdict};
use file::Notebook;
use record::Recorder;
use stop::Stop;
use stratoscope_os::console::{say, warn};
use stratoscope_session::{Backend, CellOutcome};
use stratoscope_session::{OwnedCell, Session};

/// What shells make of a process that was terminated.
const TERMINATED: u8 = 128 + libc::SIGTERM as u8;

/// Why a run ended before its last cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// This cell did not do what was expected of it.
    Failed(usize),
    /// The process was asked to end while this cell ran.
    Terminated(usize),
}

/// Executes the code cells in order. A cell that fails ends the run, unless its tags say that it is meant
/// to, or errors are allowed; what was executed until then is written all the same, also when the process
/// is asked to end.
pub fn run(arguments: &RunArguments, backend: Box<dyn Backend>) -> anyhow::Result<ExitCode> {
    let mut notebook = Notebook::read(&arguments.notebook)?;
    let output = arguments.output.as_ref().unwrap_or(&arguments.notebook);
    // Wherever the process is when it writes.
    let output = &std::path::absolute(output).unwrap_or_else(|_| output.clone());
    let session = Arc::new(Session::start(backend));
    let stop = Stop::on_signals(Arc::clone(&session))?;

    let began = Instant::now();
    let ended = execute(&mut notebook, &session, &stop, arguments.allow_errors)?;
    notebook.set_language_info(stratoscope_jupyter::language_info());
    let written = notebook.write(output);
    let gone = session.shut_down();
    wait(Duration::from_secs(5), gone);
    written?;
    Ok(report(ended, output, began))
}

/// Says how it ended; the exit code.
fn report(ended: Option<Ended>, output: &Path, began: Instant) -> ExitCode {
    let output = output.display();
    match ended {
        Some(Ended::Failed(cell)) => {
            warn(&format!(
                "cell {cell} failed; the outputs so far are in {output}"
            ));
            ExitCode::FAILURE
        }
        Some(Ended::Terminated(cell)) => {
            warn(&format!(
                "ended from outside in cell {cell}; the outputs so far are in {output}"
            ));
            ExitCode::from(TERMINATED)
        }
        None => {
            let seconds = began.elapsed().as_secs_f64();
            say(&format!("executed in {seconds:.1} s, written to {output}"));
            ExitCode::SUCCESS
        }
    }
}

/// Executes the cells; says why it did not come to the last one.
fn execute(
    notebook: &mut Notebook,
    session: &Session,
    stop: &Stop,
    allow_errors: bool,
) -> anyhow::Result<Option<Ended>> {
    let recorder = Recorder::new(notebook.cells());
    let code_cells = notebook.code_cells();
    let total = code_cells.len();
    let mut number = 0;
    for (position, index) in code_cells.into_iter().enumerate() {
        let position = position + 1;
        let source = notebook.source(index);
        notebook.clear(index);
        recorder.clear(index);
        if source.trim().is_empty() {
            continue;
        }
        number += 1;
        let first_line = source
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        say(&format!(
            "cell {position}/{total}  {}",
            shortened(first_line)
        ));

        let began = Instant::now();
        let cell = OwnedCell {
            code: source,
            number,
            silent: false,
        };
        let outputs = recorder.cell(index, number);
        let outcome = stop.wait_for(session.execute(cell, outputs));
        let error = match outcome.context("the evaluator has ended")? {
            CellOutcome::Ok => None,
            CellOutcome::Error(error) => Some(error),
            CellOutcome::Interrupted { lost } => {
                Some(stratoscope_session::interrupted(number, lost))
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        if let Some(error) = &error {
            recorder.error(index, error);
        }
        recorder.write_into(notebook.cells_mut());
        notebook.set_execution_count(index, number);
        if stop.is_requested() {
            return Ok(Some(Ended::Terminated(position)));
        }
        let (said, is_failure) = match Expected::of(notebook, index).judge(error.as_ref()) {
            Verdict::Fine(said) => (said, false),
            Verdict::Wrong(said) => (said, true),
        };
        say(&format!("         {said}, {seconds:.2} s"));
        if is_failure && !allow_errors {
            return Ok(Some(Ended::Failed(position)));
        }
    }
    Ok(None)
}

/// Waits for an answer from the evaluator's thread, but not for ever.
fn wait(limit: Duration, mut answer: tokio::sync::oneshot::Receiver<()>) {
    let began = Instant::now();
    while began.elapsed() < limit {
        match answer.try_recv() {
            Err(tokio::sync::oneshot::error::TryRecvError::Empty) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => return,
        }
    }
    warn("the evaluator did not end in time");
}

/// A line that fits a terminal.
fn shortened(line: &str) -> String {
    const LONGEST: usize = 70;
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
