//! Checks a cell while it is typed, with the checks that it gets when it is executed, and what the executed cells have
//! left. It needs neither the evaluator nor rustc, so it answers while a cell runs and before the evaluator has started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stratoscope_cell_text::ParsedCell;
use stratoscope_diagnostics::check::{self, CellContext, DefinedNames, check_cell};
use stratoscope_diagnostics::policy::{self, Level};
use stratoscope_diagnostics::{Diagnostic, Severity};
use stratoscope_session::{DiagnosticSettings, Lint, Variable};

use crate::magic::Magic;
use crate::python_cell;

/// What makes a strategy, or makes one active.
const OF_STRATEGIES: [&str; 3] = ["Strategy", "set_default", "scope"];

/// Shared by the evaluator, which tells what the cells have left, and the front end that asks.
#[derive(Clone, Default)]
pub struct Linter {
    known: Arc<Mutex<Known>>,
}

/// What is known of the notebook.
#[derive(Default)]
struct Known {
    /// The variables and their types.
    variables: BTreeMap<String, String>,
    /// What the cells define.
    defined: DefinedNames,
    /// `%profile` and `%warnings`.
    settings: DiagnosticSettings,
    /// Whether any executed cell may have made a strategy.
    strategy_executed: bool,
}

impl Linter {
    /// Cells have left these variables.
    pub fn set_variables(&self, variables: &[Variable]) {
        let variables = variables.iter();
        self.known().variables = variables
            .map(|it| (it.name.clone(), it.type_name.clone()))
            .collect();
    }

    /// Cells have defined these names.
    pub fn set_defined(&self, defined: DefinedNames) {
        self.known().defined = defined;
    }

    /// Whether a cell has defined a function of this name.
    pub fn defines(&self, function: &str) -> bool {
        self.known().defined.functions.contains(function)
    }

    /// A cell is executed.
    pub fn executes(&self, code: &str) {
        self.known().strategy_executed |= may_make_strategy(code);
    }

    /// The settings have changed.
    pub fn set_settings(&self, settings: DiagnosticSettings) {
        self.known().settings = settings;
    }

    /// A new evaluator has started: nothing was executed.
    pub fn clear(&self) {
        *self.known() = Known::default();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_make_strategy(code: &str) -> bool {
    OF_STRATEGIES.iter().any(|word| code.contains(word))
}

impl Lint for Linter {
    fn lint(&self, code: &str, strategy_elsewhere: bool) -> Vec<Diagnostic> {
        if Magic::parse(code).is_some() {
            return Vec::new();
        }
        let parsed = ParsedCell::of(code);
        if parsed.too_deep().is_some() {
            return Vec::new();
        }
        let (context, settings) = {
            let known = self.known();
            let may_have_strategy =
                strategy_elsewhere || known.strategy_executed || may_make_strategy(code);
            let context = CellContext {
                profile: known.settings.profile,
                active_scope: (!may_have_strategy).then_some(false),
                variables: known.variables.clone(),
                defined: known.defined.clone(),
            };
            (context, known.settings.clone())
        };
        // A cell of imports is no mistake.
        if python_cell::has_nothing_to_do(&parsed.syntax, &context) {
            return Vec::new();
        }
        let mut all = Vec::new();
        for mut found in check_cell(&parsed.syntax, &context) {
            let related = std::mem::take(&mut found.related);
            all.push(found);
            all.extend(related);
        }
        let mut trial = check::Trial::new(&parsed.syntax, &context);
        (all.into_iter())
            .filter_map(|found| judged(found, &settings))
            .map(|mut found| {
                check::resolve(&parsed.syntax, &mut found);
                trial.passed(found)
            })
            .collect()
    }
}

/// A finding with the severity that `%warnings` gives it; `None`: it is silenced. Nothing is counted as shown.
fn judged(found: Diagnostic, settings: &DiagnosticSettings) -> Option<Diagnostic> {
    match settings.policy.level(&found.code) {
        _ if found.severity == Severity::Error => Some(found),
        Some(Level::Silenced) => None,
        Some(Level::Denied) => Some(policy::denied(found)),
        None => Some(found),
    }
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Profile;

    use super::*;

    const MISSPELLED: &str = "compile!(model, optimiser = AdamW::new(5e-5))?;";
    const STEPS: &str = "compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, steps_per_execution = 4)?;";

    fn codes(linter: &Linter, code: &str, strategy_elsewhere: bool) -> Vec<String> {
        let found = linter.lint(code, strategy_elsewhere).into_iter();
        found.map(|found| found.code).collect()
    }

    #[test]
    fn a_cell_is_checked_without_an_evaluator() {
        let linter = Linter::default();
        assert_eq!(codes(&linter, MISSPELLED, true)[0], "SC0101");
        assert!(codes(&linter, "%help", true).is_empty());
        assert!(codes(&linter, "import numpy as np", true).is_empty());
        assert!(codes(&linter, &"(".repeat(100_000), true).is_empty());
    }

    #[test]
    fn a_type_of_an_earlier_cell_is_not_ours() {
        let linter = Linter::default();
        let cell = "let optimizer = SGD::new(1);";
        assert_eq!(codes(&linter, cell, true), ["SC0103"]);
        linter.set_defined(check::defined_in("struct SGD { steps: usize }"));
        assert!(codes(&linter, cell, true).is_empty());
        linter.clear();
        assert_eq!(codes(&linter, cell, true), ["SC0103"]);
    }

    #[test]
    fn a_strategy_anywhere_leaves_the_rule_of_scopes_to_run_time() {
        let linter = Linter::default();
        let is_found = |elsewhere| codes(&linter, STEPS, elsewhere).contains(&"SC0102".to_owned());
        assert!(is_found(false) && !is_found(true));
        linter.executes("let strategy = MirroredStrategy::logical(2)?;");
        assert!(!is_found(false));
        linter.clear();
        assert!(is_found(false));
    }

    #[test]
    fn the_settings_are_those_of_a_cell() {
        let linter = Linter::default();
        let severity = |settings: &DiagnosticSettings| {
            linter.set_settings(settings.clone());
            let found = linter.lint(STEPS, true);
            let found = found.iter().find(|it| it.code == "SC0119");
            found.map(|it| it.severity)
        };
        let mut settings = DiagnosticSettings::default();
        assert_eq!(severity(&settings), None);
        settings.profile = Some(Profile::Tf23);
        assert_eq!(severity(&settings), Some(Severity::Note));
        settings.policy.set("SC0119", Some(Level::Silenced));
        assert_eq!(severity(&settings), None);
        settings.policy.set("SC0119", Some(Level::Denied));
        assert_eq!(severity(&settings), Some(Severity::Error));
    }
}
