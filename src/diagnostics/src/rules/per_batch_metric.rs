//! SC0311 `per-batch-metric`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Metrics that are no means of their batches' values.
#[derive(Clone, Debug)]
pub struct PerBatchMetric {
    /// Their names: `macro_f1`.
    pub metrics: Vec<String>,
}

impl Rule for PerBatchMetric {
    const PAGE: RulePage = RulePage {
        code: "SC0311",
        name: "per-batch-metric",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "F1, Matthews's, Pearson's and Spearman's coefficients. Here they are computed once, over the whole \
                split; the card of `compile!` shows this next to their names.",
        why: "The mean over batches is a different number. Two batches of two texts can have Pearson \
              coefficients of 1 and −1, with mean 0, while the four texts together have −0.85.",
        bad: "// what Keras does with a function as a metric: the mean of the batches' values\n\
              let mut mean = 0.0;\n\
              for start in [0, 8] {\n    \
                  let batch = evaluate!(model, dev.skip(start).take(8))?;\n    \
                  mean += batch.metric(\"macro_f1\").unwrap_or(0.0) / 2.0;\n\
              }\n\
              println!(\"{mean}\");",
        good: "let all = evaluate!(model, dev.take(16))?;\n\
               println!(\"{:?}\", all.metric(\"macro_f1\"));",
        tensorflow: tensorflow::page("SC0311"),
    };

    const GIVEN: &'static [&'static str] = &["compile!(model, optimizer = AdamW::new(5e-5), \
         loss = SparseCategoricalCrossentropy { from_logits: true }, metrics = [macro_f1()])?;"];

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    // The cell evaluates a model that is not trained.
    const TOLERATES: &'static [&'static str] = &["SC0510"];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "{} are computed over the whole split, not per batch",
            text::names(&self.metrics, 4)
        ))
        .why("counts and sums are accumulated over the split")
        .fix("nothing to do; compare only with programs that do the same")
    }
}
