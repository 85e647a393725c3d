//! SC0311 `metric-of-a-batch`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Metrics that are no means of their batches' values.
#[derive(Clone, Debug)]
pub struct MetricOfABatch {
    /// Their names: `macro_f1`.
    pub metrics: Vec<String>,
}

impl Rule for MetricOfABatch {
    const PAGE: RulePage = RulePage {
        code: "SC0311",
        name: "metric-of-a-batch",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "F1, Matthews's, Pearson's and Spearman's coefficients. Here they are computed once, over the \
                whole split; the card of `compile!` says so beside their names.",
        why: "The mean of the batches' values is another number. Two batches of two texts can have Pearson \
              coefficients of 1 and −1, mean 0, where the four texts together have −0.85.",
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

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "{} computed over the split, not per batch",
            text::names(&self.metrics, 4)
        ))
        .why("counts and sums are kept until the split ends")
        .fix("nothing to do; compare with numbers of other programs only if they do the same")
    }
}
