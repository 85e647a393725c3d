//! SC0604 `late-device-configuration`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// TensorFlow's rule that devices must be configured before anything else, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct LateDeviceConfiguration;

impl Rule for LateDeviceConfiguration {
    const PAGE: RulePage = RulePage {
        code: "SC0604",
        name: "late-device-configuration",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "Memory growth or logical devices configured in the first cell of a notebook, and a kernel \
                restart to change them. TensorFlow needs this; it is not needed here.",
        why: "TensorFlow fixes its devices when the first operation runs. Here a strategy declares its logical \
              devices when it is made, at any time, and memory is taken when it is needed.",
        bad: "// tf.config.set_logical_device_configuration(…) first, or never\n\
              let strategy = MirroredStrategy::logical(2)?;",
        good: "let two = MirroredStrategy::logical(2)?;\nlet four = MirroredStrategy::logical(4)?;",
        tensorflow: tensorflow::page("SC0604"),
    };

    const NOT_RUN: Option<&'static str> = Some("both cells are valid: the page describes a habit");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("devices need not be configured before the first operation")
            .why("a strategy declares its logical devices when it is made")
            .fix("make the strategy in any cell: `MirroredStrategy::logical(2)?`")
    }
}
