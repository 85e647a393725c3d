//! SC1005 `library-build-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The library that cells are linked to could not be built.
#[derive(Clone, Debug)]
pub struct LibraryBuildFailed {
    /// What went wrong.
    pub reason: String,
    /// What to run, and where.
    pub build: String,
}

impl Rule for LibraryBuildFailed {
    const PAGE: RulePage = RulePage {
        code: "SC1005",
        name: "library-build-failed",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A build of the shared library that ended with an error.",
        why: "Without the library no cell can run.",
        bad: "// in a terminal: stratoscope install → error: no space left on device",
        good: "// in a terminal: stratoscope install → built",
        tensorflow: tensorflow::page("SC1005"),
    };

    const NOT_RUN: Option<&'static str> = Some("it happens before a kernel could run them");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the library that cells are linked to could not be built")
            .why(self.reason.clone())
            .fix(format!("run {} and read its errors", self.build))
    }
}
