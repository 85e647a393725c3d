//! SC0906 `device-not-found`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A device that this machine does not have.
#[derive(Clone, Debug)]
pub struct DeviceNotFound {
    /// The device that was asked for: `cuda:1`.
    pub device: String,
    /// The devices that are there.
    pub found: Vec<String>,
    /// Why it is not there, where that is known: `no CUDA driver (libcuda.so.1) was found`.
    pub reason: Option<String>,
    /// What was probably meant, as it is written: `cuda(0)`. Best first.
    pub instead: Vec<String>,
}

impl Rule for DeviceNotFound {
    const PAGE: RulePage = RulePage {
        code: "SC0906",
        name: "device-not-found",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A strategy or a model that names a device this machine does not have.",
        why: "There is no silent fallback to another device, because measurements would then describe the wrong device.",
        bad: "let strategy = MirroredStrategy::on([cuda(6), cuda(7)])?; // no such GPU",
        good: "let strategy = MirroredStrategy::logical(2)?;",
        tensorflow: tensorflow::page("SC0906"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("there is no device {}", self.device))
            .why(format!("this machine has {}", text::names(&self.found, 12)));
        if let Some(reason) = &self.reason {
            diagnostic = diagnostic.evidence("reason", reason.clone());
        }
        for device in self.instead.iter().take(3) {
            diagnostic = diagnostic.suggest(device);
        }
        diagnostic
            .fix("use one of the available devices")
            .fix("`MirroredStrategy::logical(2)` splits one device into two logical ones")
            .tensorflow(Quote::of("SC0906"))
    }
}
