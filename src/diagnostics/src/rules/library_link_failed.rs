//! SC1007 `library-link-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The library that cells are linked to cannot be kept as it is while a notebook runs.
#[derive(Clone, Debug)]
pub struct LibraryLinkFailed {
    /// The folder that was to hold it.
    pub folder: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for LibraryLinkFailed {
    const PAGE: RulePage = RulePage {
        code: "SC1007",
        name: "library-link-failed",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "The kernel cannot create its own link to the library that cells are linked to.",
        why: "A build may replace the library while a notebook runs. The notebook's variables belong to the \
              library that it started with, so that file must be kept.",
        bad: "1 + 1 // target/ belongs to somebody else",
        good: "1 + 1 // target/ can be written to",
        tensorflow: tensorflow::page("SC1007"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a folder that is not writable");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the kernel cannot keep the library that cells are linked to")
            .why(self.reason.clone())
            .fix(format!("make sure that {} is writable", self.folder))
    }
}
