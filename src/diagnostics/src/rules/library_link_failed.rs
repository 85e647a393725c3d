//! SC1007 `library-not-held`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The library that cells are linked to cannot be kept as it is while a notebook runs.
#[derive(Clone, Debug)]
pub struct LibraryNotHeld {
    /// The folder that was to hold it.
    pub folder: String,
    /// What the system said.
    pub reason: String,
}

impl Rule for LibraryNotHeld {
    const PAGE: RulePage = RulePage {
        code: "SC1007",
        name: "library-not-held",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A folder in which the kernel cannot keep its own link to the library that cells are linked to.",
        why: "A build may replace the library while a notebook runs. The notebook's variables live in the one it \
              began with, so that one must stay.",
        bad: "1 + 1 // target/ belongs to somebody else",
        good: "1 + 1 // target/ can be written to",
        tensorflow: tensorflow::page("SC1007"),
    };

    const NOT_RUN: Option<&'static str> = Some("it takes a folder that cannot be written to");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the library that cells are linked to cannot be held on to")
            .why(self.reason.clone())
            .fix(format!("see that {} can be written to", self.folder))
    }
}
