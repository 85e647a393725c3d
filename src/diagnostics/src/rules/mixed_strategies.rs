//! SC0204 `mixed-strategies`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A scope entered inside the scope of a different strategy.
#[derive(Clone, Debug)]
pub struct MixedStrategies {
    /// The strategy that is active.
    pub active: String,
    /// The one that was to be entered.
    pub entered: String,
}

impl Rule for MixedStrategies {
    const PAGE: RulePage = RulePage {
        code: "SC0204",
        name: "mixed-strategies",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A scope inside the scope of a different strategy. Entering the same one again is allowed.",
        why: "A variable has one placement. If a model were built under two strategies, one half would be on \
              devices that the other half's all-reduce does not reach.",
        bad: "scope!(mirrored, {\n    \
              scope!(one_device, {\n        \
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
              });\n\
              });",
        good: "scope!(one_device, {\n    \
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              });",
        tensorflow: tensorflow::page("SC0204"),
    };

    const GIVEN: &'static [&'static str] = &["let mirrored = MirroredStrategy::logical(2)?;\n\
         let one_device = OneDeviceStrategy::new(cpu(0))?;"];

    fn diagnostic(&self) -> Diagnostic {
        let Self { active, entered } = self;
        Self::start(format!(
            "`{entered}`'s scope cannot be entered inside `{active}`'s"
        ))
        .label(Place::call("scope"), format!("`{active}` is active here"))
        .why("a variable has one placement; two strategies cannot both decide it")
        .fix(format!(
            "leave `{active}`'s scope first, or use that scope for these statements too"
        ))
        .tensorflow(Quote::of("SC0204"))
        .with_answers(|profile| {
            let object = "<tensorflow.python.distribute.mirrored_strategy.MirroredStrategy object at 0x7f…>";
            let says = format!(
                "RuntimeError: Mixing different tf.distribute.Strategy objects: {object} is not {object}"
            );
            Answer::says(profile, "raises when the inner scope is entered", says)
        })
    }
}
