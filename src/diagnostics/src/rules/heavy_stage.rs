//! SC0623 `heavy-stage`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A stage of a pipeline that all others wait for.
#[derive(Clone, Debug)]
pub struct HeavyStage {
    /// Its number, counted from 0.
    pub stage: usize,
    /// What it has: `layers 0 to 4`.
    pub has: String,
    /// Its share of the cost of all stages.
    pub share: f64,
    /// Stages.
    pub stages: usize,
}

impl Rule for HeavyStage {
    const PAGE: RulePage = RulePage {
        code: "SC0623",
        name: "heavy-stage",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A stage of a pipeline with at least 1.5 times the mean cost of the stages. The cost of a layer is the number of \
                its weights that a token is multiplied with.",
        why: "Micro-batches follow each other at the pace of the slowest stage, and the others wait for it. The waiting adds to \
              that of the pipeline's begin and end.",
        bad: "let pipeline = PipelineStrategy::logical(2)?.stages([5, 1])?;\n\
              scope!(pipeline, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                  compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              });\n\
              fit!(model, train.take(64), batch_size = 16)?;",
        good: "let pipeline = PipelineStrategy::logical(2)?.stages([3, 3])?;\n\
               scope!(pipeline, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(model, train.take(64), batch_size = 16)?;",
        tensorflow: "",
    };

    const NOT_RUN: Option<&'static str> =
        Some("the network of these tests has one layer for each stage");

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            stage,
            has,
            share,
            stages,
        } = self;
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let others = 1.0 - 1.0 / (share * *stages as f64);
        Self::start(format!(
            "stage {stage} of {stages} has {} of the cost: the others wait for it",
            percent(*share)
        ))
        .label(
            Place::call("fit"),
            "a step lasts as long as its slowest stage",
        )
        .why(format!("stage {stage} has {has}"))
        .evidence("its share", percent(*share))
        .evidence("an even share", percent(1.0 / *stages as f64))
        .evidence("waiting for it, over all stages", percent(others.max(0.0)))
        .fix("leave `.stages(…)` out: the layers are then divided by their cost")
        .fix("where the head or one layer costs most, use fewer stages")
    }
}
