//! SC1001 `rustc-missing`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// No Rust compiler where cells are to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct RustcMissing;

impl Rule for RustcMissing {
    const PAGE: RulePage = RulePage {
        code: "SC1001",
        name: "rustc-missing",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A machine without a Rust compiler in rustup's folder or on the path.",
        why: "A cell is compiled before it runs.",
        bad: "// in a terminal: rustc --version → command not found",
        good: "// in a terminal: rustc --version → rustc 1.95.0",
        tensorflow: tensorflow::page("SC1001"),
    };

    const NOT_RUN: Option<&'static str> = Some("it happens before a kernel could run them");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("`rustc` was not found, and cells need it")
            .why("a cell is compiled before it runs")
            .fix("install Rust from https://rustup.rs, then `rustup component add rust-src`")
    }
}
