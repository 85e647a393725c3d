//! SC0529 `replay-differs`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A rewound run whose replayed steps have other losses than the first time.
#[derive(Clone, Debug)]
pub struct ReplayDiffers {
    /// The first step with another loss.
    pub step: u64,
    /// Its loss the first time.
    pub before: f64,
    /// Its loss when it was replayed.
    pub replayed: f64,
    /// The devices, in words.
    pub devices: String,
}

impl Rule for ReplayDiffers {
    const PAGE: RulePage = RulePage {
        code: "SC0529",
        name: "replay-differs",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "`run.rewind(step)?` replays steps from a snapshot, and a step has another loss than the first time.",
        why: "On the CPU a replay gives the same bits. A GPU may add numbers in another order each time, so the \
              weights of the run are almost, but not exactly, the same.",
        bad: "run.rewind(40)?; // on a GPU",
        good: "run.rewind(40)?; // on the CPU, or to a step that has a snapshot",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a GPU");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the replay is not exact: step {} had the loss {:.6} and has {:.6} now",
            self.step, self.before, self.replayed
        ))
        .label(
            Place::call("rewind"),
            "the run is at this step, with slightly different weights",
        )
        .why("sums on this device have no fixed order; on the CPU the order is fixed")
        .evidence(
            "difference",
            format!("{:.2e}", (self.replayed - self.before).abs()),
        )
        .evidence("devices", self.devices.clone())
        .fix("smaller distances between snapshots replay fewer steps")
    }
}
