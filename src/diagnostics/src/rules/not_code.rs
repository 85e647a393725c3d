//! SC1017 `not-code`.

use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule, RulePage, Severity, Stage};

/// A cell that is no code of any language.
#[derive(Clone, Debug)]
pub struct NotCode {
    /// What it is: `text in words`.
    pub what: String,
    /// The line that shows it.
    pub place: Place,
    /// Why it cannot run.
    pub why: String,
    /// What to do instead, best first.
    pub fixes: Vec<String>,
    /// Where its lines begin, if they can be made a comment.
    pub lines: Vec<usize>,
}

impl Rule for NotCode {
    const PAGE: RulePage = RulePage {
        code: "SC1017",
        name: "not-code",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A cell that is no code: a question or a note in words, Markdown, JSON, the output of a program.",
        why: "rustc reads words as names, and its errors about them do not help.",
        bad: "how do I save the trained model?",
        good: "model.save_pretrained(\"trained\")?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("this is {}; a cell is Rust code", self.what))
            .label(self.place.clone(), "no code")
            .why(self.why.clone());
        for fix in &self.fixes {
            diagnostic = diagnostic.fix(fix.clone());
        }
        if !self.lines.is_empty() {
            let edits = self.lines.iter().map(|at| Edit {
                place: Place::span(*at, *at),
                replacement: "// ".to_owned(),
            });
            diagnostic.fixes.push(Fix {
                kind: FixKind::Change,
                title: "or make it a comment".to_owned(),
                edits: edits.collect(),
            });
        }
        diagnostic
    }
}
