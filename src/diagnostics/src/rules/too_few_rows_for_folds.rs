//! SC0723 `too-few-rows-for-folds`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A cross-validation with more folds than a class has rows.
#[derive(Clone, Debug)]
pub struct TooFewRowsForFolds {
    /// The call: `audit`.
    pub call: String,
    /// Folds that were asked for.
    pub folds: usize,
    /// The class with the fewest rows.
    pub class: String,
    /// Its rows.
    pub rows: usize,
}

impl Rule for TooFewRowsForFolds {
    const PAGE: RulePage = RulePage {
        code: "SC0723",
        name: "too-few-rows-for-folds",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A cross-validation with fewer than two folds, or with more folds than a class has rows.",
        why: "Each fold is answered by a classifier of the other folds. A class that has fewer rows than there are folds is \
              absent from some of them, so that its answers are those of another task.",
        bad: "model.audit(&train.take(9))?",
        good: "model.audit(&train)?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let rows = text::count(self.rows, "row");
        if self.folds < 2 {
            return Self::start(format!(
                "a cross-validation with {}",
                text::count(self.folds, "fold")
            ))
            .label(Place::call(&self.call), "needs at least two folds")
            .why("each fold is answered by a classifier of the other folds")
            .fix("take 5, the default");
        }
        let diagnostic = Self::start(format!(
            "{} folds, but the class `{}` has {rows}",
            self.folds,
            text::excerpt(&self.class, 40)
        ))
        .label(
            Place::call(&self.call),
            "a class has fewer rows than there are folds",
        )
        .why(
            "each fold is answered by a classifier of the other folds, which has to know the class",
        );
        match self.rows {
            0 | 1 => diagnostic.fix(
                "leave the class out: `data.filter(|it| it.label_name.as_deref() != Some(\"…\"))`",
            ),
            rows => diagnostic.fix(format!(
                "take {rows} folds: `model.audit_with(&data, AuditOptions::new().folds({rows}))?`"
            )),
        }
    }
}
