//! What happens in a run and somebody may want to hear of at once; `callbacks/alert.rs` sends it.

use std::fmt;

use serde::Serialize;
use stratoscope_diagnostics::Diagnostic;

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A warning of the run, such as a loss that grows.
    Warning,
    /// A condition of `break_when` has stopped the run.
    Breakpoint,
    /// An error has ended the call.
    Failed,
    /// The run is over.
    Finished,
}

/// Something that happens in a run and that somebody wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// What it is about.
    pub kind: AlertKind,
    /// The number of the run in this process.
    pub run: u64,
    /// Optimizer steps that the run has made.
    pub step: u64,
    /// The code of a warning or an error, such as `SC0506`.
    pub code: Option<String>,
    /// One line.
    pub message: String,
}

impl fmt::Display for Alert {
    /// `run 3, step 40: warning SC0506: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            AlertKind::Warning => "warning",
            AlertKind::Breakpoint => "stopped by a condition",
            AlertKind::Failed => "failed",
            AlertKind::Finished => "finished",
        };
        let code = self.code.as_ref().map(|it| format!(" {it}"));
        let code = code.unwrap_or_default();
        write!(
            f,
            "run {}, step {}: {kind}{code}: {}",
            self.run, self.step, self.message
        )
    }
}

impl Alert {
    /// Of a warning or an error.
    pub fn of(kind: AlertKind, run: u64, step: u64, found: &Diagnostic) -> Self {
        Self {
            kind,
            run,
            step,
            code: Some(found.code.clone()),
            message: found.message.clone(),
        }
    }
}
