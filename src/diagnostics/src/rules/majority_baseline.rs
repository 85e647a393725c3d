//! SC0703 `majority-baseline`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Nearly all examples are of one class, and accuracy is all that is measured.
#[derive(Clone, Debug)]
pub struct MajorityBaseline {
    /// The class.
    pub class: String,
    /// How many examples it has.
    pub count: usize,
    /// Examples in all.
    pub total: usize,
    /// Classes in all.
    pub classes: usize,
    /// The split that was counted: `validation`, or `training` without validation data.
    pub split: &'static str,
}

impl MajorityBaseline {
    /// The share of one class from which accuracy alone is not informative.
    const MAJORITY: f64 = 0.85;
    /// Examples below which a share is chance.
    const ENOUGH: usize = 20;
}

impl Rule for MajorityBaseline {
    const PAGE: RulePage = RulePage {
        code: "SC0703",
        name: "majority-baseline",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Data with 85 % or more of its examples in one class, measured by accuracy alone.",
        why: "A model that always predicts that class has this accuracy. A high accuracy is then no success, and \
              the rare class may never be predicted.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true }, metrics = [accuracy()])?;\n\
              let data = Dataset::from_labelled((0..40).map(|row| match row % 20 {\n    \
              0 => (\"a mail server\", \"server\"),\n    _ => (\"a game of chess\", \"game\"),\n}));\n\
              fit!(model, data)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true }, metrics = [accuracy(), mcc()])?;\n\
               let data = Dataset::from_labelled((0..40).map(|row| match row % 20 {\n    \
              0 => (\"a mail server\", \"server\"),\n    _ => (\"a game of chess\", \"game\"),\n}));\n\
              fit!(model, data)?;",
        tensorflow: tensorflow::page("SC0703"),
    };

    fn applies(&self) -> bool {
        // Data of a single class is SC0702, or nothing can be learned from it.
        let share = self.count as f64 / self.total.max(1) as f64;
        self.total >= Self::ENOUGH && share >= Self::MAJORITY && self.count < self.total
    }

    fn diagnostic(&self) -> Diagnostic {
        let share = self.count as f64 / self.total.max(1) as f64;
        Self::start(format!(
            "{:.0} % of the examples are of one class: accuracy {share:.2} is the baseline",
            100.0 * share
        ))
        .label(Place::call("fit"), "measured by accuracy alone")
        .why("always predicting the majority class has this accuracy, without reading a text")
        .evidence(
            format!("`{}` in {}", text::excerpt(&self.class, 40), self.split),
            format!(
                "{} of {}",
                text::thousands(self.count),
                text::thousands(self.total)
            ),
        )
        .evidence("classes", text::thousands(self.classes))
        .fix("use metrics that a constant prediction cannot score on: `metrics = [accuracy(), macro_f1(), mcc()]`")
        .fix("give the rare classes more weight: `fit!(…, class_weight = \"balanced\")`")
        .tensorflow(Quote::of("SC0703"))
    }
}
