//! SC1006 `cells-cannot-run`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Something that the execution of cells needs could not be set up.
#[derive(Clone, Debug)]
pub struct CellsCannotRun {
    /// What it is: `the folder for compiled cells`.
    pub what: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for CellsCannotRun {
    const PAGE: RulePage = RulePage {
        code: "SC1006",
        name: "cells-cannot-run",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A folder, socket or process that the execution of cells needs and that cannot be set up.",
        why: "The kernel answers, but no cell can run.",
        bad: "// neither TMPDIR nor /tmp nor the cache in the home folder can be written to",
        good: "// one of them can be written to",
        tensorflow: tensorflow::page("SC1006"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("it takes a machine without a folder that can be written to");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "cells cannot be executed: {} could not be set up",
            self.what
        ))
        .why(self.reason.clone())
        .fix("run `stratoscope doctor`; it says what is missing")
    }
}
