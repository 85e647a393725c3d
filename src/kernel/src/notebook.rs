//! `stratoscope run NOTEBOOK`: executes a notebook in this process, without Jupyter, and writes
//! its outputs into it.
//!
//! <https://nbformat.readthedocs.io/en/latest/format_description.html>

mod file;
mod record;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::cli::{RunArguments, say, warn};
use crate::evaluator::{CellError, CellOutcome, StartEvaluator};
use crate::session::{OwnedCell, Session};
use file::Notebook;
use record::Recorder;

/// Executes the code cells in order. A cell that fails ends the run, unless it is tagged
/// `raises-exception` or errors are allowed; what was executed until then is written all the same.
pub fn run(arguments: &RunArguments, start: StartEvaluator) -> anyhow::Result<ExitCode> {
    let mut notebook = Notebook::read(&arguments.notebook)?;
    let output = arguments.output.as_ref().unwrap_or(&arguments.notebook);
    let session = Arc::new(Session::start(start));
    interrupt_on_signal(session.clone())?;

    let began = Instant::now();
    let failed = execute(&mut notebook, &session, arguments.allow_errors)?;
    notebook.set_language_info(crate::jupyter::language_info());
    let written = notebook.write(output);
    let ended = session.shut_down();
    wait(Duration::from_secs(5), ended);
    written?;

    match failed {
        Some(cell) => {
            warn(&format!(
                "cell {cell} failed; the outputs so far are in {}",
                output.display()
            ));
            Ok(ExitCode::FAILURE)
        }
        None => {
            let seconds = began.elapsed().as_secs_f64();
            say(&format!(
                "executed in {seconds:.1} s, written to {}",
                output.display()
            ));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Executes the cells; returns the number of the one that ended the run, if one did.
fn execute(
    notebook: &mut Notebook,
    session: &Session,
    allow_errors: bool,
) -> anyhow::Result<Option<usize>> {
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
        let outcome = session.execute(cell, outputs).blocking_recv();
        let outcome = outcome.context("the evaluator has ended")?;
        let error = match outcome {
            CellOutcome::Ok => None,
            CellOutcome::Error(error) => Some(error),
            CellOutcome::Interrupted { lost } => Some(crate::evaluator::interrupted(number, lost)),
        };
        let seconds = began.elapsed().as_secs_f64();
        if let Some(error) = &error {
            recorder.error(index, error);
        }
        recorder.write_into(notebook.cells_mut());
        notebook.set_execution_count(index, number);
        let expected = notebook.has_tag(index, "raises-exception");
        match error {
            None => say(&format!("         ok, {seconds:.2} s")),
            Some(CellError { ename, evalue, .. }) => {
                let note = if expected { " (expected)" } else { "" };
                say(&format!("         {ename}: {evalue}{note}, {seconds:.2} s"));
                if !expected && !allow_errors {
                    return Ok(Some(position));
                }
            }
        }
    }
    Ok(None)
}

/// The first `SIGINT` interrupts the running cell, as the notebook's button does.
fn interrupt_on_signal(session: Arc<Session>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listen = move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                session.interrupt();
            }
        })
    };
    std::thread::Builder::new()
        .name("interrupts".to_owned())
        .spawn(listen)?;
    Ok(())
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
