//! SC0104 `two-steps-per-execution`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, ArgumentRow, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// `steps_per_execution` and its name of TensorFlow 2.3 in one call.
#[derive(Clone, Debug)]
pub struct TwoStepsPerExecution {
    /// Where `experimental_steps_per_execution` stands, name and value.
    pub experimental: Place,
    /// The text to delete to remove the old name, its comma included.
    pub experimental_drop: Place,
    /// Where `steps_per_execution` stands, name and value.
    pub current: Place,
    /// The call's arguments.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for TwoStepsPerExecution {
    const PAGE: RulePage = RulePage {
        code: "SC0104",
        name: "two-steps-per-execution",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "`steps_per_execution` together with `experimental_steps_per_execution`, its name in \
                TensorFlow 2.3.",
        why: "These are two names of one setting; if the values differ, one would be ignored.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 1, experimental_steps_per_execution = 1)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 1)?;",
        tensorflow: tensorflow::page("SC0104"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("`steps_per_execution` is passed twice, once under its TensorFlow 2.3 name")
            .label(self.experimental.clone(), "the old name")
            .label(self.current.clone(), "the same setting")
            .why("both names set how many batches run before control returns to the host")
            .fix_edit("remove the old name", self.experimental_drop.clone(), "")
            .arguments(self.arguments.clone())
            .tensorflow(Quote::of("SC0104"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md E6: each version refuses the name that it does not have.
fn answer(profile: Profile) -> Answer {
    let refused = match profile {
        Profile::Tf23 => "steps_per_execution",
        _ => "experimental_steps_per_execution",
    };
    tensorflow::refusal("compile", refused, profile)
}
