//! SC0621 `few-micro-batches`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A pipeline whose stages wait most of the time.
#[derive(Clone, Debug)]
pub struct FewMicroBatches {
    /// Stages.
    pub stages: usize,
    /// Micro-batches of a batch.
    pub micro_batches: usize,
    /// The share of their time in which stages wait, for stages of equal cost.
    pub bubble: f64,
}

impl Rule for FewMicroBatches {
    const PAGE: RulePage = RulePage {
        code: "SC0621",
        name: "few-micro-batches",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A pipeline with fewer micro-batches than stages.",
        why: "A stage waits until the first micro-batch has reached it, and after the last one until its gradient comes back. \
              For p stages and m micro-batches this is (p − 1)/(m + p − 1) of the time: with m < p no moment has all stages at \
              work. Huang et al. 2019 (GPipe) found the waiting negligible from m = 4 p on.",
        bad: "fit!(model, train.take(64), batch_size = 8)?; // under .micro_batches(1), on two stages",
        good: "let pipeline = PipelineStrategy::logical(2)?.micro_batches(8)?;\n\
               scope!(pipeline, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                   compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               });\n\
               fit!(model, train.take(64), batch_size = 16)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "let pipeline = PipelineStrategy::logical(2)?.micro_batches(1)?;",
        "scope!(pipeline, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn applies(&self) -> bool {
        self.micro_batches < self.stages
    }

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            stages,
            micro_batches,
            bubble,
        } = *self;
        let waits = |bubble: f64| format!("{:.0} %", 100.0 * bubble);
        let many = 4 * stages;
        let then = (stages - 1) as f64 / (many + stages - 1) as f64;
        Self::start(format!(
            "{stages} stages share {micro_batches} micro-batch{}: they wait {} of the time",
            if micro_batches == 1 { "" } else { "es" },
            waits(bubble)
        ))
        .label(
            Place::argument("fit", "batch_size"),
            "is cut in micro-batches",
        )
        .why("until the first micro-batch reaches a stage, and after the last one, the stage waits")
        .evidence(
            "waiting",
            format!("(p − 1)/(m + p − 1) = {}", waits(bubble)),
        )
        .fix(format!(
            "`.micro_batches({many})?` makes it {}; `batch_size` must be a multiple of that number",
            waits(then)
        ))
    }
}
