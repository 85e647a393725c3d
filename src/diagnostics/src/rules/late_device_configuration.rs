//! SC0604 `devices-are-declared-any-time`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// TensorFlow's rule that devices must be configured before anything else, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub struct DevicesAreDeclaredAnyTime;

impl Rule for DevicesAreDeclaredAnyTime {
    const PAGE: RulePage = RulePage {
        code: "SC0604",
        name: "devices-are-declared-any-time",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The habit of setting memory growth or logical devices in the first cell of a notebook, and of \
                starting the kernel again to change them.",
        why: "TensorFlow fixes its devices when the first operation runs. Here a strategy declares its logical \
              devices when it is made, at any time, and memory is taken when it is needed.",
        bad: "// tf.config.set_logical_device_configuration(…) first, or never\n\
              let strategy = MirroredStrategy::logical(2)?;",
        good: "let two = MirroredStrategy::logical(2)?;\nlet four = MirroredStrategy::logical(4)?;",
        tensorflow: tensorflow::page("SC0604"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: what is told is a habit");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("devices need not be declared before anything else")
            .why("a strategy declares its logical devices when it is made")
            .fix("make the strategy in any cell: `MirroredStrategy::logical(2)?`")
    }
}
