//! SC0740 `nothing-to-profile`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A profile without a step: none is asked for, none is left, or none was made.
#[derive(Clone, Debug)]
pub struct NothingToProfile {
    /// Why there is no step.
    pub reason: String,
    /// Steps that the run has made.
    pub made: u64,
}

impl Rule for NothingToProfile {
    const PAGE: RulePage = RulePage {
        code: "SC0740",
        name: "nothing-to-profile",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.profile(steps)` for no steps, for a run that has made all its steps, or where a breakpoint or an interrupt comes \
                before the first step is made.",
        why: "A profile measures steps of the run while it makes them. Without a step there is nothing to measure.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(64), batch_size = 16)?;\n\
              run.profile(0)?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(64), batch_size = 16)?;\n\
               run.profile(3)?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("there is no step to profile: {}", self.reason))
            .label(Place::call("profile"), "nothing is measured")
            .why("a profile measures optimizer steps while the run makes them")
            .evidence("steps made", self.made.to_string())
            .fix("profile steps that the run still makes, early in it: `run.profile(10)?`")
            .fix("to profile a run that is over, turn it back first: `run.rewind(0)?;`")
    }
}
