//! SC0610 `update-undone`.

use stratoscope_render::text;

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A run that was rewound because a device had no memory for an update.
#[derive(Clone, Debug)]
pub struct UpdateUndone {
    /// The method that was called: `step`.
    pub call: String,
    /// Optimizer steps that were made before the update.
    pub made: u64,
    /// Optimizer steps that the run has made now: the same, unless a step could not be made again.
    pub step: u64,
    /// The step of the snapshot that was restored.
    pub snapshot: u64,
}

impl Rule for UpdateUndone {
    const PAGE: RulePage = RulePage {
        code: "SC0610",
        name: "update-undone",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "An update of the weights that does not fit into the memory of a device (SC0607), in a run of \
                `start!`. The newest snapshot is restored, and the steps since then are repeated.",
        why: "Some of the weights may have changed when the device failed. Smaller batches do not help: an update \
              needs memory for weights, gradients and moments, whatever the batch size. So the run returns to the \
              state before the step, and the error is reported. `fit!` takes no snapshots.",
        bad: "let run = start!(model, train)?;\n\
              run.finish()?; // the memory of the GPU is full when the weights are updated",
        good: "drop(other); // what else takes memory there\n\
               run.finish()?; // the run goes on",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a GPU whose memory is full");

    const ONCE: bool = false;

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            ref call,
            made,
            step,
            snapshot,
        } = *self;
        let again = usize::try_from(step - snapshot).unwrap_or(usize::MAX);
        let again = match again {
            0 => String::new(),
            more => format!(" and {} replayed", text::count(more, "step")),
        };
        Self::start(format!(
            "the update of step {} failed; the run is back at step {step} (snapshot of step {snapshot}{again})",
            made + 1
        ))
        .label(Place::call(call.as_str()), "all weights are from one step")
        .why("the failed update may have changed some of the weights")
        .fix("free memory on the device, `drop(name);` for models that are no longer needed, and continue: \
              `run.finish()?`")
    }
}
