//! SC0110 `frozen-after-compile`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Variables that were frozen, or freed again, between `compile!` and `fit!`.
#[derive(Clone, Debug)]
pub struct FrozenAfterCompile {
    /// Their names.
    pub changed: Vec<String>,
    /// Variables that are frozen now.
    pub frozen: usize,
    /// Variables in all.
    pub variables: usize,
}

impl Rule for FrozenAfterCompile {
    const PAGE: RulePage = RulePage {
        code: "SC0110",
        name: "frozen-after-compile",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "Variables that were frozen or unfrozen after `compile!`. `fit!` uses their current flags.",
        why: "The card of `compile!` is out of date. The moments of a variable that was frozen after `compile!` \
              keep their values and are used again when it is unfrozen.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              model.freeze(\"bert.embeddings\")?;\nfit!(model, train)?;",
        good: "model.freeze(\"bert.embeddings\")?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0110"),
    };

    const GIVEN: &'static [&'static str] = &["let train = train.take(48);"];

    fn diagnostic(&self) -> Diagnostic {
        let changed = text::count(self.changed.len(), "variable");
        Self::start(format!(
            "trainable flags of {changed} changed since `compile!`"
        ))
        .label(
            Place::call("fit"),
            "trains the variables that are trainable now",
        )
        .why("the current flags apply; the card of `compile!` showed others")
        .evidence("changed", text::names(&self.changed, 3))
        .evidence(
            "frozen now",
            format!("{} of {}", self.frozen, self.variables),
        )
        .fix("freeze before `compile!`, or compile again, which also resets the moments")
    }
}
