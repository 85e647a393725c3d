//! SC1011 `variable-not-kept`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

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
}

impl Rule for VariableNotKept {
    const PAGE: RulePage = RulePage {
        code: "SC1011",
        name: "variable-not-kept",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A variable of a cell whose type the next cell could not name: a closure, a borrow, or a type \
                that could not be worked out.",
        why: "A cell is a program of its own; what it binds is handed to the next one by its type.",
        bad: "let double = |x: f32| 2.0 * x;",
        good: "fn double(x: f32) -> f32 { 2.0 * x }",
        tensorflow: tensorflow::page("SC1011"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!("`{}` {}", self.name, self.problem))
            .why("the next cell must name the type of what this one binds");
        if let Some(place) = &self.place {
            told = told.label(place.clone(), "this variable");
        }
        self.fixes
            .iter()
            .fold(told, |told, fix| told.fix(fix.clone()))
    }
}
