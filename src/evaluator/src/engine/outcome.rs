//! How a cell ended: told by evcxr's result, by what the cell process has said, and by what is gone.

use std::collections::BTreeSet;

use evcxr::{Error, EvalOutputs};
use stratoscope_diagnostics::{Diagnostic, Severity, check};

use super::Engine;
use crate::lost_variables::{Gone, How};
use crate::relay::{Current, LastWords};
use crate::{compile_failure, persistence, rustc_errors, show};
use stratoscope_cell_text::rewrite::Rewritten;
use stratoscope_session::{CellError, CellOutcome, INTERRUPTED};

impl Engine {
    /// How the cell ended, told by evcxr's result and by what the cell process said.
    pub(super) fn outcome(
        &mut self,
        result: std::result::Result<EvalOutputs, Error>,
        rewritten: &Rewritten,
        before: &BTreeSet<String>,
        current: &Current,
    ) -> CellOutcome {
        let ending = self.relay.end();
        let (interrupted, heard) = self.relay.interruption();
        let Settled { after, lost, gone } =
            self.settle(&result, ending.is_some(), rewritten, before, current);
        match result {
            Ok(outputs) => {
                if let Some(ending) = ending {
                    let fate = fate(&lost, rewritten, &after, ending.line());
                    let mut error = show::ended(ending, &fate, current);
                    // What heard the button and then failed has failed because of it.
                    if interrupted && heard && error.ename == show::FAILED {
                        error.ename = INTERRUPTED.to_owned();
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
                let known = self.known_to_checks(current.profile);
                let refused =
                    persistence::refused(&errors, rewritten, &current.code, &known.variables);
                if let Some(found) = refused {
                    let found = show::diagnostic(found, None, current);
                    return CellOutcome::Error(show::error_of(
                        &[found],
                        &current.code,
                        current.number,
                    ));
                }
                let found = rustc_errors::errors(&errors, rewritten, &current.code);
                let explain = |found| self.declared.explain(gone.explain(found), &current.code);
                let mut found: Vec<Diagnostic> = found.into_iter().map(explain).collect();
                if found.is_empty() {
                    found.push(Diagnostic::new(
                        "CompilationError",
                        Severity::Error,
                        "the cell does not compile",
                    ));
                }
                // What is about the DSL is told in its words, on a card.
                let mut told: Vec<Diagnostic> = Vec::new();
                for found in found {
                    let ours = check::in_our_words(&current.code, &found, &known);
                    // Two names in one call are one mistake.
                    let is_same = |ours: &Diagnostic| {
                        told.iter()
                            .any(|other| other.code == ours.code && other.fixes == ours.fixes)
                    };
                    match ours {
                        Some(ours) if is_same(&ours) => {}
                        Some(ours) => told.push(show::diagnostic(ours, None, current)),
                        None => told.push(found),
                    }
                }
                CellOutcome::Error(show::error_of(&told, &current.code, current.number))
            }
            Err(Error::Message(message)) => {
                let known = self.known_to_checks(current.profile);
                let found = persistence::not_persistent(
                    &message,
                    rewritten,
                    &current.code,
                    &known.variables,
                );
                CellOutcome::Error(match found {
                    Some(found) => {
                        let found = show::diagnostic(found, None, current);
                        show::error_of(&[found], &current.code, current.number)
                    }
                    None => {
                        let (name, text) = compile_failure::told(&message);
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

/// What has become of the variables.
struct Settled {
    /// Those that there are now.
    after: BTreeSet<String>,
    /// Those that there are no more.
    lost: Vec<String>,
    /// What was gone when the cell began, and what it has lost.
    gone: Gone,
}

impl Engine {
    /// Adopts what a cell has kept that was ended early, and notes what has become of all variables.
    fn settle(
        &mut self,
        result: &std::result::Result<EvalOutputs, Error>,
        has_failed: bool,
        rewritten: &Rewritten,
        before: &BTreeSet<String>,
        current: &Current,
    ) -> Settled {
        let (interrupted, _) = self.relay.interruption();
        let kept = self.relay.take_kept();
        let has_run = result.is_ok() && kept.is_none();
        let kept = kept.unwrap_or_default();
        match result {
            Err(Error::SubprocessTerminated(_)) => self.masked.clear(),
            _ => self.adopt(&kept),
        }
        self.unmask(if has_run { &rewritten.bindings } else { &[] });
        let after = self.variable_names();
        let lost: Vec<String> = before.difference(&after).cloned().collect();
        let how = match result {
            Err(Error::SubprocessTerminated(_)) if interrupted => How::Interrupted,
            Err(Error::SubprocessTerminated(_)) => How::ProcessEnded,
            Err(Error::TypeRedefinedVariablesLost(_)) => How::TypeRedefined,
            Ok(_) if !has_failed => How::Moved,
            _ => How::MovedAndFailed,
        };
        for name in &lost {
            let made_in = self.made_by.get(name).copied();
            self.gone.note(name, how, current.number, made_in);
        }
        let gone = self.gone.clone();
        for name in &rewritten.bindings {
            let is_made = has_run || kept.iter().any(|it| it.name == *name && it.is_new);
            if after.contains(name) {
                if is_made {
                    self.made_by.insert(name.clone(), current.number);
                    self.declared.note(name, current.number, &current.code);
                }
            } else if !lost.contains(name) {
                let made_in = Some(current.number);
                match how {
                    How::Moved if has_run => {
                        self.gone.note(name, how, current.number, made_in);
                    }
                    How::Moved => self.gone.note(name, How::Returned, current.number, made_in),
                    _ => self.gone.note_if_new(name, How::NotMade, current.number),
                }
            }
        }
        self.made_by.retain(|name, _| after.contains(name));
        self.declared.retain(|name| after.contains(name));
        self.gone.retain(|name| !after.contains(name));
        Settled { after, lost, gone }
    }
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

/// Which variables a cell cost that was ended on `line`.
fn fate(
    lost: &[String],
    rewritten: &Rewritten,
    after: &BTreeSet<String>,
    line: Option<usize>,
) -> String {
    // A name that is bound twice is one variable.
    let bound: BTreeSet<&String> = rewritten.bindings.iter().collect();
    let unfinished = bound
        .into_iter()
        .filter(|name| !lost.contains(name) && !after.contains(*name));
    let was_reached = |name: &&String| {
        let of_its_let = rewritten.binding_lines.get(*name).copied();
        of_its_let < line
    };
    let (given_up, not_bound): (Vec<&String>, Vec<&String>) = unfinished.partition(was_reached);
    let names = |names: Vec<&String>| {
        let names: Vec<String> = names.into_iter().cloned().collect();
        show::names(&names)
    };
    let mut parts = Vec::new();
    if !lost.is_empty() {
        parts.push(format!(
            "lost, because the cell had moved them: {}",
            show::names(lost)
        ));
    }
    if !given_up.is_empty() {
        parts.push(format!(
            "not kept, because the cell moves, lends or binds them again: {}",
            names(given_up)
        ));
    }
    if !not_bound.is_empty() {
        parts.push(format!(
            "not kept, because their line did not end: {}",
            names(not_bound)
        ));
    }
    if !after.is_empty() {
        parts.push(format!("kept: {}", names(after.iter().collect())));
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
