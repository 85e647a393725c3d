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
    /// What was counted: `validation`, or `training` where there is none.
    pub split: &'static str,
}

impl Rule for MajorityBaseline {
    const PAGE: RulePage = RulePage {
        code: "SC0703",
        name: "majority-baseline",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Data of which 85 % or more is one class, measured by accuracy alone.",
        why: "A model that always answers that class has this accuracy. An accuracy of 0.92 is then no success, and the \
              rare class may never be found.",
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

    fn diagnostic(&self) -> Diagnostic {
        let share = self.count as f64 / self.total.max(1) as f64;
        Self::start(format!(
            "majority class is {:.0} %: accuracy {share:.2} is the baseline",
            100.0 * share
        ))
        .label(Place::call("fit"), "measured by accuracy alone")
        .why("always answering the majority class has this accuracy, without looking at a text")
        .evidence(
            format!("`{}` in {}", text::excerpt(&self.class, 40), self.split),
            format!(
                "{} of {}",
                text::thousands(self.count),
                text::thousands(self.total)
            ),
        )
        .evidence("classes", text::thousands(self.classes))
        .fix("measure what the majority cannot give: `metrics = [accuracy(), macro_f1(), mcc()]`")
        .fix("weigh the rare classes more: `fit!(…, class_weight = \"balanced\")`")
        .tensorflow(Quote::of("SC0703"))
    }
}
