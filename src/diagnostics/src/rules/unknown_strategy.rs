//! SC0129 `unknown-strategy`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A scope of a strategy that the notebook does not have.
#[derive(Clone, Debug)]
pub struct UnknownStrategy {
    /// The name as typed.
    pub given: String,
    /// Its place.
    pub place: Place,
    /// The variables that hold a strategy, the nearest name first.
    pub known: Vec<String>,
}

impl Rule for UnknownStrategy {
    const PAGE: RulePage = RulePage {
        code: "SC0129",
        name: "unknown-strategy",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A `scope!` or `%%scope` with a variable that does not exist.",
        why: "Only variables that hold a strategy are suggested, not every similar name.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\nscope!(stategy, {\n    let inside = 1;\n});",
        good: "let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, {\n    let inside = 1;\n});",
        tensorflow: tensorflow::page("SC0129"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!("there is no strategy `{}`", self.given))
            .label(self.place.clone(), "not a variable of this notebook");
        let diagnostic = match self.known.as_slice() {
            [] => diagnostic
                .why("no variable of this notebook holds a strategy")
                .fix(format!(
                    "make one: `let {} = MirroredStrategy::logical(2)?;`",
                    self.given
                )),
            known => diagnostic.why(format!(
                "variables that hold a strategy: {}",
                text::names(known, 8)
            )),
        };
        self.known
            .iter()
            .take(3)
            .fold(diagnostic, |diagnostic, name| {
                diagnostic.suggest_edit(name, self.place.clone(), name.clone())
            })
    }
}
