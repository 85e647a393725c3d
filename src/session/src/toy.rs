//! An evaluator for tests: a cell's lines are commands to it, so that what surrounds an evaluator
//! can be tested without a compiler.
//!
//! `print T`, `display T`, `update T`, `result T`, `clear`, `ask P`, `sleep MS`, `fail T`,
//! `panic T`, `is warm`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stratoscope_diagnostics::check::{CellContext, check_cell};
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_wire::{InspectAnswer, InspectQuestion, InspectedValue, MimeBundle};

use crate::{
    Assist, Backend, Cell, CellError, CellOutcome, Completion, Completions, Evaluate, Interrupt,
    Lint, MagicCell, OutputSink, Stream, Variable,
};

/// Starts after `delay`.
pub fn starter(delay: Duration) -> Box<dyn Backend> {
    Box::new(ToyBackend { delay: Some(delay) })
}

/// Never starts.
pub fn failing_starter() -> Box<dyn Backend> {
    Box::new(ToyBackend { delay: None })
}

struct ToyBackend {
    /// How long the start takes; `None`: it fails.
    delay: Option<Duration>,
}

impl Backend for ToyBackend {
    fn start(&self) -> Result<Box<dyn Evaluate>, Box<Diagnostic>> {
        let Some(delay) = self.delay else {
            let message = "there is no facade";
            return Err(Box::new(Diagnostic::new(
                "SC1001",
                Severity::Error,
                message,
            )));
        };
        std::thread::sleep(delay);
        Ok(Box::new(Toy::default()))
    }

    fn magic(&self, code: &str) -> Option<Box<dyn MagicCell>> {
        match code {
            "%help" => Some(Box::new(ToyMagic::Help)),
            "%vars" => Some(Box::new(ToyMagic::Variables)),
            _ => None,
        }
    }

    fn table(&self, variables: &[Variable]) -> MimeBundle {
        let line = |it: &Variable| format!("{}  {}", it.name, it.type_name);
        plain(&variables.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    fn linter(&self) -> Option<Arc<dyn Lint>> {
        Some(Arc::new(ToyLinter))
    }

    fn assistant(&self) -> Option<Arc<dyn Assist>> {
        Some(Arc::new(ToyAssistant))
    }
}

/// Knows one name: `argument`.
struct ToyAssistant;

impl Assist for ToyAssistant {
    fn complete(&self, code: &str, cursor: usize) -> Completions {
        let mut found = Completions::nothing_at(cursor);
        if code.starts_with("arg") {
            found.items.push(Completion {
                text: "argument".to_owned(),
                kind: "instance".to_owned(),
                detail: String::new(),
            });
        }
        found
    }

    fn inspect(&self, code: &str, _cursor: usize, _detail_level: u8) -> Option<MimeBundle> {
        (code == "argument").then(|| plain("of the text"))
    }
}

/// Checks a cell as the real one does in a notebook without variables; `panic` is a mistake of its own.
struct ToyLinter;

impl Lint for ToyLinter {
    fn lint(&self, code: &str, strategy_elsewhere: bool) -> Vec<Diagnostic> {
        assert_ne!(code, "panic");
        let context = CellContext {
            active_scope: (!strategy_elsewhere).then_some(false),
            ..CellContext::default()
        };
        check_cell(code, &context)
    }
}

/// One that needs an evaluator and one that does not.
enum ToyMagic {
    Help,
    Variables,
}

impl MagicCell for ToyMagic {
    fn needs_evaluator(&self) -> bool {
        matches!(self, Self::Variables)
    }

    fn answer(
        &self,
        _number: u64,
        outputs: &dyn OutputSink,
        _cells: &BTreeMap<u64, String>,
    ) -> CellOutcome {
        outputs.display(plain("help"), MimeBundle::new(), None, false);
        CellOutcome::Ok
    }

    fn answer_with(
        &self,
        _number: u64,
        outputs: &dyn OutputSink,
        evaluator: &mut dyn Evaluate,
    ) -> CellOutcome {
        let backend = ToyBackend { delay: None };
        outputs.result(backend.table(&evaluator.variables()));
        CellOutcome::Ok
    }
}

/// `text` as `text/plain`.
pub fn plain(text: &str) -> MimeBundle {
    MimeBundle::from_iter([("text/plain".to_owned(), text.into())])
}

#[derive(Default)]
struct Toy {
    interrupted: Arc<Flag>,
    executed: u64,
    is_warm: bool,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Interrupt for Flag {
    fn interrupt(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn kill(&self) {
        self.interrupt();
    }

    fn inspect_values(&self, question: InspectQuestion) -> InspectAnswer {
        of_toy(&question, "meanwhile")
    }
}

/// The one variable `state`, which says when it was asked for.
fn of_toy(question: &InspectQuestion, state: &str) -> InspectAnswer {
    match question {
        InspectQuestion::Variables => InspectAnswer::Values {
            values: vec![InspectedValue {
                name: "state".to_owned(),
                value: Some(state.to_owned()),
                ..InspectedValue::default()
            }],
            named: 1,
            all_named: 1,
            all_indexed: 0,
        },
        _ => InspectAnswer::missing("a toy has no parts"),
    }
}

impl Toy {
    /// Waits for so many milliseconds, or until it is interrupted.
    fn is_interrupted_within(&self, milliseconds: Option<&str>) -> bool {
        let milliseconds = milliseconds.and_then(|it| it.parse().ok()).unwrap_or(0);
        (0..milliseconds).any(|_: u64| {
            std::thread::sleep(Duration::from_millis(1));
            self.interrupted.0.load(Ordering::SeqCst)
        })
    }
}

impl Evaluate for Toy {
    fn execute(&mut self, cell: Cell<'_>, outputs: &Arc<dyn OutputSink>) -> CellOutcome {
        self.interrupted.0.store(false, Ordering::SeqCst);
        self.executed += 1;
        for line in cell.code.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "print" => outputs.stream(Stream::Stdout, &format!("{rest}\n")),
                "display" | "update" => {
                    let id = Some("d".to_owned());
                    outputs.display(plain(rest), MimeBundle::new(), id, word == "update");
                }
                "result" => outputs.result(plain(rest)),
                "clear" => outputs.clear(false),
                "is" => outputs.stream(Stream::Stdout, &format!("{}\n", self.is_warm)),
                "ask" => {
                    let answer = outputs.input(rest, false);
                    outputs.stream(Stream::Stdout, &format!("{answer:?}\n"));
                }
                "sleep" if self.is_interrupted_within(Some(rest)) => {
                    return CellOutcome::Interrupted { lost: None };
                }
                "sleep" => {}
                "panic" => panic!("{rest}"),
                _ => {
                    return CellOutcome::Error(CellError {
                        ename: word.to_owned(),
                        evalue: rest.to_owned(),
                        traceback: vec![format!("Cell In[{}], line 1", cell.number)],
                    });
                }
            }
        }
        CellOutcome::Ok
    }

    fn evaluate_expression(&mut self, expression: &str) -> Result<MimeBundle, CellError> {
        self.interrupted.0.store(false, Ordering::SeqCst);
        if self.is_interrupted_within(expression.strip_prefix("sleep ")) {
            return Err(CellError::interrupted());
        }
        Ok(plain(expression))
    }

    fn warm_up(&mut self) {
        self.is_warm = true;
    }

    fn complete(&mut self, _code: &str, cursor: usize) -> Completions {
        let item = Completion {
            text: "complete".to_owned(),
            kind: "function".to_owned(),
            detail: String::new(),
        };
        Completions {
            start: cursor,
            end: cursor,
            items: vec![item],
        }
    }

    fn inspect(&mut self, code: &str, _cursor: usize, _detail_level: u8) -> Option<MimeBundle> {
        (code == "known").then(|| plain("a name"))
    }

    fn variables(&mut self) -> Vec<Variable> {
        vec![Variable {
            name: "executed".to_owned(),
            type_name: self.executed.to_string(),
            ..Variable::default()
        }]
    }

    fn inspect_values(&mut self, question: InspectQuestion) -> InspectAnswer {
        of_toy(&question, "idle")
    }

    fn interrupt_handle(&self) -> Arc<dyn Interrupt> {
        self.interrupted.clone()
    }

    fn shut_down(&mut self) {}
}
