//! What is checked before a run under a pipeline, and what its stages have and did.

use stratoscope_diagnostics::rules::{BatchNotInMicroBatches, FewMicroBatches, HeavyStage};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::strategy::bubble;

use crate::memory;
use crate::state::ModelState;
use stratoscope_arguments::context::warnings::notice;
use stratoscope_report::pipeline::{PipelineReport, StageRow};

/// Micro-batches of a batch, where the model is under a pipeline.
pub fn micro_batches(state: &ModelState) -> Option<usize> {
    let strategy = state.step.replicas.strategy()?;
    strategy.pipeline().map(|it| it.micro_batches)
}

/// Whether batches of this size can be cut in micro-batches, and these divided by the replicas.
///
/// # Errors
/// SC0622 where they cannot.
pub fn check_batch_size(
    micro_batches: Option<usize>,
    replicas: usize,
    batch_size: usize,
    call: &str,
) -> Result<()> {
    let Some(micro_batches) = micro_batches else {
        return Ok(());
    };
    let rule = BatchNotInMicroBatches {
        batch_size,
        micro_batches,
        replicas,
        call: call.to_owned(),
    };
    match rule.applies() {
        true => Err(rule.error()),
        false => Ok(()),
    }
}

/// Whether a pipeline makes sense for batches of this size: SC0621 and SC0623 are warnings.
///
/// # Errors
/// SC0622 for a batch that cannot be cut in micro-batches; a warning where it is denied.
pub fn check(state: &ModelState, batch_size: usize) -> Result<()> {
    let replicas = &state.step.replicas;
    check_batch_size(micro_batches(state), replicas.len(), batch_size, "fit")?;
    let settings = replicas.strategy().and_then(|it| it.pipeline());
    let (Some(settings), Some(stages)) = (settings, replicas.stages()) else {
        return Ok(());
    };
    let rule = FewMicroBatches {
        stages: settings.stages,
        micro_batches: settings.micro_batches,
        bubble: bubble(settings.stages, settings.micro_batches),
    };
    rule.check().map_or(Ok(()), notice)?;
    match stages.heavy() {
        None => Ok(()),
        Some((stage, share)) => {
            let rule = HeavyStage {
                stage,
                has: stages.words(stage),
                share,
                stages: stages.len(),
            };
            notice(rule.diagnostic())
        }
    }
}

/// The stages of a model under a pipeline, with what they did in its last step.
pub fn report(state: &ModelState) -> Option<PipelineReport> {
    let replicas = &state.step.replicas;
    let strategy = replicas.strategy()?;
    let (settings, stages) = (strategy.pipeline()?, replicas.stages()?);
    let shares = stages.shares();
    let row = |place: usize| {
        let index = place % stages.len();
        let own = replicas.records().iter();
        let own = own.filter(|record| stages.stage_of(record.param) == index);
        StageRow {
            device: stages.devices[place].name.clone(),
            has: stages.words(index),
            weights: own.map(|record| record.bytes).sum(),
            share: shares[index],
        }
    };
    let mut step = state.step.pipeline.clone();
    for (place, stage) in step.iter_mut().flat_map(|it| &mut it.stages).enumerate() {
        let (replica, index) = (place / stages.len(), place % stages.len());
        let each = state.step.last_batch.get(replica).and_then(|&micro_batch| {
            let layers = stages.layers[index].len();
            memory::of_segment(state, micro_batch, layers, index == 0)
        });
        stage.kept_bytes = each.map(|bytes| bytes * stage.kept as u64);
    }
    Some(PipelineReport {
        title: format!("the stages of `{}`, {settings}", strategy.label()),
        replicas: settings.replicas,
        stages: (0..stages.devices.len()).map(row).collect(),
        micro_batches: settings.micro_batches,
        predicted: bubble(settings.stages, settings.micro_batches),
        step,
    })
}
