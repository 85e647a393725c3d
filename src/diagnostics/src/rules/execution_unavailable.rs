//! SC1006 `execution-unavailable`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Something that the execution of cells needs could not be set up.
#[derive(Clone, Debug)]
pub struct ExecutionUnavailable {
    /// What it is: `the folder for compiled cells`.
    pub what: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for ExecutionUnavailable {
    const PAGE: RulePage = RulePage {
        code: "SC1006",
        name: "execution-unavailable",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "The kernel cannot set up a folder, a socket or a process that it needs to execute cells.",
        why: "The kernel responds, but no cell can run.",
        bad: "// neither TMPDIR nor /tmp nor the cache in the home folder can be written to",
        good: "// one of them can be written to",
        tensorflow: tensorflow::page("SC1006"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a machine without a writable folder");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "cells cannot be executed: {} could not be set up",
            self.what
        ))
        .why(self.reason.clone())
        .fix("run `stratoscope doctor`, which reports what is missing")
    }
}
