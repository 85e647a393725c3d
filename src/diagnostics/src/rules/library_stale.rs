//! SC1003 `library-stale`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The library that cells are linked to was built by another compiler.
#[derive(Clone, Debug)]
pub struct LibraryStale {
    /// The library's file.
    pub library: String,
    /// The compiler that built it.
    pub built: String,
    /// The compiler that is there now.
    pub now: String,
    /// What to run, and where.
    pub build: String,
}

impl Rule for LibraryStale {
    const PAGE: RulePage = RulePage {
        code: "SC1003",
        name: "library-stale",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A shared library that another version of rustc built, as after `rustup update`.",
        why: "Only the compiler that built a Rust library can link to it.",
        bad: "// in a terminal: rustup update → the library is older than rustc",
        good: "// in a terminal: stratoscope install → built again",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> =
        Some("it happens before there is a kernel that could run them");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the library that cells are linked to was built by `{}`, but this is `{}`",
            self.built, self.now
        ))
        .why("only the compiler that built a Rust library can link to it")
        .evidence("library", self.library.clone())
        .fix(format!("run {}", self.build))
    }
}
