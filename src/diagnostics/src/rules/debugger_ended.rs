//! SC1031 `debugger-ended`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The process of LLDB's adapter has ended while it was attached.
#[derive(Clone, Debug)]
pub struct DebuggerEnded {
    /// Why the kernel has ended it: it did not answer in time. `None`: it has ended by itself or was killed.
    pub given_up: Option<String>,
}

impl Rule for DebuggerEnded {
    const PAGE: RulePage = RulePage {
        code: "SC1031",
        name: "debugger-ended",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "The debugger (`lldb-dap`) has crashed, was killed, or did not answer a request in time and was ended by \
                the kernel, while it was attached to the process that runs the cells.",
        why: "A stopped cell goes on, because a cell that waits for a debugger that does not answer would never end. \
              Its breakpoints do not stop it any more.",
        bad: "let total: i32 = (1..4).sum(); // with a breakpoint; `lldb-dap` is killed while it is stopped there",
        good: "let total: i32 = (1..4).sum(); // run again",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a debugger that crashes");

    fn diagnostic(&self) -> Diagnostic {
        let reason = self.given_up.as_deref();
        Self::start("the debugger (lldb-dap) has ended, and the cell goes on without breakpoints")
            .evidence("reason", reason.unwrap_or("its process has ended").to_owned())
            .why("a cell that waits for a debugger that does not answer would never end; all variables are kept")
            .fix("run the cell again: breakpoints stop from the next cell on")
            .fix("if it ends repeatedly, install a newer LLDB, and set `STRATOSCOPE_LLDB_DAP` to the path of its `lldb-dap`")
    }
}
