//! A batch forward and backward: at once, or in parts where a device has no memory for all of it.
//!
//! The parts of a batch are micro-batches of the same optimizer step: their gradients are added up, each as a share of
//! all examples of the step, so that the gradient is the mean over the global batch as before. A part has the padding and
//! the dropout masks of a batch of its size: on the CPU a run that computes in parts of n has the bits of one with
//! `batch_size = n` and as many more `gradient_accumulation_steps`, where n divides the batch.
//!
//! In a pipeline the parts of a batch are its micro-batches, and all of them are computed together (`step::pipeline`); several
//! replicas divide each of them.
//!
//! A device that is out of memory fails before any weight has changed: the run goes back to before the step (`hooks::step_undo`),
//! makes the parts smaller and tries the step again. Batches are counted as before, so that positions, executions and
//! callbacks do not change.

use stratoscope_bert::ops::Stop;
use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::BatchesDivided;
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice};

use stratoscope_arguments::context::interrupt;
use stratoscope_arguments::context::warnings::notice;

use crate::edits::Change;
use crate::run_state::RunState;
use crate::training_loop::Drive;
use stratoscope_step::NumberedBatch;
use stratoscope_step::forward::BatchOutputs;

impl RunState<'_> {
    /// The most examples of a batch that are computed at once. In a pipeline they are a micro-batch.
    pub fn part_size(&self) -> usize {
        let all = self.batch_plan.batch_size();
        let all = self.micro_batches.map_or(all, |count| all.div_ceil(count));
        self.part.map_or(all, |part| part.min(all)).max(1)
    }

    /// The parts of a whole batch.
    fn parts(&self) -> u64 {
        self.batch_plan.batch_size().div_ceil(self.part_size()) as u64
    }

    /// The sizes of the parts in which so many examples are computed.
    pub(crate) fn part_sizes(&self, examples: usize) -> impl Iterator<Item = usize> {
        let part = self.part_size();
        (0..examples)
            .step_by(part)
            .map(move |start| part.min(examples - start))
    }

    /// The number of the dropout masks of a batch's first part; those of the others follow.
    pub(crate) fn first_mask(&self, batch: u64) -> u64 {
        batch * self.parts()
    }

    /// The batch in the parts that it is computed in.
    pub(crate) fn in_parts(&self, batch: Batch) -> Vec<Batch> {
        match batch.size() <= self.part_size() {
            true => vec![batch],
            false => batch.in_parts_of(self.part_size()),
        }
    }
}

/// Gives back what GPUs hold for tensors to come.
pub fn free_memory(devices: &[LogicalDevice]) {
    for device in devices {
        if device.backend != BackendKind::Flex {
            device.burn.memory_cleanup();
        }
    }
}

impl Drive<'_, '_, '_> {
    /// Runs a batch forward and backward on every replica. The gradients stay there and add up. False where the run is
    /// to be left before the batch has counted.
    ///
    /// # Errors
    /// SC0505 for a loss that is not finite; SC0607, SC0709, SC0710 and SC0907 if a device fails.
    pub fn forward_backward(&mut self, batch: &Batch, examples: &[usize]) -> Result<bool> {
        let run = &self.at.run;
        let first = run.first_mask(self.at.lease.step.batches);
        let stop = interrupt::after_patience();
        if self.at.lease.step.replicas.stages().is_some() {
            return self.in_stages(batch, first, examples, &stop);
        }
        if batch.size() <= run.part_size() {
            let whole = NumberedBatch {
                number: first,
                batch,
            };
            return self.part(whole, examples, &stop);
        }
        let parts = batch.in_parts_of(run.part_size());
        // An interrupt cannot take back what earlier parts have added to the gradients of `fit!`.
        let never = Stop::when(|| false);
        for (number, batch) in (first..).zip(&parts) {
            let stop = if number == first { &stop } else { &never };
            if !self.part(NumberedBatch { number, batch }, examples, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a batch, or a part of one, that the devices have room for.
    fn part(&mut self, part: NumberedBatch<'_>, examples: &[usize], stop: &Stop) -> Result<bool> {
        let batch = part.batch;
        self.tell(|hook, at| hook.before_batch(at, batch))?;
        let (step, settings) = (&mut self.at.lease.step, &self.at.run.settings);
        let Some(outputs) = step.accumulate(settings, part, examples, stop)? else {
            self.interrupt()?;
            return Ok(false);
        };
        self.counts(batch, &outputs)
    }

    /// Runs all micro-batches of a batch through the stages of a pipeline.
    fn in_stages(
        &mut self,
        batch: &Batch,
        first: u64,
        examples: &[usize],
        stop: &Stop,
    ) -> Result<bool> {
        let parts = self.at.run.in_parts(batch.clone());
        for part in &parts {
            self.tell(|hook, at| hook.before_batch(at, part))?;
        }
        let (step, settings) = (&mut self.at.lease.step, &self.at.run.settings);
        let micro_batches = (first, parts.as_slice());
        let done = step.accumulate_in_stages(settings, micro_batches, examples, stop)?;
        let Some(done) = done else {
            self.interrupt()?;
            return Ok(false);
        };
        for (part, outputs) in parts.iter().zip(&done) {
            if !self.counts(part, outputs)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A batch, or a part of one, was computed. False where the run is to be left before it has counted.
    fn counts(&mut self, batch: &Batch, outputs: &BatchOutputs) -> Result<bool> {
        self.tell(|hook, at| hook.computed(at, batch, outputs))?;
        if self.at.pause.is_some() {
            self.tell(|hook, at| hook.step_given_up(at))?;
            return Ok(false);
        }
        self.at.record_loss(batch, outputs)?;
        self.tell(|hook, at| hook.counted(at, outputs))?;
        Ok(true)
    }

    /// After an error of a step: if a device was out of memory and nothing was changed, the run stands before the step
    /// again and computes smaller parts from now on.
    ///
    /// # Errors
    /// The problem itself where that cannot help, and SC0608 where it is denied.
    pub(crate) fn divide(&mut self, problem: Box<Diagnostic>) -> Result<()> {
        // The negatives of an example would be those of its part.
        let is_whole = self.at.run.settings.loss.needs_several();
        if !self.hooks.undo.is_in_step() || self.at.is_updating || is_whole {
            return Err(problem);
        }
        let found = problem.message.clone();
        let to = self.hooks.memory.smaller(&self.at, problem)?;
        self.hooks.undo.put_back(&mut self.at);
        let (lease, run) = (&mut *self.at.lease, &mut *self.at.run);
        free_memory(lease.step.replicas.computing());
        let rule = BatchesDivided {
            found,
            step: lease.step.steps,
            batch_size: (run.batch_plan.batch_size()).min(run.data.train.len()),
            part: to,
        };
        run.edit(lease, Change::Parts(to as u64))?;
        notice(rule.diagnostic())
    }
}
