//! SC0803 `files-not-sharded`.

use stratoscope_render::text;

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// `AutoShardPolicy::File`, for data of fewer files than there are workers.
#[derive(Clone, Debug)]
pub struct FilesNotSharded {
    /// Where the data come from: `data/*.csv`.
    pub source: String,
    /// How many files the examples are from.
    pub files: usize,
    /// Examples that are from no file.
    pub unknown: usize,
    /// How many workers there are.
    pub workers: usize,
}

impl Rule for FilesNotSharded {
    const PAGE: RulePage = RulePage {
        code: "SC0803",
        name: "files-not-sharded",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A data set with `auto_shard(AutoShardPolicy::File)` in a `fit!` by worker processes, with fewer files than \
                workers, or with examples from no file.",
        why: "The policy assigns each file to one worker, so a worker sees only the examples of its own files. With \
              fewer files than workers, some workers would have nothing to compute. An example that comes from no \
              file belongs to no worker. `Data` assigns each example to one worker, once per epoch, regardless of \
              its file; `Auto` is the same here.",
        bad: "fit!(model, train.take(64).auto_shard(AutoShardPolicy::File), batch_size = 32)?;",
        good: "fit!(model, train.take(64).auto_shard(AutoShardPolicy::Data), batch_size = 32)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            files,
            unknown,
            workers,
            ..
        } = *self;
        let (what, why) = match unknown {
            0 => (
                text::count(files, "file"),
                "each file goes to one worker, and every worker needs one",
            ),
            _ => (
                format!("{} from no file", text::count(unknown, "example")),
                "an example goes to the worker that reads its file",
            ),
        };
        Self::start(format!(
            "`AutoShardPolicy::File` cannot divide {what} over {workers} workers"
        ))
        .evidence("data", self.source.clone())
        .why(why)
        .fix("use `AutoShardPolicy::Data`, or leave it out: each example goes to one worker, once an epoch")
        .fix(format!(
            "write the rows into {workers} files or more, and read them by a pattern: `Dataset::csv(\"train-*.csv\")?`"
        ))
    }
}
