//! How the examples of a run are divided over worker processes: the data's `AutoShardPolicy`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stratoscope_data::{AutoShardPolicy, Data, Example};
use stratoscope_diagnostics::rules::{FilesNotSharded, SeenByEveryWorker};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Strategy;

use super::run_data::Prepared;
use stratoscope_arguments::FitPlan;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_diagnostics::problem;

/// The data as the workers of the strategy see it. Where all replicas are in one process, the policy means nothing.
///
/// # Errors
/// SC0803 for fewer files than workers; SC0103 for a batch that cannot have as many examples of each worker;
/// SC0813, where it is denied.
pub fn shard(
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
        AutoShardPolicy::File => by_file(data, dataset, workers),
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

/// The data of which each worker sees the examples of its own files: file `i` of their names in order belongs to worker
/// `i mod workers`.
///
/// # Errors
/// SC0803.
fn by_file(data: Prepared, dataset: Data<'_>, workers: usize) -> Result<Prepared> {
    let (examples, streamed) = match dataset {
        Data::Held(dataset) => (dataset.examples.as_slice(), 0),
        Data::Streamed(stream) => ([].as_slice(), stream.files().len()),
    };
    let of_file = |example: &Example| example.file.clone();
    let files: BTreeSet<Arc<str>> = examples.iter().filter_map(of_file).collect();
    let unknown = examples.iter().filter(|example| example.file.is_none());
    let too_few = FilesNotSharded {
        source: dataset.source().to_owned(),
        files: files.len().max(streamed),
        unknown: unknown.count(),
        workers,
    };
    if too_few.files < workers || too_few.unknown > 0 {
        return Err(too_few.error());
    }
    let numbers = files.into_iter().zip(0..);
    let numbers: BTreeMap<Arc<str>, usize> = numbers.collect();
    let owner = |index: usize| {
        let file = examples[index].file.as_ref();
        file.map_or(0, |file| numbers[file] % workers)
    };
    Ok(data.owned_by((too_few.files, workers), owner))
}
