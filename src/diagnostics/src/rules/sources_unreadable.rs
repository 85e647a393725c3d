//! SC1004 `sources-unreadable`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The names and types of the library cannot be read from its sources.
#[derive(Clone, Debug)]
pub struct SourcesUnreadable {
    /// The folder of the sources.
    pub sources: String,
    /// What went wrong.
    pub reason: String,
    /// The sources of the standard library are missing.
    pub lacks_standard_library: bool,
}

impl Rule for SourcesUnreadable {
    const PAGE: RulePage = RulePage {
        code: "SC1004",
        name: "sources-unreadable",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A checkout that was moved or changed, or a Rust installation without the component `rust-src`. The \
                kernel then cannot read names and types.",
        why: "The kernel needs them to name the types of variables that are kept between cells.",
        bad: "// in a terminal: mv stratoscope elsewhere, after it was installed",
        good: "// in a terminal: stratoscope install, from the new place",
        tensorflow: tensorflow::page("SC1004"),
    };

    const NOT_RUN: Option<&'static str> = Some("it happens before a kernel could run them");

    fn diagnostic(&self) -> Diagnostic {
        if self.lacks_standard_library {
            return Self::start("the sources of Rust's standard library are missing")
                .why("the kernel reads the types of a notebook's variables from them")
                .fix("`rustup component add rust-src`, or the package of that name of your distribution");
        }
        Self::start("the names and types of the library cannot be read from its sources")
            .why(self.reason.clone())
            .fix(format!(
                "make sure that `cargo fetch --locked` works in {}",
                self.sources
            ))
    }
}
