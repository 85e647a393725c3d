//! How a cell ended: told by evcxr's result, by what the cell process has said, and by what is gone.

use std::collections::BTreeSet;

use evcxr::{Error, EvalOutputs};
use stratoscope_diagnostics::{Diagnostic, Severity, check};

use super::Engine;
use crate::evaluate::gone::How;
use crate::evaluate::relay::{Current, LastWords};
use crate::evaluate::{persist, rustc, show, unable};
use crate::evaluator::{CellError, CellOutcome, INTERRUPTED};
use crate::rewrite::Rewritten;

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
                self.declared.note(name, current.number, &current.code);
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
        self.declared.retain(|name| after.contains(name));
        self.gone.retain(|name| !after.contains(name));
        match result {
            Ok(outputs) => {
                if let Some(ending) = ending {
                    let fate = fate(&lost, rewritten, &after);
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
                let refused = persist::refused(&errors, rewritten, &current.code, &known.variables);
                if let Some(found) = refused {
                    let found = show::diagnostic(found, None, current);
                    return CellOutcome::Error(show::error_of(
                        &[found],
                        &current.code,
                        current.number,
                    ));
                }
                let found = rustc::errors(&errors, rewritten, &current.code);
                let explain = |found| {
                    self.declared
                        .explain(self.gone.explain(found), &current.code)
                };
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
                let found =
                    persist::not_persistent(&message, rewritten, &current.code, &known.variables);
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
