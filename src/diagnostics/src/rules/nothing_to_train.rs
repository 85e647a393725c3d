//! SC0111 `nothing-to-train`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// `fit!` on a model of which every variable is frozen.
#[derive(Clone, Debug)]
pub struct NothingToTrain {
    /// Variables in all.
    pub variables: usize,
    /// The variables of the head, which are usually left free.
    pub head: Option<String>,
}

impl Rule for NothingToTrain {
    const PAGE: RulePage = RulePage {
        code: "SC0111",
        name: "nothing-to-train",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`fit!` on a model with all variables frozen.",
        why: "No gradient would be computed and no weight would change: every epoch would have the loss of the \
              first one.",
        bad: "model.freeze(\"\")?;\ncompile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        good: "model.freeze(\"bert\")?; // the head stays free\ncompile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0111"),
    };

    const GIVEN: &'static [&'static str] = &["let train = train.take(48);"];

    fn diagnostic(&self) -> Diagnostic {
        let head = self.head.as_deref().unwrap_or("classifier");
        Self::start(format!(
            "0 trainable variables: all {} are frozen",
            text::thousands(self.variables)
        ))
        .label(Place::model("fit"), "no variable may change")
        .why("a step changes only trainable variables, and the model has none")
        .fix(format!("unfreeze the head: `model.unfreeze(\"{head}\")?`"))
        .tensorflow(Quote::of("SC0111"))
    }
}
