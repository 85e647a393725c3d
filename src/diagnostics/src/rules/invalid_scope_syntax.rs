//! SC0128 `scope-not-as-written`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// `scope!` in another form than `scope!(strategy, { … })`.
#[derive(Clone, Debug)]
pub struct ScopeNotAsWritten {
    /// Its name.
    pub place: Place,
    /// How it is written, shortened.
    pub written: String,
    /// The way there.
    pub edits: Vec<Edit>,
}

impl Rule for ScopeNotAsWritten {
    const PAGE: RulePage = RulePage {
        code: "SC0128",
        name: "scope-not-as-written",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A `scope!` whose block stands behind the brackets, without a comma before it, without its \
                strategy, or without the `!`.",
        why: "The strategy and the block are the two operands of the macro; what stands behind it would run \
              outside of the scope.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\n\
              scope!(strategy) {\n    let inside = 1;\n}",
        good: "let strategy = MirroredStrategy::logical(2)?;\n\
               scope!(strategy, {\n    let inside = 1;\n});",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!("`scope!` is written `{}`", self.written))
            .label(
                self.place.clone(),
                "strategy and block belong between its brackets",
            )
            .why(
                "the block is the second operand of `scope!`, in place of `with strategy.scope():`",
            );
        told.fixes.push(Fix {
            title: format!("write `{}`", self.written),
            edits: self.edits.clone(),
        });
        told
    }
}
