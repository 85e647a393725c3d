//! SC0513 `small-per-replica-batch`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A global batch that leaves little for each replica.
#[derive(Clone, Debug)]
pub struct SmallPerReplicaBatch {
    /// Examples of the global batch.
    pub batch_size: usize,
    /// Replicas.
    pub replicas: usize,
}

impl SmallPerReplicaBatch {
    /// Examples per replica up to which `batch_size` was probably meant per replica: recipes for BERT use 16 or 32 for
    /// each device.
    const SMALL: usize = 8;
}

impl Rule for SmallPerReplicaBatch {
    const PAGE: RulePage = RulePage {
        code: "SC0513",
        name: "small-per-replica-batch",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "A `batch_size` that gives each replica 8 examples or fewer. `batch_size` is the global batch: it \
                is divided over the replicas.",
        why: "If `batch_size` was meant per replica, the batch of each replica is divided by the number of replicas, \
              and devices are idle most of the time. A larger global batch may need a higher rate.",
        bad: "fit!(model, train.take(32), batch_size = 16)?; // 8 for each of two replicas",
        good: "fit!(model, train.take(64), batch_size = 32)?; // 16 for each of two replicas",
        tensorflow: tensorflow::page("SC0513"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MirroredStrategy::logical(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn applies(&self) -> bool {
        self.replicas > 1 && self.batch_size / self.replicas <= Self::SMALL
    }

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            batch_size,
            replicas,
        } = *self;
        let share = batch_size / replicas.max(1);
        let message = match (share, batch_size % replicas.max(1)) {
            (0, _) => format!(
                "a batch of {batch_size} leaves {} of {replicas} replicas without work",
                replicas - batch_size
            ),
            (_, 0) => format!(
                "the batch of {batch_size} is shared: each of {replicas} replicas gets {share}"
            ),
            _ => format!(
                "the batch of {batch_size} is shared: each of {replicas} replicas gets {share} or {}",
                share + 1
            ),
        };
        Self::start(message)
            .label(
                Place::argument("fit", "batch_size"),
                "is divided over the replicas",
            )
            .why("`batch_size` counts the examples of all replicas together")
            .evidence("global batch", batch_size.to_string())
            .evidence("replicas", replicas.to_string())
            .fix(format!(
                "for {batch_size} per replica write `batch_size = {}`",
                batch_size * replicas
            ))
            .tensorflow(Quote::of("SC0513"))
    }
}
