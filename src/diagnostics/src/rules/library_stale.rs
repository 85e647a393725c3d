//! SC1003 `library-stale`.

use crate::tensorflow;
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
        finds: "A shared library built by another version of rustc, for example after `rustup update`.",
        why: "Only the compiler that built a Rust library can link to it.",
        bad: "// in a terminal: rustup update → the library is older than rustc",
        good: "// in a terminal: stratoscope install → built again",
        tensorflow: tensorflow::page("SC1003"),
    };

    const NOT_RUN: Option<&'static str> = Some("it happens before a kernel could run them");

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start(format!(
            "the library that cells are linked to was built by `{}`, but there is only `{}`",
            self.built, self.now
        ))
        .why("only the compiler that built a Rust library can link to it")
        .evidence("library", self.library.clone())
        .fix(format!("run {}", self.build));
        match self.release() {
            Some(release) => diagnostic.fix(format!(
                "or, faster, install that compiler: `rustup toolchain install {release} -c rust-src`"
            )),
            None => diagnostic,
        }
    }
}

impl LibraryStale {
    /// `1.95.0`, where it is one that rustup has: not a nightly one or one of somebody's own.
    fn release(&self) -> Option<&str> {
        let version = self.built.strip_prefix("rustc ")?;
        let version = version.split_whitespace().next()?;
        let is_release = version.bytes().all(|it| it.is_ascii_digit() || it == b'.');
        is_release.then_some(version)
    }
}
