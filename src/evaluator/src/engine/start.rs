//! Starts the evaluator: evcxr, the process that runs the cells, and the threads that hear it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use evcxr::{CommandContext, EvalContext, EvalContextOutputs};
use stratoscope_diagnostics::check::DefinedNames;
use stratoscope_diagnostics::rules::ExecutionUnavailable;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_wire::{ToCells, ToKernel};

use super::Engine;
use super::inspect::Inspection;
use crate::assist::Assistant;
use crate::cell_process;
use crate::debugging::Debugging;
use crate::declarations::Declared;
use crate::inspector::Inspector;
use crate::link::{self, Link};
use crate::lint::Linter;
use crate::lost_variables::LostVariables;
use crate::relay::Relay;
use crate::replaced_variables::ReplacedVariables;
use crate::streams::{Heard, Streams};
use stratoscope_cell_text::definitions::Definitions;
use stratoscope_cell_text::macro_rules::Macros;
use stratoscope_compile::facade::{self, Facade};
use stratoscope_compile::home::{self, Home};
use stratoscope_compile::standby_process::Standby;
use stratoscope_os::{environment, private_folder};
use stratoscope_session::Stream;

/// What every notebook has in scope; the `?` makes evcxr allow it in later cells, which otherwise
/// costs the first such cell a second compile.
pub(super) const FIRST_CELL: &str = "use stratoscope::prelude::*;\nuse stratoscope::cell::{dbg, print};\n\
                          ::stratoscope::cell::ready()?;";

/// With the first type that it names, rust-analyzer reads the implementations of all traits in the view, which takes as
/// long as starting does; completing this is the cheapest way to ask for one. It is not executed.
pub(super) const WARM_UP: &str = "let sum = 1 + 1; sum.";

impl Engine {
    /// Starts evcxr, the cell process and the threads around them. What `linter` and `assistant` know is of this evaluator.
    ///
    /// # Errors
    /// There is no facade that cells could be compiled against, or evcxr does not start.
    pub fn start(linter: Linter, assistant: Assistant) -> Result<Self> {
        let facade = facade::find()?;
        // It runs in the background.
        let _ = std::thread::Builder::new()
            .name("sweep".to_owned())
            .spawn(private_folder::sweep);
        let home = Home::make().map_err(|error| cannot_start("its private folder", &error))?;
        let executable = executable().map_err(|error| cannot_start("its executable", &error))?;
        home.configure(&facade, &executable)
            .map_err(|error| cannot_start("its settings", &error))?;
        // Cells compile without it, too.
        let standby = Standby::start(&executable, home.path()).ok();
        let relay = Arc::new(Relay::default());
        let streams = {
            let relay = Arc::clone(&relay);
            let sink = move |heard: Heard<'_>| relay.hear(heard);
            Streams::start(&home.streams(), Box::new(sink))
        };
        let streams = streams.map_err(|error| cannot_start("the pipes", &error))?;
        let streams = Arc::new(streams);
        let link = {
            let (relay, streams) = (Arc::clone(&relay), Arc::clone(&streams));
            let handler = move |message: ToKernel| {
                let is_shown = message.is_shown();
                if is_shown {
                    // The pipes are read by another thread: what was printed first is shown first.
                    streams.catch_up();
                }
                relay.receive(message);
                if is_shown {
                    relay.send(&ToCells::Shown);
                }
            };
            Link::listen(&home.socket(), Box::new(handler))
        };
        let link = link.map_err(|error| cannot_start("the wire", &link::to_io(error)))?;
        let link = Arc::new(link);
        relay.connect(&link);
        let command = cell_command(&executable, &home, &facade);
        let started = {
            let _elsewhere = Elsewhere::go(home.path());
            EvalContext::with_subprocess_command(command)
        };
        let (context, outputs) = started
            .map_err(|error| cannot_start("evcxr", &std::io::Error::other(error.to_string())))?;
        forward(outputs, &relay);
        let mut context = CommandContext::with_eval_context(context);
        context.execute(FIRST_CELL).map_err(|error| {
            cannot_start("the first cell", &std::io::Error::other(error.to_string()))
        })?;
        let process = context.process_handle();
        let inspection = Inspection::new(Inspector::new(Arc::clone(&link), assistant.clone()));
        Ok(Self {
            context,
            process,
            relay,
            link,
            streams,
            made_by: BTreeMap::new(),
            declared: Declared::default(),
            lost_variables: LostVariables::default(),
            replaced_variables: ReplacedVariables::default(),
            defined: Definitions::default(),
            defined_names: DefinedNames::default(),
            macros: Macros::default(),
            masked: BTreeSet::new(),
            forgotten: Vec::new(),
            generation: 0,
            assistant,
            linter,
            inspection,
            debugging: Arc::new(Debugging::new(home.path(), &facade.sysroot)),
            is_unreachable: false,
            last_error: None,
            standby,
            home,
            note: home::note(),
            _facade: facade,
        })
    }
}

/// The command that starts the process of the cells.
fn cell_command(executable: &Path, home: &Home, facade: &Facade) -> Command {
    let mut command = Command::new(executable);
    command
        .arg("cells")
        .env(stratoscope_wire::SOCKET_VARIABLE, home.socket())
        .env(cell_process::STREAMS_VARIABLE, home.streams())
        .env(cell_process::LIBRARY_VARIABLE, &facade.library);
    home::hide(&mut command);
    home.lend_runtime_folder(&mut command);
    if let Some(folder) = environment::notebook_folder() {
        command.current_dir(folder);
    }
    command
}

/// As long as it lives, this process is in another folder than the notebook's. evcxr prefers the settings
/// that it finds in the current folder, which name programs to run, to ours.
struct Elsewhere;

impl Elsewhere {
    fn go(folder: &Path) -> Self {
        // It is ours, and has just been made.
        let _ = std::env::set_current_dir(folder);
        Self
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(folder) = environment::notebook_folder() {
            // A folder that was removed meanwhile is of no use to anybody.
            let _ = std::env::set_current_dir(folder);
        }
    }
}

/// Hands what evcxr reads of the process's original streams on: our own two words about phases, and
/// what goes wrong before the process has set up its pipes.
fn forward(outputs: EvalContextOutputs, relay: &Arc<Relay>) {
    let EvalContextOutputs { stdout, stderr } = outputs;
    let stdout_relay = Arc::clone(relay);
    let _ = std::thread::Builder::new()
        .name("evcxr-stdout".to_owned())
        .spawn(move || {
            for line in stdout {
                stdout_relay.hear(Heard::Text(Stream::Stdout, &format!("{line}\n")));
            }
        });
    let stderr_relay = Arc::clone(relay);
    let _ = std::thread::Builder::new()
        .name("evcxr-stderr".to_owned())
        .spawn(move || {
            for line in stderr {
                match line.as_str() {
                    cell_process::STARTS => stderr_relay.set_running(true),
                    cell_process::ENDED => stderr_relay.set_running(false),
                    _ => stderr_relay.hear(Heard::Text(Stream::Stderr, &format!("{line}\n"))),
                }
            }
        });
}

/// This executable, in whose other roles cells are compiled and run.
fn executable() -> std::io::Result<PathBuf> {
    let this = std::env::current_exe()?;
    // A test is an executable of its own, beside the folder of the real one.
    let real = this
        .parent()
        .and_then(|folder| Some(folder.parent()?.join("stratoscope")));
    match real {
        Some(real) if cfg!(test) => Ok(real),
        _ => Ok(this),
    }
}

fn cannot_start(what: &str, error: &std::io::Error) -> Box<Diagnostic> {
    ExecutionUnavailable {
        what: what.to_owned(),
        reason: error.to_string(),
    }
    .error()
}
