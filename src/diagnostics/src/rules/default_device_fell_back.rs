//! SC0713 `default-device-fell-back`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A device that should have been the default one and did not start.
#[derive(Clone, Debug)]
pub struct DefaultDeviceFellBack {
    /// The devices that did not start, best first, each with the reason.
    pub failed: Vec<(String, String)>,
    /// The device that is used instead: `cpu:0`.
    pub used: String,
}

impl Rule for DefaultDeviceFellBack {
    const PAGE: RulePage = RulePage {
        code: "SC0713",
        name: "default-device-fell-back",
        severity: Severity::Note,
        stage: Stage::Load,
        finds: "A default device that does not start: the driver has no working GPU, NVRTC is not installed, or \
                another process uses the device.",
        why: "The default is the best device that works. If the best device does not start, the next one is used. \
              The note names it, because a run on the CPU may take many times as long.",
        bad: "let model = Sequential([Dense(4).input_shape(5)])?; // the machine's GPU does not start",
        good: "%device cpu",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> = Some("it needs a driver that fails to start");

    fn diagnostic(&self) -> Diagnostic {
        let names: Vec<&str> = self.failed.iter().map(|(name, _)| name.as_str()).collect();
        let mut diagnostic = Self::start(format!(
            "the default device is {}: {} did not start",
            self.used,
            names.join(", ")
        ));
        for (name, reason) in &self.failed {
            diagnostic = diagnostic.evidence(name, reason.clone());
        }
        diagnostic
            .why(format!(
                "models outside of a scope, and strategies that name no device, compute on {}",
                self.used
            ))
            .fix("`stratoscope doctor` in a terminal lists drivers, devices and what each is missing")
            .fix(format!(
                "`%device {}`, or `STRATOSCOPE_DEVICE={}` before the kernel starts, selects it without this note",
                self.used, self.used
            ))
    }
}
