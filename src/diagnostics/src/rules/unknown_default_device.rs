//! SC0712 `unknown-default-device`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A default device that the machine does not have.
#[derive(Clone, Debug)]
pub struct UnknownDefaultDevice {
    /// What named it: `STRATOSCOPE_DEVICE` or `%device`.
    pub by: String,
    /// The name as it was given.
    pub given: String,
    /// The valid names: the devices of the machine, and `auto`.
    pub known: Vec<String>,
    /// What was probably meant.
    pub meant: Option<String>,
    /// Why it is not there, where that is known.
    pub reason: Option<String>,
}

impl Rule for UnknownDefaultDevice {
    const PAGE: RulePage = RulePage {
        code: "SC0712",
        name: "unknown-default-device",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`%device` or the variable `STRATOSCOPE_DEVICE` with a device that this machine does not have, or \
                with a name that is not a device.",
        why: "The default device is where models outside of a scope compute. A wrong name does not select another \
              device, because a run would then be measured on a device that you did not name.",
        bad: "%device wgpu:9",
        good: "%device cpu",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self { by, given, .. } = self;
        let mut diagnostic =
            Self::start(format!("`{by}` names `{given}`, which is no device here"))
                .why(format!("valid here: {}", text::names(&self.known, 12)));
        if let Some(reason) = &self.reason {
            diagnostic = diagnostic.evidence("reason", reason.clone());
        }
        if let Some(meant) = &self.meant {
            let written = match by.starts_with('%') {
                true => format!("{by} {meant}"),
                false => format!("{by}={meant}"),
            };
            diagnostic = diagnostic.suggest(written);
        }
        diagnostic
            .fix("`%device auto` takes the best device that works; `%device` lists all")
            .fix("for every notebook: `stratoscope install --env STRATOSCOPE_DEVICE=cpu`, or without the option")
    }
}
