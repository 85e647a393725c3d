//! SC0906 `device-not-there`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A device that this machine does not have.
#[derive(Clone, Debug)]
pub struct DeviceNotThere {
    /// The device that was asked for: `cuda:1`.
    pub device: String,
    /// The devices that are there.
    pub found: Vec<String>,
    /// Why it is not there, where that is known: `no CUDA driver (libcuda.so.1) was found`.
    pub reason: Option<String>,
    /// What was probably meant, as it is written: `cuda(0)`. Best first.
    pub instead: Vec<String>,
}

impl Rule for DeviceNotThere {
    const PAGE: RulePage = RulePage {
        code: "SC0906",
        name: "device-not-there",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A strategy or a model that names a device this machine does not have.",
        why: "Nothing falls back to another device on its own: the reader would measure the wrong one.",
        bad: "let strategy = MirroredStrategy::on([cuda(6), cuda(7)])?; // no such GPU",
        good: "let strategy = MirroredStrategy::logical(2)?;",
        tensorflow: tensorflow::page("SC0906"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!("there is no device {}", self.device))
            .why(format!("this machine has {}", text::names(&self.found, 12)));
        if let Some(reason) = &self.reason {
            told = told.evidence("reason", reason.clone());
        }
        for device in self.instead.iter().take(3) {
            told = told.fix(format!("did you mean `{device}`?"));
        }
        told.fix("take one of the devices that are there")
            .fix("`MirroredStrategy::logical(2)` splits one device into two logical ones")
            .tensorflow(Quote::of("SC0906"))
    }
}
