//! SC0911 `data-unreadable`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A data file that is missing or is not text of its format.
#[derive(Clone, Debug)]
pub struct DataUnreadable {
    /// The file.
    pub path: String,
    /// The line, counted from 1, where one is at fault.
    pub line: Option<usize>,
    /// What is wrong, in words: `no such file`, `not UTF-8`.
    pub reason: String,
    /// What corrects it, where the file does not have to be corrected.
    pub fix: Option<&'static str>,
}

impl Rule for DataUnreadable {
    const PAGE: RulePage = RulePage {
        code: "SC0911",
        name: "data-unreadable",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A data file that does not exist, cannot be opened, or does not have the expected format.",
        why: "If such rows were skipped silently, nobody would know that they are missing.",
        bad: "let train = Dataset::tsv(\"trian.tsv\")?;",
        good: "let train = Dataset::tsv(\"train.tsv\")?;",
        tensorflow: tensorflow::page("SC0911"),
    };

    const GIVEN: &'static [&'static str] =
        &["std::fs::write(\"train.tsv\", \"text\\tlabel\\na fine game\\tgames\\n\")?;"];

    fn diagnostic(&self) -> Diagnostic {
        let line = self
            .line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        let fix = match (self.fix, self.line) {
            (Some(fix), _) => fix.to_owned(),
            (None, Some(line)) => format!("correct line {line} of the file"),
            (None, None) => {
                "check the path; relative paths start at the folder of the notebook".to_owned()
            }
        };
        Self::start(format!(
            "`{}`{line} cannot be read: {}",
            self.path, self.reason
        ))
        .label(Place::file(&self.path, self.line), self.reason.clone())
        .fix(fix)
    }
}
