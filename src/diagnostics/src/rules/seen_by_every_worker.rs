//! SC0813 `seen-by-every-worker`.

use stratoscope_render::text;

use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// `AutoShardPolicy::Off`: an epoch of each worker has all examples.
#[derive(Clone, Debug)]
pub struct SeenByEveryWorker {
    /// How many workers there are.
    pub workers: usize,
    /// Examples of the data.
    pub examples: usize,
}

impl Rule for SeenByEveryWorker {
    const PAGE: RulePage = RulePage {
        code: "SC0813",
        name: "seen-by-every-worker",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "A data set with `auto_shard(AutoShardPolicy::Off)` in a `fit!` by worker processes.",
        why: "Each worker goes through all examples, in its own order. With 4 workers an epoch has 4 times the \
              examples and takes 4 times the steps. Schedules and `epochs` count these longer epochs. This is right \
              if each worker must see all data, for example data that each worker draws at random.",
        bad: "fit!(model, train.take(64).auto_shard(AutoShardPolicy::Off), batch_size = 32)?;",
        good: "fit!(model, train.take(64), batch_size = 32)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = super::FilesNotSharded::GIVEN;

    fn diagnostic(&self) -> Diagnostic {
        let Self { workers, examples } = self;
        Self::start(format!(
            "each of {workers} workers sees all {}, so an epoch has {}",
            text::count(*examples, "example"),
            text::thousands(workers * examples)
        ))
        .why("`AutoShardPolicy::Off` divides nothing")
        .fix("leave `auto_shard` out: each example then goes to one worker, once an epoch")
    }
}
