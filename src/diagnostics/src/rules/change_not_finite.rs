//! SC0731 `change-not-finite`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// An intervention with a number that is not finite, or one that makes the loss or the gradient of the step such a number.
#[derive(Clone, Debug)]
pub struct ChangeNotFinite {
    /// The call: `what_if`.
    pub call: String,
    /// What is not finite: `loss`, `gradient norm`, `factor`.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// The changes, in words.
    pub changes: Vec<String>,
}

impl Rule for ChangeNotFinite {
    const PAGE: RulePage = RulePage {
        code: "SC0731",
        name: "change-not-finite",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`run.what_if(…)` with a change that makes the loss or the gradient of the step NaN or infinite, or with a number \
                that is not finite itself.",
        why: "A step with such a gradient is not made (SC0505), and a comparison with NaN shows nothing. The run stays as it was.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32), batch_size = 8)?;\n\
              run.what_if(|it| it.weights(\"classifier.weight\").scale(f64::NAN))?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32), batch_size = 8)?;\n\
               run.what_if(|it| it.weights(\"classifier.weight\").scale(1.1))?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let (what, value) = (&self.what, self.value);
        let diagnostic = Self::start(format!("the {what} with this change is {value}"))
            .label(Place::call(&self.call), "nothing is changed");
        let diagnostic = match self.changes.is_empty() {
            true => diagnostic,
            false => diagnostic.evidence("changes", text::names(&self.changes, 6)),
        };
        diagnostic
            .why("a step whose loss or gradient is not finite is not made")
            .fix("take a finite number that is closer to 1 for a factor, or to 0 for a value")
    }
}
