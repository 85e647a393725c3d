//! How a cell ended: by evcxr's result, by what the cell process has reported, and by the variables that are lost.

use std::collections::{BTreeMap, BTreeSet};

use evcxr::{CompilationError, Error, EvalOutputs};
use stratoscope_compile::evcxr_contract as contract;
use stratoscope_diagnostics::{Diagnostic, Severity, check};

use super::Engine;
use super::said::{Said, without_consequences};
use crate::lost_variables::{Cause, LostVariables};
use crate::relay::{Current, Ending, LastWords};
use crate::replaced_variables::hides_a_function;
use crate::{advice, compile_failure, persistence, rustc_errors, show};
use stratoscope_cell_syntax::CellSyntax;
use stratoscope_cell_text::rewrite::Rewritten;
use stratoscope_session::{CellError, CellOutcome, INTERRUPTED};

impl Engine {
    /// How the cell ended: by evcxr's result, and by what the cell process has reported.
    pub(super) fn outcome(
        &mut self,
        result: std::result::Result<EvalOutputs, Error>,
        rewritten: &Rewritten,
        before: &BTreeMap<String, String>,
        current: &Current,
    ) -> CellOutcome {
        let ending = self.relay.end();
        let (interrupted, _) = self.relay.interruption();
        let variables = self.settle(&result, ending.as_ref(), rewritten, before, current);
        match result {
            Ok(outputs) => self.ran(&outputs, ending, &variables, rewritten, current),
            Err(Error::SubprocessTerminated(reason)) => {
                self.process_ended(&reason, &variables.lost, current)
            }
            Err(_) if interrupted => CellOutcome::Interrupted { lost: None },
            Err(Error::CompilationErrors(errors)) => {
                CellOutcome::Error(self.not_compiled(&errors, &variables, rewritten, current))
            }
            Err(Error::Message(message)) => {
                CellOutcome::Error(self.refused(&message, rewritten, current))
            }
            Err(error @ Error::TypeRedefinedVariablesLost(_)) => {
                CellOutcome::Error(plain_error("Error", &error.to_string(), current))
            }
        }
    }

    /// The cell was compiled, and has ended as code ends: at its end, by an error, a panic or an interrupt.
    fn ran(
        &self,
        outputs: &EvalOutputs,
        ending: Option<Ending>,
        variables: &Settled,
        rewritten: &Rewritten,
        current: &Current,
    ) -> CellOutcome {
        let (interrupted, heard) = self.relay.interruption();
        if let Some(ending) = ending {
            let fate = match ending {
                Ending::NotLoaded { .. } => kept(&variables.after).unwrap_or_default(),
                _ => fate(&variables.lost, rewritten, &variables.after, ending.line()),
            };
            let mut error = show::ended(ending, &fate, current);
            // A cell that was interrupted and then failed has failed because of the interrupt.
            if interrupted && heard && error.ename == show::FAILED {
                error.ename = INTERRUPTED.to_owned();
            }
            return CellOutcome::Error(error);
        }
        show_outputs(outputs, current);
        if interrupted && heard {
            return CellOutcome::Interrupted { lost: None };
        }
        CellOutcome::Ok
    }

    /// The cell's process has ended, and the variables with it.
    fn process_ended(&self, reason: &str, lost: &[String], current: &Current) -> CellOutcome {
        let lost = match lost {
            [] => "no variables were lost".to_owned(),
            lost => format!("lost: {}", show::names(lost)),
        };
        let lost = format!("{lost}; {}", items_fate(&current.cell));
        if self.relay.interruption().0 {
            let lost = format!("the cell did not listen, so its process was ended; {lost}");
            return CellOutcome::Interrupted { lost: Some(lost) };
        }
        let line = self.home.last_line();
        let words = self.relay.last_words();
        CellOutcome::Error(process_ended(reason, words, &lost, line, current))
    }

    /// rustc has found errors: of variables that cannot be kept, of the DSL, or any others.
    fn not_compiled(
        &self,
        errors: &[CompilationError],
        variables: &Settled,
        rewritten: &Rewritten,
        current: &Current,
    ) -> CellError {
        let (cell, code, number) = (&current.cell, current.code(), current.number);
        let known = self.known_to_checks(current.profile);
        if let Some(found) = persistence::refused(errors, rewritten, cell, &known.variables) {
            let found = show::diagnostic(found.card, None, current);
            return show::error_of(&[found], code, number);
        }
        let explain = |found| {
            self.declared
                .explain(variables.missing.explain(found), code)
        };
        let errors = rustc_errors::errors(errors, rewritten, code);
        let mut found: Vec<Diagnostic> = errors.into_iter().map(explain).collect();
        if found.is_empty() {
            found.push(Diagnostic::new(
                "CompilationError",
                Severity::Error,
                "the cell does not compile",
            ));
        }
        // An error about the DSL is shown in its terms, on a card.
        let mut said: Vec<Said> = Vec::new();
        let mut trial = check::Trial::new(cell, &known);
        for found in found {
            let is_variable = |name: &str| known.variables.contains_key(name);
            let replaced = self.replaced_variables.explain(&found, cell);
            // Where it went says more than where this cell binds it.
            let is_lost = variables.missing.knows(&found);
            let ours = match &replaced {
                None if !is_lost => check::in_our_words(cell, &found, &known),
                _ => None,
            };
            let hides = || match &ours {
                None => hides_a_function(&found, code, is_variable),
                Some(_) => None,
            };
            if let Some(other) = replaced.or_else(hides) {
                said.push(Said::Text(other));
                continue;
            }
            // Two names in one call are one mistake.
            let is_same = |ours: &Diagnostic| {
                let same = |other: &Diagnostic| {
                    let is_said = !ours.fixes.is_empty() || other.message == ours.message;
                    // Two errors that one edit takes away.
                    let is_kind = other.code == ours.code || ours.has_edits();
                    is_kind && other.fixes == ours.fixes && is_said
                };
                said.iter().any(|it| same(it.diagnostic()))
            };
            match ours {
                Some(ours) if is_same(&ours) => {}
                Some(ours) => said.push(Said::Card(ours)),
                None => {
                    let found = advice::with_its_crate(rustc_errors::at_the_arguments(found));
                    said.push(Said::of(trial.passed(found)));
                }
            }
        }
        let shown = without_consequences(said, code)
            .into_iter()
            .map(|it| match it {
                Said::Card(ours) => show::diagnostic(ours, None, current),
                Said::Text(found) => found,
            });
        let shown: Vec<Diagnostic> = shown.collect();
        show::error_of(&shown, code, number)
    }

    /// The variable for which evcxr or rustc has refused the cell.
    pub(super) fn not_kept(
        &self,
        result: &std::result::Result<EvalOutputs, Error>,
        rewritten: &Rewritten,
        current: &Current,
    ) -> Option<persistence::Refused> {
        let variables = || self.known_to_checks(current.profile).variables;
        match result {
            Err(Error::CompilationErrors(errors)) => {
                persistence::refused(errors, rewritten, &current.cell, &variables())
            }
            Err(Error::Message(message)) => {
                persistence::not_persistent(message, rewritten, &current.cell, &variables())
            }
            _ => None,
        }
    }

    /// evcxr has refused the cell, or could not compile it.
    fn refused(&self, message: &str, rewritten: &Rewritten, current: &Current) -> CellError {
        let variables = self.known_to_checks(current.profile).variables;
        match persistence::not_persistent(message, rewritten, &current.cell, &variables) {
            Some(found) => {
                let found = show::diagnostic(found.card, None, current);
                show::error_of(&[found], current.code(), current.number)
            }
            None => {
                let (name, text) = compile_failure::explain(message);
                plain_error(name, &text, current)
            }
        }
    }
}

/// An error without a place.
fn plain_error(name: &str, message: &str, current: &Current) -> CellError {
    show::plain_error(name, message, None, None, current.number, current.code())
}

/// What has become of the variables.
struct Settled {
    /// Those that there are now.
    after: BTreeSet<String>,
    /// Those that there are no more.
    lost: Vec<String>,
    /// The variables that did not exist when the cell began, and those that it has lost.
    missing: LostVariables,
}

impl Engine {
    /// Adopts what a cell has kept that was ended early, and notes what has become of all variables.
    fn settle(
        &mut self,
        result: &std::result::Result<EvalOutputs, Error>,
        ending: Option<&Ending>,
        rewritten: &Rewritten,
        before: &BTreeMap<String, String>,
        current: &Current,
    ) -> Settled {
        let (interrupted, _) = self.relay.interruption();
        let kept = self.relay.take_kept();
        let has_run = result.is_ok() && kept.is_none();
        let kept = kept.unwrap_or_default();
        if matches!(ending, Some(Ending::NotLoaded { .. })) {
            self.forgotten = self.forgotten_since(before);
        }
        match result {
            Err(Error::SubprocessTerminated(_)) => {
                self.masked.clear();
                self.forgotten.clear();
            }
            _ => self.adopt(&kept),
        }
        self.unmask(if has_run { &rewritten.bindings } else { &[] });
        let mut after = self.variable_names();
        after.extend(self.forgotten.iter().map(|it| it.name.clone()));
        let is_lost = |name: &&String| !after.contains(*name);
        let lost: Vec<String> = before.keys().filter(is_lost).cloned().collect();
        let how = match result {
            Err(Error::SubprocessTerminated(_)) if interrupted => Cause::Interrupted,
            Err(Error::SubprocessTerminated(_)) => Cause::ProcessEnded,
            Err(Error::TypeRedefinedVariablesLost(_)) => Cause::TypeRedefined,
            Ok(_) if ending.is_none() => Cause::Moved,
            _ => Cause::MovedAndFailed,
        };
        let line = ending.and_then(Ending::line);
        for name in &lost {
            let made_in = self.made_by.get(name).copied();
            let how = match how {
                Cause::MovedAndFailed if is_bound_before(rewritten, name, line) => {
                    Cause::BoundAgain
                }
                how => how,
            };
            self.lost_variables.note(name, how, current.number, made_in);
        }
        let missing = self.lost_variables.clone();
        for name in &rewritten.bindings {
            let is_made = has_run || kept.iter().any(|it| it.name == *name && it.is_new);
            if after.contains(name) {
                if is_made {
                    self.note_replaced(name, before, current.number);
                    self.made_by.insert(name.clone(), current.number);
                    self.declared.note(name, current.number, current.code());
                }
            } else if !lost.contains(name) {
                let made_in = Some(current.number);
                match how {
                    Cause::Moved if has_run => {
                        self.lost_variables.note(name, how, current.number, made_in);
                    }
                    Cause::Moved => {
                        self.lost_variables
                            .note(name, Cause::Returned, current.number, made_in)
                    }
                    _ => self
                        .lost_variables
                        .note_if_new(name, Cause::NotMade, current.number),
                }
            }
        }
        self.made_by.retain(|name, _| after.contains(name));
        self.declared.retain(|name| after.contains(name));
        self.lost_variables.retain(|name| !after.contains(name));
        self.replaced_variables.retain(|name| after.contains(name));
        Settled {
            after,
            lost,
            missing,
        }
    }
}

impl Engine {
    /// Notes that the cell has given a variable of an earlier one a value of another type.
    fn note_replaced(&mut self, name: &str, before: &BTreeMap<String, String>, cell: u64) {
        let Some(earlier) = before.get(name) else {
            return;
        };
        let now = self.list_names().find(|(it, _)| *it == name);
        if let Some(now) = now.map(|(_, of_type)| of_type.to_owned()) {
            let made_in = self.made_by.get(name).copied().unwrap_or_default();
            self.replaced_variables
                .note(name, earlier, &now, made_in, cell);
        }
    }
}

/// What has become of functions and the like when a cell's process has ended: evcxr adds those of a cell at its end.
fn items_fate(cell: &CellSyntax) -> &'static str {
    let of_cell = check::defined_in(cell);
    if of_cell.items.is_empty() && of_cell.functions.is_empty() {
        "functions, types and imports are kept"
    } else {
        "functions, types and imports of earlier cells are kept, those of this cell are lost"
    }
}

/// Shows the output of a command of evcxr's (`:dep`, `:vars`).
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
    let was_reached = |name: &&String| is_bound_before(rewritten, name, line);
    let (given_up, not_bound): (Vec<&String>, Vec<&String>) = unfinished.partition(was_reached);
    let names = |names: Vec<&String>| {
        let names: Vec<String> = names.into_iter().cloned().collect();
        show::names(&names)
    };
    let (bound_again, moved): (Vec<&String>, Vec<&String>) = lost.iter().partition(was_reached);
    let lost: Vec<String> = [
        (moved, "moved by the cell"),
        (bound_again, "bound again by the cell"),
        (given_up, "used again by the cell"),
        (not_bound, "the cell ended before it was bound"),
    ]
    .into_iter()
    .filter(|(variables, _)| !variables.is_empty())
    .map(|(variables, why)| format!("{} ({why})", names(variables)))
    .collect();
    let lost = (!lost.is_empty()).then(|| format!("lost: {}", lost.join(", ")));
    let parts: Vec<String> = kept(after).into_iter().chain(lost).collect();
    parts.join("; ")
}

/// Whether the cell binds the variable for the last time before `line`.
fn is_bound_before(rewritten: &Rewritten, name: &str, line: Option<usize>) -> bool {
    let of_its_let = rewritten.binding_lines.get(name).copied();
    of_its_let.is_some() && of_its_let < line
}

/// The variables that there are.
fn kept(after: &BTreeSet<String>) -> Option<String> {
    let names: Vec<String> = after.iter().cloned().collect();
    (!names.is_empty()).then(|| format!("kept: {}", show::names(&names)))
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
        .rsplit_once(contract::TERMINATED)
        .map_or(reason, |(_, status)| status)
        .trim();
    let signal = contract::signal_in(status);
    let (ename, what) = match (contract::exit_status_in(status), words) {
        (Some(code), _) => (
            "ProcessEnded",
            format!("the cell ended its process with exit status {code}"),
        ),
        (None, Some(LastWords::StackOverflow)) => (
            "StackOverflow",
            "the cell overflowed its stack of 256 MiB, which ends its process".to_owned(),
        ),
        (None, Some(LastWords::OutOfMemory(bytes))) => (
            "OutOfMemory",
            format!("the cell could not allocate {bytes} bytes, which ends its process"),
        ),
        (None, Some(LastWords::Panic)) => (
            "ProcessEnded",
            format!(
                "the cell panicked where no panic can be caught, as in a destructor while another \
                 panic is under way, or at the end of the cell; that ends its process ({status})"
            ),
        ),
        (None, None) if signal == Some(libc::SIGKILL) => (
            "ProcessEnded",
            format!(
                "the cell's process was killed from outside ({status}), as the system does when \
                 memory runs out"
            ),
        ),
        (None, None) if signal == Some(libc::SIGSEGV) => (
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
    show::plain_error(ename, &message, line, None, current.number, current.code())
}
