//! SC1011 `variable-not-kept`.

use crate::tensorflow;
use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A variable whose type cannot live between cells.
#[derive(Clone, Debug)]
pub struct VariableNotKept {
    /// The variable.
    pub name: String,
    /// Where it is bound, if that is known.
    pub place: Option<Place>,
    /// Why it cannot be kept, to follow its name: `borrows from another variable`.
    pub problem: String,
    /// What to type instead, best first.
    pub fixes: Vec<String>,
    /// The best one where the text of the cell decides it, with its edits.
    pub first: Option<Fix>,
}

impl Rule for VariableNotKept {
    const PAGE: RulePage = RulePage {
        code: "SC1011",
        name: "variable-not-kept",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A variable whose type cannot be named in the next cell: a closure, a borrow, or a type that \
                could not be determined.",
        why: "Each cell is compiled separately. A variable is moved to the next cell, and that cell must name its \
              type. A borrow would point to the old place.",
        bad: "let double = |x: f32| 2.0 * x;",
        good: "fn double(x: f32) -> f32 { 2.0 * x }",
        tensorflow: tensorflow::page("SC1011"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("`{}` {}", self.name, self.problem))
            .why("variables move from cell to cell, and each cell is compiled by itself: the value must stand alone, and its type must have a name");
        if let Some(place) = &self.place {
            diagnostic = diagnostic.label(place.clone(), "this variable");
        }
        diagnostic.fixes.extend(self.first.clone());
        self.fixes
            .iter()
            .fold(diagnostic, |diagnostic, fix| diagnostic.fix(fix.clone()))
    }
}
