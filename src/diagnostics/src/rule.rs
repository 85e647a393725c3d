//! What a rule is: the facts of one kind of problem, and the diagnostic made from them.

use crate::{Diagnostic, Severity};

/// The earliest moment at which a rule can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The text of the cell decides: nothing is compiled, nothing runs.
    Text,
    /// The kernel starts, or compiles a cell.
    Start,
    /// `compile!` runs, or a strategy is made or entered.
    Compile,
    /// A checkpoint, a tokenizer or a dataset is read, or a device is opened.
    Load,
    /// `fit!` or `evaluate!` begins: the data is there, no step has been made.
    Data,
    /// Between two steps of a training run.
    Training,
    /// The answers of models are compared.
    Comparison,
    /// Documentation only: no program triggers it. Cards of other rules refer to the page.
    Page,
}

impl Stage {
    /// The stage as a part of a sentence: `found in the text of the cell, …`.
    pub fn sentence(self) -> String {
        match self {
            Self::Page => "documentation only: no program triggers it".to_owned(),
            _ => format!("found {}", self.words()),
        }
    }

    /// The moment in words, to follow "found".
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "in the text of the cell, before it is compiled",
            Self::Start => "when the kernel starts or compiles a cell",
            Self::Compile => "when the cell runs, before any training",
            Self::Load => "when a file is read or a device is opened",
            Self::Data => "when the data is checked, before the first step",
            Self::Training => "while the model trains, between two steps",
            Self::Comparison => "when models are compared, after their training",
            Self::Page => "never (documentation only)",
        }
    }

    /// The moment as one word, for data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Start => "start",
            Self::Compile => "compile",
            Self::Load => "load",
            Self::Data => "data",
            Self::Training => "training",
            Self::Comparison => "comparison",
            Self::Page => "page",
        }
    }
}

/// The page of a rule, printed by `%explain CODE` and written to `docs/diagnostics/`.
#[derive(Clone, Copy, Debug)]
pub struct RulePage {
    /// Stable code; a retired one stays taken.
    pub code: &'static str,
    /// Names the problem, not the fix: `unknown-compile-argument`.
    pub name: &'static str,
    /// What a finding of it means for the cell.
    pub severity: Severity,
    /// The earliest moment at which it is found.
    pub stage: Stage,
    /// What the rule finds, in a sentence or two.
    pub finds: &'static str,
    /// What goes wrong without the diagnostic.
    pub why: &'static str,
    /// A cell that triggers it.
    pub bad: &'static str,
    /// The corrected cell.
    pub good: &'static str,
    /// What TensorFlow does with the bad cell; empty where it has no counterpart.
    pub tensorflow: &'static str,
}

/// A rule as the catalogue lists it: its page, and what it takes to run the page's cells.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The page.
    pub page: RulePage,
    /// [`Rule::GIVEN`].
    pub given: &'static [&'static str],
    /// [`Rule::NOT_RUN`].
    pub not_run: Option<&'static str>,
    /// [`Rule::ONCE`].
    pub once: bool,
    /// [`Rule::TOLERATES`].
    pub tolerates: &'static [&'static str],
}

/// The facts of one kind of problem. Implemented once per file in [`crate::rules`].
pub trait Rule {
    /// The rule's page; its code is the diagnostic's code.
    const PAGE: RulePage;

    /// Cells that run before either of the page's two, beside what every page takes for granted
    /// ([`crate::pages::GRANTED`]).
    const GIVEN: &'static [&'static str] = &[];

    /// Why the page's cells cannot be run by the tests: they need a GPU, the network, another
    /// machine. `None`: `tests/test_rules.py` runs both, the bad one must show the code and the good
    /// one nothing.
    const NOT_RUN: Option<&'static str> = None;

    /// Whether a finding is shown once a session. A warning is shown in every cell that has it; a
    /// note says what is as well read once, and its repetition would be noise.
    const ONCE: bool = matches!(Self::PAGE.severity, Severity::Note);

    /// Codes that the page's good cell may show, because it leaves out the training, or because the tests run it on a tiny
    /// checkpoint and a few rows.
    const TOLERATES: &'static [&'static str] = &[];

    /// Whether the facts are a finding. The thresholds of a rule are constants of its file; `true` where whoever makes
    /// the facts has decided it, as a lookup that failed does.
    fn applies(&self) -> bool {
        true
    }

    /// The diagnostic for these facts.
    fn diagnostic(&self) -> Diagnostic;

    /// The diagnostic, if the facts are a finding.
    fn check(&self) -> Option<Diagnostic> {
        self.applies().then(|| self.diagnostic())
    }

    /// The same, boxed as an error.
    fn error(&self) -> Box<Diagnostic> {
        Box::new(self.diagnostic())
    }

    /// A diagnostic with this rule's code and severity, to which the facts are added.
    fn start(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Self::PAGE.code, Self::PAGE.severity, message)
    }
}
