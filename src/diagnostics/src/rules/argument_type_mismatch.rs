//! SC0120 `argument-type-mismatch`.

use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A value that is something else than the argument takes: an optimizer for a loss.
#[derive(Clone, Debug)]
pub struct ArgumentTypeMismatch {
    /// The argument; empty for an operand, which has no name.
    pub argument: String,
    /// The value as typed.
    pub given: String,
    /// What the argument takes, in a word: `loss`, `integer ≥ 1`.
    pub expected: String,
    /// What the value is, in a word: `optimizer`.
    pub got: String,
    /// The place of the value.
    pub place: Place,
    /// Fixes, best first.
    pub fixes: Vec<Fix>,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for ArgumentTypeMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0120",
        name: "argument-type-mismatch",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "An argument whose value has the wrong type: an optimizer for a loss, a schedule for an \
                optimizer, a metric for a number. If the type of a variable is known only to the compiler, its \
                error is shown in the same form.",
        why: "Each argument has a type. The compiler's own message names internal traits and types; this one \
              names what was expected and what was passed.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), loss = Adam::new(1e-3))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0120"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            argument,
            given,
            expected,
            got,
            ..
        } = self;
        // Some expectations have code in them already: `none` or a strategy.
        let expected = match expected.contains('`') {
            true => expected.clone(),
            false => format!("`{expected}`"),
        };
        let written = match argument.is_empty() {
            true => format!("`{given}`"),
            false => format!("`{argument} = {given}`"),
        };
        let mut diagnostic = Self::start(format!("{written}: expected {expected}, got `{got}`"))
            .label(
                self.place.clone(),
                format!("expected {expected}, got `{got}`"),
            )
            .arguments(self.arguments.clone());
        diagnostic.fixes = self.fixes.clone();
        match argument.as_str() {
            "optimizer" => diagnostic.tensorflow(Quote::case("SC0120", "optimizer")),
            "loss" | "metrics" => diagnostic.tensorflow(Quote::case("SC0120", "fit")),
            _ => diagnostic,
        }
    }
}
