//! SC0709 `device-lost`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A GPU that went away: its driver was reset, it was taken out, or a kernel ran too long.
#[derive(Clone, Debug)]
pub struct DeviceLost {
    /// The device: `wgpu:0`.
    pub device: String,
    /// What its driver said, in a line.
    pub reason: String,
}

impl Rule for DeviceLost {
    const PAGE: RulePage = RulePage {
        code: "SC0709",
        name: "device-lost",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "A GPU that its driver has lost: a reset, a timeout of a kernel, a device that was taken out or put to \
                sleep.",
        why: "What was in its memory is gone: models on it cannot be read any more. The kernel, all other variables and models on other devices are still there. The process cannot use the device again, so the kernel must be restarted for it; a run with `checkpoint = …, every = …` goes on from its folder.",
        bad: "let strategy = OneDeviceStrategy::new(wgpu(0))?; // its driver is reset while it trains",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;",
        tensorflow: tensorflow::page("SC0709"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a device that is lost");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("{} was lost: {}", self.device, self.reason))
            .why("what was in its memory is gone; the kernel and everything on other devices is still there")
            .fix("restart the kernel to use the device again, and go on from a checkpoint: `resume_from = \"…\"`")
            .fix("use the CPU meanwhile: `OneDeviceStrategy::new(cpu(0))`")
    }
}
