//! SC0128 `invalid-scope-syntax`.

use crate::{Diagnostic, Edit, Fix, Place, Rule, RulePage, Severity, Stage};

/// `scope!` in another form than `scope!(strategy, { … })`.
#[derive(Clone, Debug)]
pub struct InvalidScopeSyntax {
    /// Its name.
    pub place: Place,
    /// How it is written, shortened.
    pub written: String,
    /// The way there.
    pub edits: Vec<Edit>,
}

impl Rule for InvalidScopeSyntax {
    const PAGE: RulePage = RulePage {
        code: "SC0128",
        name: "invalid-scope-syntax",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A `scope!` whose block is outside the parentheses, that lacks its comma or its strategy, or that \
                lacks the `!`.",
        why: "The strategy and the block are the two operands of the macro; code after the parentheses would run \
              outside of the scope.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\n\
              scope!(strategy) {\n    let inside = 1;\n}",
        good: "let strategy = MirroredStrategy::logical(2)?;\n\
               scope!(strategy, {\n    let inside = 1;\n});",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("`scope!` is written `{}`", self.written))
            .label(
                self.place.clone(),
                "the strategy and the block go inside the parentheses",
            )
            .why(
                "the block is the second operand of `scope!`, in place of `with strategy.scope():`",
            );
        diagnostic.fixes.push(Fix {
            kind: crate::FixKind::Change,
            title: format!("write `{}`", self.written),
            edits: self.edits.clone(),
        });
        diagnostic
    }
}
