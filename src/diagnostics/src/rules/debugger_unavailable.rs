//! SC1030 `debugger-unavailable`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// Why LLDB is not attached to the process that runs the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebuggerProblem {
    /// Its adapter is not on the path, or a setting names another file.
    NotFound,
    /// The system does not let a process trace another one.
    NotPermitted,
    /// It does not start, or does not answer.
    Failed,
}

/// A cell that has breakpoints and runs without LLDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebuggerUnavailable {
    /// What is wrong.
    pub problem: DebuggerProblem,
    /// What LLDB or the system said.
    pub reason: String,
}

impl Rule for DebuggerUnavailable {
    const PAGE: RulePage = RulePage {
        code: "SC1030",
        name: "debugger-unavailable",
        severity: Severity::Warning,
        stage: Stage::Start,
        finds: "Breakpoints in cells, or a filter for panics and errors, where LLDB is not installed or cannot be \
                attached to the process that runs the cells.",
        why: "LLDB stops cells. Without it, the cell runs to its end as if it had no breakpoints.",
        bad: "let total: i32 = (1..4).sum(); // with a breakpoint, where LLDB is not installed",
        good: "let total: i32 = (1..4).sum(); // after `apt install lldb-19 python3-lldb-19` on Debian",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a debugger that is turned on");

    fn diagnostic(&self) -> Diagnostic {
        let what = match self.problem {
            DebuggerProblem::NotFound => "LLDB was not found",
            DebuggerProblem::NotPermitted => "LLDB may not be attached to the process of the cells",
            DebuggerProblem::Failed => "LLDB could not be attached to the process of the cells",
        };
        let found = Self::start(format!("breakpoints do not stop this cell: {what}"))
            .evidence("reason", self.reason.clone())
            .why(
                "LLDB stops cells; the variables of the debugger's panel and the conditions of training runs \
                 (`run.break_when(…)`) work without it",
            );
        match self.problem {
            DebuggerProblem::NotFound => found
                .fix("on Debian, `apt install lldb-19 python3-lldb-19`; then run the cell again")
                .fix(
                    "elsewhere, install LLDB 18 or later; if its `lldb-dap` is not in `PATH`, set `STRATOSCOPE_LLDB_DAP` \
                     to its path before the kernel starts",
                ),
            DebuggerProblem::NotPermitted => found
                .fix("in a container, start it with `--cap-add=SYS_PTRACE`")
                .fix("on a machine that forbids it, `sysctl kernel.yama.ptrace_scope=1` as root allows it for children"),
            DebuggerProblem::Failed => found
                .fix("turn the debugger off and on again, which attaches LLDB again")
                .fix("`stratoscope doctor` in a terminal names the `lldb-dap` that is used; `STRATOSCOPE_LLDB_DAP` selects another one"),
        }
    }
}
