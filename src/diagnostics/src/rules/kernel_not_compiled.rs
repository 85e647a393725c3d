//! SC0710 `kernel-not-compiled`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A GPU whose driver does not compile an operation.
#[derive(Clone, Debug)]
pub struct KernelNotCompiled {
    /// The device: `wgpu:0`.
    pub device: String,
    /// What its compiler said, in a line.
    pub reason: String,
}

impl Rule for KernelNotCompiled {
    const PAGE: RulePage = RulePage {
        code: "SC0710",
        name: "kernel-not-compiled",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "An operation that the driver of a GPU refuses to compile: a feature that it does not have, a kernel \
                that needs more than it allows, a fault of its compiler.",
        why: "The operation was not computed, and no other operation replaced it. The kernel and all variables are \
              not affected.",
        bad: "let strategy = OneDeviceStrategy::new(wgpu(0))?; // its driver refuses an operation",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;",
        tensorflow: tensorflow::page("SC0710"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a driver that refuses an operation");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "{} cannot compile an operation: {}",
            self.device, self.reason
        ))
        .why("the operation was not computed; the kernel and all variables are still there")
        .fix("under a 16-bit policy, try float32: not every adapter has 16-bit kernels")
        .fix("update the driver; `stratoscope doctor` in a terminal shows its version")
        .fix("use the CPU: `OneDeviceStrategy::new(cpu(0))`")
    }
}
