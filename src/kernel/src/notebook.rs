//! `stratoscope run NOTEBOOK`: executes a notebook in this process, without Jupyter, and writes the executed copy.
//! The notebook itself changes only with `--inplace`.
//!
//! <https://nbformat.readthedocs.io/en/latest/format_description.html>

mod expected;
mod failure;
mod file;
mod output_path;
mod parameters;
mod record;
mod stop;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use expected::{Expected, Verdict};
pub use file::Notebook;
use parameters::Parameter;
use record::Recorder;
use stop::Stop;
use stratoscope_os::console::{say, warn};
use stratoscope_session::{Backend, CellOutcome, interrupted};
use stratoscope_session::{OwnedCell, Session};

/// Arguments of `stratoscope run`.
#[derive(Debug, Default, clap::Args)]
pub struct RunArguments {
    /// The notebook to execute (.ipynb, nbformat 4)
    pub notebook: PathBuf,
    /// Write the executed notebook to FILE. Without this option: to target/notebooks/ of the Cargo workspace that
    /// contains the notebook, otherwise to NAME.executed.ipynb beside it
    #[arg(long, value_name = "FILE", conflicts_with = "inplace")]
    pub output: Option<PathBuf>,
    /// Replace the outputs and execution counts in the notebook itself. Nothing else in the file changes
    #[arg(long)]
    pub inplace: bool,
    /// Continue after a cell that fails, and exit with code 0. A cell that is expected to fail is tagged
    /// `raises-exception`, and `expect:CODE` if it must fail with this code
    #[arg(long)]
    pub allow_errors: bool,
    /// Bind a variable anew, behind the cell that is tagged `parameters`; may be repeated. A number, `true`, `false` and what stands in
    /// brackets or quotes is Rust, anything else a string
    #[arg(short, long = "parameter", value_name = "NAME=VALUE")]
    pub parameters: Vec<Parameter>,
}

/// The exit code of a process that SIGTERM ended, as shells report it.
const TERMINATED: u8 = 128 + libc::SIGTERM as u8;

/// Why a run ended before its last cell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ended {
    /// This cell failed, or did not fail as expected.
    Failed {
        /// Among the code cells, counted from 1.
        cell: usize,
        /// Its first line, shortened.
        first_line: String,
    },
    /// The process was asked to end while this cell ran.
    Terminated(usize),
}

/// Executes the code cells in order. A cell that fails ends the run, unless its tags expect the error or errors
/// are allowed. The outputs so far are written even then, and also when the process is asked to end.
///
/// # Errors
/// The notebook cannot be read, or the executed one cannot be written.
pub fn run(arguments: &RunArguments, backend: Box<dyn Backend>) -> anyhow::Result<ExitCode> {
    let mut notebook = Notebook::read(&arguments.notebook)?;
    parameters::inject(&mut notebook, &arguments.parameters)?;
    let output = &output_path::of(arguments)?;
    let session = Arc::new(Session::start(backend));
    let stop = Stop::on_signals(Arc::clone(&session))?;

    let began = Instant::now();
    let ended = execute(&mut notebook, &session, &stop, arguments.allow_errors)?;
    notebook.set_language_info(stratoscope_jupyter::language_info());
    let written = notebook.write(output);
    let ended_session = session.shut_down();
    wait(Duration::from_secs(15), ended_session);
    written?;
    Ok(report(ended, output, began))
}

/// Reports how the run ended; returns the exit code.
fn report(ended: Option<Ended>, output: &Path, began: Instant) -> ExitCode {
    let output = output.display();
    match ended {
        Some(Ended::Failed { cell, first_line }) => {
            warn(&format!(
                "cell {cell} (`{first_line}`) failed; the outputs so far are in {output}"
            ));
            ExitCode::FAILURE
        }
        Some(Ended::Terminated(cell)) => {
            warn(&format!(
                "terminated in cell {cell}; the outputs so far are in {output}"
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

/// Executes the cells. Returns why the run ended before the last cell.
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
        let first_line = shortened(first_line);
        say(&format!("cell {position}/{total}  {first_line}"));

        let began = Instant::now();
        let cell = OwnedCell {
            code: source.clone(),
            number,
            silent: false,
        };
        let outputs = recorder.cell(index, number);
        let outcome = stop.wait_for(session.execute(cell, outputs));
        let error = match outcome.context("the evaluator ended")? {
            CellOutcome::Ok => None,
            CellOutcome::Error(error) => Some(error),
            CellOutcome::Interrupted { lost } => Some(interrupted(number, lost)),
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
        if let Some(error) = error.filter(|_| is_failure) {
            failure::show(&recorder.displays(index), &error, &source);
        }
        if is_failure && !allow_errors {
            return Ok(Some(Ended::Failed {
                cell: position,
                first_line,
            }));
        }
    }
    Ok(None)
}

/// Waits for an answer from the evaluator's thread, at most `limit`.
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

/// A line shortened to fit a terminal.
fn shortened(line: &str) -> String {
    const MAX_CHARACTERS: usize = 70;
    let line = line.trim();
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
