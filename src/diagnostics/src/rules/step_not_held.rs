//! SC0531 `step-not-held`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Steps that cannot be replayed: they were not made, or no earlier state of the run is stored.
#[derive(Clone, Debug)]
pub struct StepNotHeld {
    /// The first step that is asked for, counted from 1.
    pub first: u64,
    /// The last step that is asked for.
    pub last: u64,
    /// The first and the last step that can be replayed; the last is the one that comes next.
    pub replayable: (u64, u64),
    /// Steps that the run has made.
    pub made: u64,
}

impl Rule for StepNotHeld {
    const PAGE: RulePage = RulePage {
        code: "SC0531",
        name: "step-not-held",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.hindsight(steps, …)` asks for steps that were not made, or that have neither a snapshot nor a checkpoint before them.",
        why: "A step is replayed from an earlier state of the run. `run.keep_snapshots(every, megabytes)` limits the \
              snapshots in memory, `keep_last` the checkpoints on disk.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(64), batch_size = 16)?;\n\
              run.step(2)?;\n\
              run.hindsight(40..50, |tap| tap.norm)?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(64), batch_size = 16)?;\n\
               run.step(2)?;\n\
               run.hindsight(1..3, |tap| tap.norm)?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let asked = match self.first == self.last {
            true => format!("step {}", self.first),
            false => format!("steps {} to {}", self.first, self.last),
        };
        let (first, last) = self.replayable;
        let can = match first == last {
            true => format!("only step {last} can, the one that comes next"),
            false => format!("steps {first} to {last} can"),
        };
        Self::start(format!("{asked} cannot be replayed: {can}"))
            .label(Place::call("hindsight"), "these steps are asked for")
            .why("a step is replayed from a snapshot or a checkpoint of the run before it")
            .evidence("steps made", self.made.to_string())
            .fix(format!(
                "ask for steps that can be replayed: `{first}..{}`",
                last + 1
            ))
            .fix("before the next run: `run.keep_snapshots(10, 4000)?;` stores more")
    }
}
