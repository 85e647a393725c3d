//! SC1002 `library-missing`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The library that cells are linked to is not built.
#[derive(Clone, Debug)]
pub struct LibraryMissing {
    /// What to run, and where: `` `cargo build` in /src/stratoscope, about 15 minutes ``.
    pub build: String,
}

impl Rule for LibraryMissing {
    const PAGE: RulePage = RulePage {
        code: "SC1002",
        name: "library-missing",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A kernel whose shared library was never built, or was moved away.",
        why: "It contains burn and stratoscope, and is built once for all notebooks.",
        bad: "// in a terminal: stratoscope doctor → library: not built",
        good: "// in a terminal: stratoscope install → the library is built once",
        tensorflow: tensorflow::page("SC1002"),
    };

    const NOT_RUN: Option<&'static str> = Some("it happens before a kernel could run them");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the library that cells are linked to is not built")
            .why("it contains burn and stratoscope, and is built once for all notebooks")
            .fix(format!("run {}", self.build))
    }
}
