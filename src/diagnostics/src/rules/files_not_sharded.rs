//! SC0803 `files-not-sharded`.

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// `AutoShardPolicy::File`, where the workers read no files.
#[derive(Clone, Debug)]
pub struct FilesNotSharded {
    /// Where the data come from: `data/*.csv`.
    pub source: String,
    /// How many workers there are.
    pub workers: usize,
}

impl Rule for FilesNotSharded {
    const PAGE: RulePage = RulePage {
        code: "SC0803",
        name: "files-not-sharded",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A data set with `auto_shard(AutoShardPolicy::File)` in a `fit!` by worker processes.",
        why: "The process of the notebook reads all data and sends each worker the rows of its part of a batch; a worker \
              opens no file. A policy that divides files would save neither reading nor traffic here, and workers with \
              shorter files would have nothing to do at the end of an epoch. `Data`, and `Auto`, which is the same here, \
              give each example to one worker, once an epoch.",
        bad: "fit!(model, train.take(64).auto_shard(AutoShardPolicy::File), batch_size = 32)?;",
        good: "fit!(model, train.take(64).auto_shard(AutoShardPolicy::Data), batch_size = 32)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`AutoShardPolicy::File` cannot divide files over {} workers, which read none",
            self.workers
        ))
        .evidence("data", self.source.clone())
        .why("this process reads the data and sends each worker its rows")
        .fix("use `AutoShardPolicy::Data`, or leave it out: each example goes to one worker, once an epoch")
    }
}
