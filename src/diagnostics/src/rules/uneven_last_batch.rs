//! SC0512 `uneven-last-batch`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A last batch that does not divide evenly over the replicas.
#[derive(Clone, Debug)]
pub struct UnevenLastBatch {
    /// Examples of each replica in the last batch: 3, 2.
    pub shares: Vec<usize>,
    /// Examples of a full batch.
    pub batch_size: usize,
    /// Examples of the dataset.
    pub examples: usize,
}

impl Rule for UnevenLastBatch {
    const PAGE: RulePage = RulePage {
        code: "SC0512",
        name: "uneven-last-batch",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "A last batch of an epoch that gives some replicas more examples than others.",
        why: "The result is correct: the all-reduce weights each replica by its number of examples, so the step \
              equals that of one device. An unweighted mean over replicas would give more weight to the examples \
              of the smaller share: 5 examples as 3 + 2 gave the gradient 101.0 instead of 81.2.",
        bad: "fit!(model, train.take(37), batch_size = 32)?; // the last batch: 3 + 2",
        good: "fit!(model, train.take(36), batch_size = 32)?; // the last batch: 2 + 2",
        tensorflow: tensorflow::page("SC0512"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MirroredStrategy::logical(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let parts: Vec<String> = self.shares.iter().map(usize::to_string).collect();
        let size: usize = self.shares.iter().sum();
        Self::start(format!(
            "the last batch is divided {} over the replicas: each counts by its number of examples",
            parts.join(" + ")
        ))
        .label(
            Place::call("fit"),
            format!(
                "{} examples in batches of {}",
                self.examples, self.batch_size
            ),
        )
        .why("replicas are weighted by their number of examples, so the step equals that of one device")
        .evidence("examples of the last batch", size.to_string())
        .fix("nothing to do: the weighting is automatic")
        .tensorflow(Quote::of("SC0512"))
    }
}
