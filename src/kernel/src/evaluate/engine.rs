//! Executes cells: check, rewrite, evcxr, outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evcxr::{CommandContext, Error, EvalContext, EvalContextOutputs, EvalOutputs};
use stratoscope_diagnostics::check::{self, CellContext, check_cell};
use stratoscope_diagnostics::policy::Level;
use stratoscope_diagnostics::rules::CellsCannotRun;
use stratoscope_diagnostics::{Diagnostic, Result, Rule, Severity};
use stratoscope_wire::{MimeBundle, ToCells, ToKernel};

use super::crates::Watch;
use super::definitions::{self, Definitions};
use super::gone::{Gone, How};
use super::home::{self, Home};
use super::interrupt::Handle;
use super::link::{self, Link};
use super::persist;
use super::question;
use super::relay::{Current, LastWords, Relay};
use super::rustc;
use super::show;
use super::standby::Standby;
use super::streams::{Heard, Streams};
use super::unable;
use super::warnings;
use crate::assist::Assistant;
use crate::cells;
use crate::evaluator::{
    Assist, Cell, CellError, CellOutcome, Completion, Completions, Evaluate, Interrupt, Outputs,
    Stream, Variable,
};
use crate::facade;
use crate::magic;
use crate::rewrite::{Rewritten, rewrite};
use crate::settings::Settings;

/// How long the last messages of a cell are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What every notebook has in scope; the `?` makes evcxr allow it in later cells, which otherwise
/// costs the first such cell a second compile.
const FIRST_CELL: &str = "use stratoscope::prelude::*;\nuse stratoscope::cell::print;\n\
                          ::stratoscope::cell::ready()?;";

/// The evaluator. Fields are dropped in this order: evcxr ends the cell process first.
pub struct Engine {
    context: CommandContext,
    process: Arc<Mutex<Child>>,
    relay: Arc<Relay>,
    link: Arc<Link>,
    streams: Arc<Streams>,
    /// Variable → the cell that made it.
    made_by: BTreeMap<String, u64>,
    /// Those that there were.
    gone: Gone,
    /// The types that cells have defined.
    defined: Definitions,
    /// Answers meanwhile.
    assistant: Assistant,
    /// Compiles the next cell.
    standby: Option<Standby>,
    home: Home,
}

impl Engine {
    /// Starts evcxr, the cell process and the threads around them.
    ///
    /// # Errors
    /// There is no facade that cells could be compiled against, or evcxr does not start.
    pub fn start() -> Result<Self> {
        let facade = facade::find()?;
        // Nobody waits for it.
        let _ = std::thread::Builder::new()
            .name("sweep".to_owned())
            .spawn(home::sweep);
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
        let mut command = Command::new(&executable);
        command
            .arg("cells")
            .env(stratoscope_wire::SOCKET_VARIABLE, home.socket())
            .env(cells::STREAMS_VARIABLE, home.streams())
            .env(cells::LIBRARY_VARIABLE, &facade.library);
        home::hide(&mut command);
        let (context, outputs) = EvalContext::with_subprocess_command(command)
            .map_err(|error| cannot_start("evcxr", &std::io::Error::other(error.to_string())))?;
        forward(outputs, &relay);
        let mut context = CommandContext::with_eval_context(context);
        context.execute(FIRST_CELL).map_err(|error| {
            cannot_start("the first cell", &std::io::Error::other(error.to_string()))
        })?;
        let process = context.process_handle();
        Ok(Self {
            context,
            process,
            relay,
            link,
            streams,
            made_by: BTreeMap::new(),
            gone: Gone::default(),
            defined: Definitions::default(),
            assistant: Assistant::default(),
            standby,
            home,
        })
    }

    fn variable_names(&self) -> BTreeSet<String> {
        let variables = self.context.variables_and_types();
        variables.map(|(name, _)| name.to_owned()).collect()
    }

    /// Name, type and cell of every variable, in order of their names.
    fn list_variables(&self) -> Vec<Variable> {
        let variables = self.context.variables_and_types();
        let mut variables: Vec<Variable> = variables
            .map(|(name, type_name)| Variable {
                name: name.to_owned(),
                type_name: type_name.to_owned(),
                cell: self.made_by.get(name).copied(),
                ..Variable::default()
            })
            .collect();
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        variables
    }

    /// The variable that holds the strategy: the one that the cell makes, or the notebook's only one.
    fn strategy_in(&self, code: &str) -> Option<String> {
        let mut names = check::strategies_made_in(code);
        if names.is_empty() {
            let variables = self.context.variables_and_types();
            let strategies = variables.filter(|(_, kind)| kind.ends_with("Strategy"));
            names = strategies.map(|(name, _)| name.to_owned()).collect();
        }
        (names.len() == 1).then(|| names.remove(0))
    }

    /// Drops the variables whose types the cell defines anew.
    fn drop_redefined(&mut self, new: &Definitions, rewritten: &Rewritten, current: &Current) {
        let changed = self.defined.changed_by(new);
        let variables = self.context.variables_and_types();
        let mut of_old_types: Vec<String> = variables
            .filter(|(_, kind)| definitions::names_one(kind, &changed))
            .map(|(name, _)| name.to_owned())
            .collect();
        if of_old_types.is_empty() {
            return;
        }
        of_old_types.sort();
        let drops: String = of_old_types
            .iter()
            .map(|it| format!("drop({it});"))
            .collect();
        let _ = self.context.execute(&drops);
        let mut lost = Vec::new();
        for name in of_old_types {
            let made_in = self.made_by.remove(&name);
            self.gone
                .note(&name, How::TypeRedefined, current.number, made_in);
            if !rewritten.bindings.contains(&name) {
                lost.push(name);
            }
        }
        if !lost.is_empty() {
            let text = format!(
                "this cell defines types anew; lost: {}\n",
                show::names(&lost)
            );
            current.outputs.stream(Stream::Stderr, &text);
        }
    }

    /// Hands a rewritten cell to evcxr and waits until everything it said has been shown.
    fn evaluate(&mut self, rewritten: &Rewritten) -> std::result::Result<EvalOutputs, Error> {
        let result = self.context.execute(&rewritten.text);
        let ran = matches!(result, Ok(_) | Err(Error::TypeRedefinedVariablesLost(_)));
        if ran && rewritten.runs {
            self.link.sync(PATIENCE);
        }
        self.streams.drain();
        result
    }

    /// How the cell ended, told by evcxr's result and by what the cell process said.
    fn outcome(
        &mut self,
        result: std::result::Result<EvalOutputs, Error>,
        rewritten: &Rewritten,
        before: &BTreeSet<String>,
        current: &Current,
    ) -> CellOutcome {
        let ending = self.relay.end();
        let (interrupted, heard) = self.relay.interruption();
        let after = self.variable_names();
        let lost: Vec<String> = before.difference(&after).cloned().collect();
        let how = match &result {
            Err(Error::SubprocessTerminated(_)) if interrupted => How::Interrupted,
            Err(Error::SubprocessTerminated(_)) => How::ProcessEnded,
            Err(Error::TypeRedefinedVariablesLost(_)) => How::TypeRedefined,
            Ok(_) if ending.is_none() => How::Moved,
            _ => How::MovedAndFailed,
        };
        for name in &lost {
            let made_in = self.made_by.get(name).copied();
            self.gone.note(name, how, current.number, made_in);
        }
        for name in &rewritten.bindings {
            if after.contains(name) {
                self.made_by.insert(name.clone(), current.number);
            } else if !lost.contains(name) {
                let how = match how {
                    How::Moved => How::Moved,
                    _ => How::NotMade,
                };
                self.gone
                    .note(name, how, current.number, Some(current.number));
            }
        }
        self.made_by.retain(|name, _| after.contains(name));
        self.gone.retain(|name| !after.contains(name));
        match result {
            Ok(outputs) => {
                if let Some(ending) = ending {
                    let fate = fate(&lost, rewritten, &after);
                    let mut error = show::ended(ending, &fate, current);
                    // What heard the button and then failed has failed because of it.
                    if interrupted && heard && error.ename == show::FAILED {
                        error.ename = crate::evaluator::INTERRUPTED.to_owned();
                    }
                    return CellOutcome::Error(error);
                }
                show_outputs(&outputs, current);
                if interrupted && heard {
                    return CellOutcome::Interrupted { lost: None };
                }
                CellOutcome::Ok
            }
            Err(Error::SubprocessTerminated(reason)) => {
                let lost = match lost.is_empty() {
                    true => {
                        "no variables were lost; functions, types and imports are kept".to_owned()
                    }
                    false => format!(
                        "lost: {}; functions, types and imports are kept",
                        show::names(&lost)
                    ),
                };
                if interrupted {
                    let lost = format!("the cell did not listen, so its process was ended; {lost}");
                    return CellOutcome::Interrupted { lost: Some(lost) };
                }
                let line = self.home.last_line();
                let words = self.relay.last_words();
                CellOutcome::Error(process_ended(&reason, words, &lost, line, current))
            }
            Err(_) if interrupted => CellOutcome::Interrupted { lost: None },
            Err(Error::CompilationErrors(errors)) => {
                let refused = persist::refused(&errors, rewritten, &current.code);
                if let Some(found) = refused {
                    let found = show::diagnostic(found, None, current);
                    return CellOutcome::Error(show::error_of(
                        &[found],
                        &current.code,
                        current.number,
                    ));
                }
                let found = rustc::errors(&errors, rewritten);
                let explain = |found| self.gone.explain(found);
                let mut found: Vec<Diagnostic> = found.into_iter().map(explain).collect();
                if found.is_empty() {
                    found.push(Diagnostic::new(
                        "CompilationError",
                        Severity::Error,
                        "the cell does not compile",
                    ));
                }
                // What is about an argument of the DSL is told in its words, on a card.
                let in_our_words = |found: Diagnostic| {
                    let ours = check::wrong_type(&current.code, &found);
                    ours.map_or(found, |ours| show::diagnostic(ours, None, current))
                };
                let found: Vec<Diagnostic> = found.into_iter().map(in_our_words).collect();
                CellOutcome::Error(show::error_of(&found, &current.code, current.number))
            }
            Err(Error::Message(message)) => {
                let found = persist::not_persistent(&message, rewritten, &current.code);
                CellOutcome::Error(match found {
                    Some(found) => {
                        let found = show::diagnostic(found, None, current);
                        show::error_of(&[found], &current.code, current.number)
                    }
                    None => {
                        let (name, text) = unable::told(&message);
                        show::plain_error(name, &text, None, None, current.number, &current.code)
                    }
                })
            }
            Err(error @ Error::TypeRedefinedVariablesLost(_)) => {
                let message = error.to_string();
                CellOutcome::Error(show::plain_error(
                    "Error",
                    &message,
                    None,
                    None,
                    current.number,
                    &current.code,
                ))
            }
        }
    }
}

impl Evaluate for Engine {
    fn execute(&mut self, cell: Cell<'_>, outputs: &Arc<dyn Outputs>) -> CellOutcome {
        let current = Current {
            code: cell.code.into(),
            number: cell.number,
            outputs: Arc::clone(outputs),
            profile: self.relay.settings().profile,
            strategy: self.strategy_in(cell.code),
        };
        self.relay.begin(current.clone());
        let mut errors = Vec::new();
        let mut notes = Vec::new();
        let context = CellContext {
            profile: current.profile,
            ..CellContext::default()
        };
        for found in check_cell(&magic::without_lines(cell.code), &context) {
            // A note is about a cell that works; whether this one does is not known yet.
            let is_denied = self.relay.settings().policy.level(&found.code) == Some(Level::Denied);
            if found.severity == Severity::Note && !is_denied {
                notes.push(found);
                continue;
            }
            let Some(found) = self.relay.settings().judged(found) else {
                continue;
            };
            let found = show::diagnostic(found, None, &current);
            if found.severity == Severity::Error {
                errors.push(found);
            }
        }
        if !errors.is_empty() {
            self.relay.end();
            return CellOutcome::Error(show::error_of(&errors, cell.code, cell.number));
        }
        let rewritten = rewrite(cell.code, cell.number, cell.silent);
        let defined = Definitions::of(&magic::without_lines(cell.code));
        self.drop_redefined(&defined, &rewritten, &current);
        let before = self.variable_names();
        let watch = Watch::start(
            self.home.path(),
            cell.number,
            &rewritten.text,
            Arc::clone(outputs),
        );
        let mut result = self.evaluate(&rewritten);
        let mut rewritten = rewritten;
        if let Err(Error::Message(message)) = &result
            && persist::is_unknown(message)
            && let Some(asked) = question::asked(&rewritten)
            && let Err(Error::CompilationErrors(errors)) = self.evaluate(&asked)
            && let Some(errors) = question::answered(errors)
        {
            result = Err(Error::CompilationErrors(errors));
            rewritten = asked;
        }
        // What a cell defines is kept whenever it was compiled, however it ended.
        let compiled = !matches!(result, Err(Error::CompilationErrors(_) | Error::Message(_)));
        drop(watch);
        let outcome = self.outcome(result, &rewritten, &before, &current);
        self.assistant.set_variables(self.list_variables());
        if compiled {
            self.defined.extend(defined);
        }
        if outcome == CellOutcome::Ok {
            for warning in warnings::take(self.home.path(), &rewritten) {
                let judged = self.relay.settings().judged(warning);
                if let Some(warning) = judged {
                    show::diagnostic(warning, None, &current);
                }
            }
            for note in notes {
                let judged = self.relay.settings().judged(note);
                if let Some(note) = judged {
                    show::diagnostic(note, None, &current);
                }
            }
        }
        outcome
    }

    fn evaluate_expression(
        &mut self,
        expression: &str,
    ) -> std::result::Result<MimeBundle, CellError> {
        let capture = Arc::new(Capture::default());
        let outputs: Arc<dyn Outputs> = capture.clone();
        let previous = self.relay.current();
        let cell = Cell {
            code: expression,
            number: previous.as_ref().map_or(0, |current| current.number),
            silent: false,
        };
        let outcome = self.execute(cell, &outputs);
        if let Some(previous) = previous {
            self.relay.begin(previous);
            self.relay.end();
        }
        match outcome {
            CellOutcome::Ok => Ok(capture.take()),
            CellOutcome::Error(error) => Err(error),
            CellOutcome::Interrupted { .. } => Err(CellError {
                ename: "KeyboardInterrupt".to_owned(),
                evalue: "interrupted".to_owned(),
                traceback: Vec::new(),
            }),
        }
    }

    fn complete(&mut self, code: &str, cursor: usize) -> Completions {
        if let Some(found) = self.assistant.complete_call(code, cursor) {
            return found;
        }
        let text = without_magic(code);
        let found = self.context.completions(&text, cursor.min(text.len()));
        match found {
            Ok(found) => {
                let mut seen = BTreeSet::new();
                let items = found.completions.into_iter().map(|item| Completion {
                    text: without_operands(item.code),
                    kind: item.kind.to_owned(),
                    detail: item.label,
                });
                // A method of several traits comes once for each.
                let is_new = |item: &Completion| seen.insert(item.text.clone());
                Completions {
                    start: found.start_offset,
                    end: found.end_offset,
                    items: items
                        .filter(|item| !item.text.starts_with("__"))
                        .filter(is_new)
                        .collect(),
                }
            }
            Err(_) => Completions {
                start: cursor,
                end: cursor,
                items: Vec::new(),
            },
        }
    }

    fn inspect(&mut self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle> {
        const NOTHING: &str = "No documentation found";
        let ours = self
            .assistant
            .explain_call(code, cursor, detail_level)
            .or_else(|| self.assistant.explain_variable(code, cursor));
        if ours.is_some() {
            return ours;
        }
        let text = without_magic(code);
        let end = end_of_name(&text, cursor.min(text.len()));
        let (plain, html) = self.context.hover_at(&text, end).ok()?;
        if plain.trim() == NOTHING || plain.trim().is_empty() {
            return None;
        }
        let mut bundle = MimeBundle::new();
        bundle.insert("text/plain".to_owned(), plain.into());
        bundle.insert("text/html".to_owned(), html.into());
        Some(bundle)
    }

    fn variables(&mut self) -> Vec<Variable> {
        self.relay.send(&ToCells::Describe);
        self.link.sync(PATIENCE);
        let described = self.relay.take_described();
        let mut variables = self.list_variables();
        for variable in &mut variables {
            if let Some(told) = described.iter().find(|told| told.name == variable.name) {
                variable.bytes = Some(told.bytes);
                variable.device.clone_from(&told.device);
            }
        }
        variables
    }

    fn reset(&mut self) -> std::result::Result<(), CellError> {
        let cleared = self.context.execute(":clear");
        let started = cleared.and_then(|_| self.context.execute(FIRST_CELL));
        self.made_by.clear();
        self.gone.clear();
        self.defined.clear();
        self.assistant.set_variables(Vec::new());
        started.map(drop).map_err(|error| CellError {
            ename: "Error".to_owned(),
            evalue: format!("nothing can be executed any more: {error}"),
            traceback: vec![error.to_string()],
        })
    }

    fn settings(&mut self, change: &mut dyn FnMut(&mut Settings)) {
        let denied = {
            let mut settings = self.relay.settings();
            change(&mut settings);
            settings.policy.codes(Level::Denied)
        };
        self.link.tell_always(ToCells::Deny { codes: denied });
        // The next cell must not begin before the process knows.
        self.link.sync(PATIENCE);
    }

    fn interrupt_handle(&self) -> Arc<dyn Interrupt> {
        Arc::new(Handle {
            relay: Arc::clone(&self.relay),
            link: Arc::clone(&self.link),
            process: Arc::clone(&self.process),
            standby: self.standby.as_ref().map(Standby::id),
        })
    }

    fn assistant(&self) -> Option<Arc<dyn Assist>> {
        Some(Arc::new(self.assistant.clone()))
    }

    fn shut_down(&mut self) {
        // The process may be in the middle of a cell; dropping evcxr would wait for it.
        if let Ok(mut process) = self.process.lock() {
            let _ = process.kill();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut_down();
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
                    cells::STARTS => stderr_relay.set_running(true),
                    cells::ENDED => stderr_relay.set_running(false),
                    _ => stderr_relay.hear(Heard::Text(Stream::Stderr, &format!("{line}\n"))),
                }
            }
        });
}

/// What a command of evcxr's (`:dep`, `:vars`) has to say.
fn show_outputs(outputs: &EvalOutputs, current: &Current) {
    if outputs.is_empty() {
        return;
    }
    let data = outputs
        .content_by_mime_type
        .iter()
        .map(|(mime, text)| (mime.clone(), text.clone().into()))
        .collect();
    current.outputs.result(data);
}

/// Which variables a cell that ended early cost.
fn fate(lost: &[String], rewritten: &Rewritten, after: &BTreeSet<String>) -> String {
    let mut unfinished: Vec<String> = Vec::new();
    for name in &rewritten.bindings {
        // A name that is bound twice is one variable.
        let told = unfinished.contains(name) || lost.contains(name);
        if !(told || after.contains(name)) {
            unfinished.push(name.clone());
        }
    }
    let mut parts = Vec::new();
    if !lost.is_empty() {
        parts.push(format!(
            "lost, because the cell had moved them: {}",
            show::names(lost)
        ));
    }
    if !unfinished.is_empty() {
        parts.push(format!(
            "not kept, because the cell did not end: {}",
            show::names(&unfinished)
        ));
    }
    if !after.is_empty() {
        let kept: Vec<String> = after.iter().cloned().collect();
        parts.push(format!("kept: {}", show::names(&kept)));
    }
    parts.join("; ")
}

/// The error of a cell whose process has ended.
fn process_ended(
    reason: &str,
    words: Option<LastWords>,
    lost: &str,
    line: Option<usize>,
    current: &Current,
) -> CellError {
    let status = reason
        .rsplit_once("terminated with status: ")
        .map_or(reason, |(_, status)| status)
        .trim();
    let (ename, what) = match (status.strip_prefix("exit status: "), words) {
        (Some(code), _) => (
            "ProcessEnded",
            format!("the cell ended its process with exit status {code}"),
        ),
        (None, Some(LastWords::StackOverflow)) => (
            "StackOverflow",
            "the cell used up its stack of 256 MiB, which ends its process".to_owned(),
        ),
        (None, Some(LastWords::OutOfMemory(bytes))) => (
            "OutOfMemory",
            format!("the cell asked for {bytes} bytes, which there are not; that ends its process"),
        ),
        (None, Some(LastWords::Panic)) => (
            "ProcessEnded",
            format!(
                "the cell panicked where no panic can be caught, as in a destructor while another \
                 panic is under way, or at the end of the cell; that ends its process ({status})"
            ),
        ),
        (None, None) if status.contains("SIGKILL") => (
            "ProcessEnded",
            format!(
                "the cell's process was killed from outside ({status}), as the system does when \
                 memory runs out"
            ),
        ),
        (None, None) if status.contains("SIGSEGV") => (
            "ProcessEnded",
            format!(
                "the cell's process was ended by a {status}: a thread that the cell started used up \
                 its stack, or `unsafe` code touched memory that is not its own"
            ),
        ),
        (None, None) => (
            "ProcessEnded",
            format!("the cell's process was ended by a {status}"),
        ),
    };
    let message = format!("{what}; {lost}");
    show::plain_error(ename, &message, line, None, current.number, &current.code)
}

/// The cell with `%%scope …` blanked, byte for byte, so that positions stay.
fn without_magic(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        if line.trim_start().starts_with(['%', '!']) {
            let content = line.trim_end_matches('\n');
            text.extend(std::iter::repeat_n(' ', content.len()));
            text.push_str(&line[content.len()..]);
        } else {
            text.push_str(line);
        }
    }
    text
}

/// A function's name without its operands, which would be inserted with it: `read(path)` → `read`.
fn without_operands(mut text: String) -> String {
    if let Some(end) = text.find('(') {
        text.truncate(end);
    }
    text
}

/// The end of the name that byte `cursor` is in or behind.
fn end_of_name(text: &str, cursor: usize) -> usize {
    let cursor = (cursor..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len());
    let rest = &text[cursor..];
    let length = rest
        .find(|character: char| !character.is_alphanumeric() && character != '_')
        .unwrap_or(rest.len());
    cursor + length
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
    CellsCannotRun {
        what: what.to_owned(),
        reason: error.to_string(),
    }
    .error()
}

/// Takes the value of an expression instead of showing it.
#[derive(Default)]
struct Capture(Mutex<MimeBundle>);

impl Capture {
    fn take(&self) -> MimeBundle {
        self.0
            .lock()
            .map(|mut bundle| std::mem::take(&mut *bundle))
            .unwrap_or_default()
    }
}

impl Outputs for Capture {
    fn stream(&self, _: Stream, _: &str) {}
    fn display(&self, _: MimeBundle, _: MimeBundle, _: Option<String>, _: bool) {}
    fn result(&self, data: MimeBundle) {
        if let Ok(mut bundle) = self.0.lock() {
            *bundle = data;
        }
    }
    fn clear(&self, _: bool) {}
    fn input(&self, _: &str, _: bool) -> Option<String> {
        None
    }
}
