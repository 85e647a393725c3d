//! SC1032 `condition-not-evaluated`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// The condition of a breakpoint that LLDB cannot evaluate.
#[derive(Clone, Debug)]
pub struct ConditionNotEvaluated {
    /// As typed.
    pub condition: String,
    /// The breakpoint's line in its cell, counted from 1.
    pub line: u32,
    /// What LLDB said.
    pub reason: String,
}

impl Rule for ConditionNotEvaluated {
    const PAGE: RulePage = RulePage {
        code: "SC1032",
        name: "condition-not-evaluated",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A breakpoint whose condition has a call, an assignment, a comparison of texts, or a name that does not exist \
                in the breakpoint's line.",
        why: "LLDB does not evaluate Rust. Whether the condition holds is unknown, so the cell stops each time.",
        bad: "let names = vec![\"a\", \"b\"]; // with a breakpoint whose condition is `names.contains(&\"a\")`",
        good: "let names = vec![\"a\", \"b\"]; // with a breakpoint whose condition is `names.len() > 1`",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a debugger that is turned on");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the condition `{}` of the breakpoint in line {} cannot be evaluated, and the cell stops",
            self.condition, self.line
        ))
        .evidence("reason", self.reason.clone())
        .why("LLDB evaluates the condition and does not know Rust; whether it holds is unknown")
        .fix("compare variables, fields (`point.x`), elements of arrays and lengths (`list.len()`) with numbers")
        .fix("bind what is compared to a variable in the cell, as `let is_found = names.contains(&\"a\");`, and use `is_found`")
    }
}
