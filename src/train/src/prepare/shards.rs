//! How the examples of a run are divided over worker processes: the data's `AutoShardPolicy`.

use stratoscope_data::{AutoShardPolicy, Data};
use stratoscope_diagnostics::rules::{FilesNotSharded, SeenByEveryWorker};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Strategy;

use super::run_data::Prepared;
use crate::arguments::FitPlan;
use crate::context::warnings::notice;
use crate::problem;

/// The data as the workers of the strategy see it. Where all replicas are in one process, the policy means nothing.
///
/// # Errors
/// SC0803 for files, which workers do not read; SC0103 for a batch that cannot have as many examples of each worker;
/// SC0813, where it is denied.
pub(crate) fn shard(
    data: Prepared,
    dataset: Data<'_>,
    strategy: Option<&Strategy>,
    plan: &FitPlan<'_>,
) -> Result<Prepared> {
    let workers = match strategy {
        Some(strategy) if strategy.team().is_some() => strategy.replicas().len(),
        _ => 1,
    };
    if workers < 2 {
        return Ok(data);
    }
    match dataset.auto_shard() {
        AutoShardPolicy::Auto | AutoShardPolicy::Data => Ok(data),
        AutoShardPolicy::File => Err(FilesNotSharded {
            source: dataset.source().to_owned(),
            workers,
        }
        .error()),
        AutoShardPolicy::Off => {
            if !plan.batch_size.is_multiple_of(workers) {
                let expects = format!(
                    "a multiple of {workers}, the number of workers, with `AutoShardPolicy::Off`"
                );
                let given = plan.batch_size.to_string();
                return Err(Box::new(problem::bad_value(
                    "fit",
                    "batch_size",
                    &given,
                    &expects,
                )));
            }
            let examples = data.train.len();
            notice(SeenByEveryWorker { workers, examples }.diagnostic())?;
            Ok(data.seen_by_each(workers, plan))
        }
    }
}
