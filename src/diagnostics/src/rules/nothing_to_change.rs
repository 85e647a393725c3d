//! SC0730 `nothing-to-change`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// An intervention on something that the network or the batch does not have.
#[derive(Clone, Debug)]
pub struct NothingToChange {
    /// The call: `what_if`.
    pub call: String,
    /// What was named: `layer`, `head`, `variable`.
    pub what: String,
    /// As written.
    pub given: String,
    /// What exists: `an encoder layer, 0 to 5`.
    pub expects: String,
    /// Names that are close to it, the closest first.
    pub similar: Vec<String>,
}

impl Rule for NothingToChange {
    const PAGE: RulePage = RulePage {
        code: "SC0730",
        name: "nothing-to-change",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.what_if(…)` or `model.predict_with(…)` that changes a layer, head, token, example, output or variable that \
                does not exist.",
        why: "Layers, heads, tokens and examples are counted from 0. An example is named by its place in `run.batch()?`, a \
              variable by a pattern of its name, such as `\"encoder.layer.0.*\"`.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32), batch_size = 8)?;\n\
              run.what_if(|it| it.head(99, 0).scale(0.0))?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32), batch_size = 8)?;\n\
               run.what_if(|it| it.head(0, 0).scale(0.0))?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let given = text::excerpt(&self.given, 60);
        let diagnostic = Self::start(format!("there is no {} {given} to change", self.what))
            .label(Place::call(&self.call), "nothing is changed")
            .why(format!("expected {}", self.expects));
        match self.similar.is_empty() {
            true => diagnostic.fix(format!("name {}", self.expects)),
            false => (self.similar.iter().take(3))
                .fold(diagnostic, |diagnostic, name| diagnostic.suggest(name)),
        }
    }
}
