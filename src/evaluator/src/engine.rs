//! Executes cells: check, rewrite, compile and run by evcxr, outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evcxr::{CommandContext, Error, EvalOutputs};
use stratoscope_diagnostics::check::{DefinedNames, check_cell, defined_in};
use stratoscope_diagnostics::policy::Level;
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_wire::{InspectAnswer, InspectQuestion, KeptVariable, MimeBundle, ToCells};

use super::compile_failure::WRITE_FAILED;
use super::crate_progress::Watch;
use super::debugging::Debugging;
use super::declarations::Declared;
use super::interrupt::Handle;
use super::link::Link;
use super::lint::Linter;
use super::lost_variables::LostVariables;
use super::python_cell;
use super::relay::{Current, Phase, Relay};
use super::replaced_variables::ReplacedVariables;
use super::show;
use super::silenced::silenced;
use super::streams::Streams;
use super::warnings;
use crate::assist::Assistant;
use stratoscope_cell_text::definitions::Definitions;
use stratoscope_cell_text::macro_rules::Macros;
use stratoscope_cell_text::rewrite::Rewritten;
use stratoscope_cell_text::{ParsedCell, Rewriting};
use stratoscope_compile::facade::Facade;
use stratoscope_compile::home::Home;
use stratoscope_compile::standby_process::Standby;
use stratoscope_session::DiagnosticSettings;
use stratoscope_session::{
    Cell, CellError, CellOutcome, Completions, Evaluate, Interrupt, LastError, OutputSink, Stream,
    Variable,
};

mod capture;
mod inspect;
mod kept_variables;
mod known;
mod leave;
mod names;
mod outcome;
mod reach;
mod said;
mod start;
mod without_compiler;

use capture::Capture;
use inspect::Inspection;
use start::{FIRST_CELL, WARM_UP};

/// How long the last messages of a cell are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a cell is not executed for which rust-analyzer fails.
const NOT_INFERRED: &str = "rust-analyzer failed to infer the types of this cell's variables; variables are kept. Write the types, \
                            `let x: Type = …;`, or divide the cell";

/// What a cell says that is a whole program.
const MAIN_IS_NOT_CALLED: &str = "`main` is defined, and a notebook does not call it: write `main()` in a cell, or the statements of \
                                  `main` without the function around them";

/// The evaluator. Fields are dropped in this order: evcxr ends the cell process first.
pub struct Engine {
    context: CommandContext,
    process: Arc<Mutex<Child>>,
    relay: Arc<Relay>,
    link: Arc<Link>,
    streams: Arc<Streams>,
    /// Variable → the cell that made it.
    made_by: BTreeMap<String, u64>,
    /// Where they were declared.
    declared: Declared,
    /// Those that there were.
    lost_variables: LostVariables,
    /// Those that were of another type.
    replaced_variables: ReplacedVariables,
    /// The types that cells have defined.
    defined: Definitions,
    /// The names of all that cells have defined.
    defined_names: DefinedNames,
    /// The macros among that.
    macros: Macros,
    /// What evcxr takes for variables and is none ([`kept_variables`]).
    masked: BTreeSet<String>,
    /// Variables that evcxr does not know, although they exist: nothing of the cell that was to change them has run.
    forgotten: Vec<KeptVariable>,
    /// How often types were redefined.
    generation: u32,
    /// Answers meanwhile.
    assistant: Assistant,
    /// Checks cells while they are typed.
    linter: Linter,
    /// Asks about values.
    inspection: Inspection,
    debugging: Arc<Debugging>,
    /// The cell process did not answer when it was asked last.
    is_unreachable: bool,
    /// How the last cell failed that did.
    last_error: Option<LastError>,
    /// Compiles the next cell.
    standby: Option<Standby>,
    home: Home,
    /// What the first cell says about where files go.
    note: Option<&'static str>,
    /// What cells are compiled against; stays as long as it is held.
    _facade: Facade,
}

impl Engine {
    fn variable_names(&self) -> BTreeSet<String> {
        self.list_names().map(|(name, _)| name.to_owned()).collect()
    }

    /// Name and type of every variable.
    fn list_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let variables = self.context.variables_and_types();
        variables.filter(|(name, _)| !self.masked.contains(*name))
    }

    /// Name, type and cell of every variable, in order of their names.
    fn list_variables(&self) -> Vec<Variable> {
        let mut variables: Vec<Variable> = self
            .list_names()
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

    /// Checks the calls of the DSL in a cell and shows what is wrong. Returns the errors, and the notes, which are
    /// shown only if the cell runs to its end.
    fn check(&self, current: &Current) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let (mut errors, mut notes) = (Vec::new(), Vec::new());
        for found in check_cell(&current.cell, &self.known_to_checks(current.profile)) {
            let is_denied = self.relay.settings().policy.level(&found.code) == Some(Level::Denied);
            if found.severity == Severity::Note && !is_denied {
                notes.push(found);
                continue;
            }
            let Some(found) = self.relay.settings().judged(found, None) else {
                continue;
            };
            let found = show::diagnostic(found, None, current);
            if found.severity == Severity::Error {
                errors.push(found);
            }
        }
        (errors, notes)
    }

    /// Compiles and runs a cell that the checks accept, and updates what is known of the variables and types. Returns
    /// rustc's warnings, too.
    fn compile_and_run(
        &mut self,
        rewriting: Rewriting,
        current: &Current,
    ) -> (CellOutcome, Vec<Diagnostic>) {
        let Rewriting {
            mut rewritten,
            definitions: defined,
            macros,
            written_out,
            is_program: _,
        } = rewriting;
        let changed = self.defined.changed_by(&defined);
        let of_old_types = self.of_old_types(&changed);
        let is_new_generation = self.begin_generation(&changed);
        let mut before: BTreeMap<String, String> = self
            .list_names()
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect();
        self.mask(&of_old_types);
        let watch = Watch::start(
            self.home.path(),
            current.number,
            &rewritten.text,
            Arc::clone(&current.outputs),
        );
        let (result, ended) = self.evaluate_whole(&mut rewritten, current);
        // What a cell defines is kept whenever it was compiled, however it ended; only with its process it is lost.
        let compiled = !matches!(
            result,
            Err(Error::CompilationErrors(_) | Error::Message(_) | Error::SubprocessTerminated(_))
        );
        drop(watch);
        let warnings = warnings::take(self.home.path(), &rewritten, &current.cell);
        self.end_generation(is_new_generation, compiled);
        if compiled {
            before.retain(|name, _| !of_old_types.contains(name));
            self.drop_redefined(of_old_types, &rewritten, current);
            self.defined.extend(defined);
            self.macros.extend(macros);
            self.defined_names.extend(defined_in(&current.cell));
            for items in written_out {
                self.defined_names.extend(defined_in(&items));
            }
            self.linter.set_defined(self.defined_names.clone());
            self.end_variables(&ended, (&mut rewritten, &mut before), current.number);
        }
        let outcome = self.outcome(result, &rewritten, &before, current);
        let variables = self.list_variables();
        self.linter.set_variables(&variables);
        self.assistant.set_variables(variables);
        (outcome, warnings)
    }

    /// Hands a rewritten cell to evcxr and waits until everything it said has been shown.
    fn evaluate(&mut self, rewritten: &Rewritten) -> std::result::Result<EvalOutputs, Error> {
        // rust-analyzer infers types before anything of the cell runs: its panic costs the cell, and no variable.
        let result = silenced(|| self.context.execute(&rewritten.text)).unwrap_or_else(|| {
            assert_ne!(self.relay.progress().1, Phase::Running, "evcxr failed");
            Err(Error::Message(NOT_INFERRED.to_owned()))
        });
        let ran = matches!(result, Ok(_) | Err(Error::TypeRedefinedVariablesLost(_)));
        if ran && rewritten.runs {
            self.sync();
        }
        self.streams.drain();
        result
    }
}

impl Engine {
    /// Executes a cell. Its cards of errors are collected in `cards`.
    fn execute_cell(
        &mut self,
        cell: &Cell<'_>,
        outputs: &Arc<dyn OutputSink>,
        cards: &Arc<Mutex<Vec<MimeBundle>>>,
    ) -> CellOutcome {
        self.adopt_forgotten();
        let parsed = ParsedCell::of(cell.code)
            .with_session_macros(self.macros.clone())
            .debugged(self.debugging.marks_lines());
        let outcome = self.execute_parsed(&parsed, cell, outputs, cards);
        parsed.syntax.end();
        outcome
    }

    /// All that reads the cell reads `parsed`.
    fn execute_parsed(
        &mut self,
        parsed: &ParsedCell<'_>,
        cell: &Cell<'_>,
        outputs: &Arc<dyn OutputSink>,
        cards: &Arc<Mutex<Vec<MimeBundle>>>,
    ) -> CellOutcome {
        // Python that is too deep is Python too.
        if let Some((line, message)) = parsed.too_deep()
            && !python_cell::is_python(&parsed.syntax)
        {
            let (name, line) = ("NestedTooDeep", Some(line));
            let error = show::plain_error(name, &message, line, None, cell.number, cell.code);
            return CellOutcome::Error(error);
        }
        let current = Current {
            cell: parsed.syntax.clone(),
            number: cell.number,
            outputs: Arc::clone(outputs),
            profile: self.relay.settings().profile,
            cards: Arc::clone(cards),
        };
        self.relay.begin(current.clone());
        if let Some(note) = self.note.take() {
            outputs.stream(Stream::Stderr, &format!("{note}\n"));
        }
        let known = self.known_to_checks(current.profile);
        let python = python_cell::answer(known, &mut self.relay.settings(), &current);
        if let Some(outcome) = python {
            self.relay.end();
            return outcome;
        }
        let (errors, notes) = self.check(&current);
        if !errors.is_empty() {
            return self.refused_by_checks(&errors, cell);
        }
        self.linter.executes(cell.code);
        let rewriting = parsed.rewrite(cell.number, cell.silent);
        let is_program = rewriting.is_program;
        let (mut outcome, warnings) = self.compile_and_run(rewriting, &current);
        if matches!(&outcome, CellOutcome::Error(error) if error.ename == WRITE_FAILED)
            && let Some(done) = without_compiler::run(cell.code, outputs.as_ref())
        {
            outcome = done;
        }
        if outcome == CellOutcome::Ok {
            if is_program {
                show::sentence(MAIN_IS_NOT_CALLED, &current);
            }
            for found in warnings.into_iter().chain(notes) {
                let judged = self.relay.settings().judged(found, None);
                if let Some(found) = judged {
                    show::diagnostic(found, None, &current);
                }
            }
        }
        outcome
    }
}

impl Evaluate for Engine {
    fn execute(&mut self, cell: Cell<'_>, outputs: &Arc<dyn OutputSink>) -> CellOutcome {
        let cards = Arc::default();
        let outcome = self.execute_cell(&cell, outputs, &cards);
        if let CellOutcome::Error(error) = &outcome {
            let cards = cards.lock();
            self.last_error = Some(LastError {
                number: cell.number,
                cards: cards.unwrap_or_else(PoisonError::into_inner).clone(),
                error: error.clone(),
            });
        }
        outcome
    }

    fn evaluate_expression(
        &mut self,
        expression: &str,
    ) -> std::result::Result<MimeBundle, CellError> {
        let capture = Arc::new(Capture::default());
        let outputs: Arc<dyn OutputSink> = capture.clone();
        let previous = self.relay.current();
        let cell = Cell {
            code: expression,
            number: previous.as_ref().map_or(0, |current| current.number),
            silent: false,
        };
        self.debugging.executes_a_cell(false);
        let outcome = self.execute_cell(&cell, &outputs, &Arc::default());
        self.debugging.executes_a_cell(true);
        if let Some(previous) = previous {
            self.relay.begin(previous);
            self.relay.end();
        }
        match outcome {
            CellOutcome::Ok => Ok(capture.take()),
            CellOutcome::Error(error) => Err(error),
            CellOutcome::Interrupted { .. } => Err(CellError::interrupted()),
        }
    }

    fn warm_up(&mut self) {
        let _ = silenced(|| self.context.completions(WARM_UP, WARM_UP.len()));
    }

    fn complete(&mut self, code: &str, cursor: usize) -> Completions {
        if ParsedCell::of(code).too_deep().is_some() {
            return Completions::nothing_at(cursor);
        }
        self.completions(code, cursor)
    }

    fn inspect(&mut self, code: &str, cursor: usize, detail_level: u8) -> Option<MimeBundle> {
        if ParsedCell::of(code).too_deep().is_some() {
            return None;
        }
        self.documentation(code, cursor, detail_level)
    }

    fn variables(&mut self) -> Vec<Variable> {
        self.relay.send(&ToCells::Describe);
        self.link.sync(PATIENCE);
        let described = self.relay.take_described();
        let mut variables = self.list_variables();
        for variable in &mut variables {
            if let Some(found) = described.iter().find(|it| it.name == variable.name) {
                variable.bytes = Some(found.bytes);
                variable.device.clone_from(&found.device);
            }
        }
        variables
    }

    fn inspect_values(&mut self, question: InspectQuestion) -> InspectAnswer {
        self.inspect_idle(question)
    }

    fn last_error(&self) -> Option<LastError> {
        self.last_error.clone()
    }

    fn reset(&mut self) -> std::result::Result<(), CellError> {
        let cleared = self.context.execute(":clear");
        let started = cleared.and_then(|_| self.context.execute(FIRST_CELL));
        self.made_by.clear();
        self.declared = Declared::default();
        self.lost_variables.clear();
        self.replaced_variables.clear();
        self.defined.clear();
        self.defined_names = DefinedNames::default();
        self.macros.clear();
        self.masked.clear();
        self.forgotten.clear();
        self.mask(&BTreeSet::new());
        self.assistant.set_variables(Vec::new());
        self.linter.set_variables(&[]);
        self.linter.set_defined(DefinedNames::default());
        started.map(drop).map_err(|error| CellError {
            ename: "Error".to_owned(),
            evalue: format!("nothing can be executed any more: {error}"),
            traceback: vec![error.to_string()],
        })
    }

    fn settings(&mut self, change: &mut dyn FnMut(&mut DiagnosticSettings)) {
        let denied = {
            let mut settings = self.relay.settings();
            change(&mut settings);
            self.linter.set_settings(settings.clone());
            settings.policy.codes(Level::Denied)
        };
        self.link.send_always(ToCells::Deny { codes: denied });
        // The next cell must not begin before the process knows.
        self.link.sync(PATIENCE);
    }

    fn interrupt_handle(&self) -> Arc<dyn Interrupt> {
        Arc::new(Handle {
            relay: Arc::clone(&self.relay),
            link: Arc::clone(&self.link),
            process: Arc::clone(&self.process),
            standby: self.standby.as_ref().map(Standby::id),
            inspector: self.inspection.inspector(),
            debugging: Arc::clone(&self.debugging),
        })
    }

    fn shut_down(&mut self) {
        if self.relay.progress().1 == Phase::Idle {
            self.leave();
        }
        // The process may be in the middle of a cell; dropping evcxr would wait for it.
        if let Ok(mut process) = self.process.lock() {
            let _ = process.kill();
        }
    }
}
