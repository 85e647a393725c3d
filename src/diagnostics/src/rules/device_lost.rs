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
        finds: "A GPU that its driver has lost: a reset, a timeout of a kernel, a device that was removed or suspended.",
        why: "The contents of its memory are lost, so models on it can no longer be read. The kernel, all other \
              variables and models on other devices are not affected. The process cannot use the device again; \
              restart the kernel to use it. A run with `checkpoint = …, every = …` continues from its folder.",
        bad: "let strategy = OneDeviceStrategy::new(wgpu(0))?; // its driver is reset while it trains",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;",
        tensorflow: tensorflow::page("SC0709"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a device that is lost");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!("{} was lost: {}", self.device, self.reason))
            .why("the contents of its memory are lost; the kernel and everything on other devices are not affected")
            .fix("restart the kernel to use the device again, and continue from a checkpoint: `resume_from = \"…\"`")
            .fix("use the CPU meanwhile: `OneDeviceStrategy::new(cpu(0))`")
    }
}
