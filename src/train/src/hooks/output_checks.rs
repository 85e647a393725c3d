//! Reports outputs of the first batch that the loss cannot take, and predictions of an epoch that are all the same.

use stratoscope_diagnostics::Result;

use super::{At, EpochOver, Hook};
use crate::watch::EpochOf;
use stratoscope_step::StepRecorded;
use stratoscope_step::forward::BatchOutputs;

/// Looks at what the loop computes, with [`Progress::watch`](crate::progress::Progress::watch), which remembers what was
/// reported.
#[derive(Default)]
pub struct OutputChecks;

impl Hook for OutputChecks {
    fn counted(&mut self, at: At<'_, '_, '_, '_>, outputs: &BatchOutputs) -> Result<()> {
        let (network, loss) = (
            at.lease.step.replicas.first(),
            at.run.settings.compiled.loss,
        );
        at.run.progress.watch.outputs(network, loss, outputs)
    }

    fn updated(&mut self, at: At<'_, '_, '_, '_>, made: &StepRecorded) -> Result<()> {
        at.run.progress.watch.rate(made.rate);
        Ok(())
    }

    fn epoch_ended(&mut self, at: At<'_, '_, '_, '_>, epoch: &EpochOver<'_>) -> Result<()> {
        let run = &mut *at.run;
        let record = epoch.record;
        run.progress.watch.epoch(&EpochOf {
            epoch: record.epoch,
            is_last: record.epoch + 1 == run.plan.epochs || epoch.is_last,
            steps: at.lease.step.steps,
            training: epoch.counted,
            training_loss: record.loss,
            validation: record.validation.as_ref(),
            label_names: &run.data.label_names,
            optimizer: run.settings.compiled.optimizer.name,
            pretrained: at.lease.files.source().is_some(),
        })
    }
}
