//! SC0907 `backend-failed`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A compute backend that did not start, or failed while it worked.
#[derive(Clone, Debug)]
pub struct BackendFailed {
    /// The device: `wgpu:0`.
    pub device: String,
    /// What the backend said, in a line.
    pub reason: String,
}

impl Rule for BackendFailed {
    const PAGE: RulePage = RulePage {
        code: "SC0907",
        name: "backend-failed",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A GPU backend that does not start, or fails while it computes: a driver without the needed features, a device \
                in use by another process, a compiler library that is missing.",
        why: "Existing tensors stay valid; nothing is moved to another device.",
        bad: "let strategy = OneDeviceStrategy::new(wgpu(0))?; // the driver refuses",
        good: "let strategy = OneDeviceStrategy::new(cpu(0))?;",
        tensorflow: tensorflow::page("SC0907"),
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a driver that fails to start");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the backend of {} failed: {}",
            self.device, self.reason
        ))
        .why("variables on other devices are untouched")
        .fix("`stratoscope doctor` in a terminal lists drivers, devices and what each is missing")
        .fix("use the CPU: `OneDeviceStrategy::new(cpu(0))`")
    }
}
