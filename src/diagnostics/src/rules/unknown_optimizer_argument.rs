//! SC0504 `unknown-optimizer-argument`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A misspelt or misplaced argument of an optimizer.
#[derive(Clone, Debug)]
pub struct UnknownOptimizerArgument {
    /// The optimizer's type: `AdamW`.
    pub optimizer: String,
    /// The name as typed.
    pub given: String,
    /// The place of the name.
    pub place: Place,
    /// What stands there instead, best first, each as a title and an edit.
    pub fixes: Vec<Fix>,
    /// What the optimizer accepts.
    pub known: Vec<String>,
}

impl Rule for UnknownOptimizerArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0504",
        name: "unknown-optimizer-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A misspelled argument of an optimizer, or one in Python syntax: `AdamW::new(lr = 5e-5)`.",
        why: "The learning rate and the decay decide the result of a run; an unknown argument must not be \
              ignored.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5).weight_decy(0.01))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01))?;",
        tensorflow: tensorflow::page("SC0504"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("unknown optimizer argument `{}`", self.given))
            .label(
                self.place.clone(),
                format!("not an argument of `{}`", self.optimizer),
            )
            .why(format!(
                "the rate is the argument of `{}::new`, all other settings are methods: {}",
                self.optimizer,
                text::names(&self.known, 16)
            ));
        diagnostic = diagnostic
            .tensorflow(Quote::argument(&self.optimizer, &self.given))
            .with_answers(|profile| tensorflow::answer(&self.optimizer, &self.given, profile));
        diagnostic.fixes = self.fixes.clone();
        diagnostic
    }
}
