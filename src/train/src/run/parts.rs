//! A batch forward and backward: at once, or in parts where a device has no memory for all of it.
//!
//! The parts of a batch are micro-batches of the same optimizer step: their gradients are added up, each as a share of
//! all examples of the step, so that the gradient is the mean over the global batch as before. A part has the padding and
//! the dropout masks of a batch of its size: on the CPU a run that computes in parts of n has the bits of one with
//! `batch_size = n` and as many more `gradient_accumulation_steps`, where n divides the batch.
//!
//! A device that is out of memory fails before any weight has changed: the run goes back to before the step (`step_undo`),
//! makes the parts smaller and tries the step again. Batches are counted as before, so that positions, executions and
//! callbacks do not change.

use stratoscope_bert::ops::Stop;
use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::{BatchesDivided, OutOfMemory};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_strategy::{BackendKind, LogicalDevice};

use crate::context::interrupt;
use crate::context::warnings::notice;

use crate::run::edits::Change;
use crate::run::epochs::Drive;
use crate::run::memory::{self, AtOnce};
use crate::run::run_state::RunState;
use crate::step::NumberedBatch;

impl RunState<'_> {
    /// The most examples of a batch that are computed at once.
    pub(crate) fn part_size(&self) -> usize {
        let all = self.batch_plan.batch_size();
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
pub(super) fn free_memory(devices: &[LogicalDevice]) {
    for device in devices {
        if device.backend != BackendKind::Flex {
            device.burn.memory_cleanup();
        }
    }
}

impl Drive<'_, '_, '_> {
    /// Runs a batch forward and backward on every replica. The gradients stay there and add up. False where the run is
    /// to be left before it has counted.
    ///
    /// # Errors
    /// SC0505 for a loss that is not finite; SC0607, SC0709, SC0710 and SC0907 if a device fails.
    pub(super) fn forward_backward(&mut self, batch: &Batch, shares: &[usize]) -> Result<bool> {
        let first = self.run.first_mask(self.lease.step.batches);
        let stop = interrupt::after_patience();
        if batch.size() <= self.run.part_size() {
            let whole = NumberedBatch {
                number: first,
                batch,
            };
            return self.part(whole, shares, &stop);
        }
        let parts = batch.in_parts_of(self.run.part_size());
        // An interrupt cannot take back what earlier parts have added to the gradients of `fit!`.
        let never = Stop::when(|| false);
        for (number, batch) in (first..).zip(&parts) {
            let stop = if number == first { &stop } else { &never };
            if !self.part(NumberedBatch { number, batch }, shares, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a batch, or a part of one, that the devices have room for.
    fn part(&mut self, part: NumberedBatch<'_>, shares: &[usize], stop: &Stop) -> Result<bool> {
        self.tried = (part.batch.size(), part.batch.seq);
        self.admit()?;
        let (step, settings) = (&mut self.lease.step, &self.run.settings);
        let Some(outputs) = step.accumulate(settings, part, shares, stop)? else {
            self.interrupt();
            return Ok(false);
        };
        self.record_part(part.batch, &outputs)?;
        if self.pause.is_some() {
            return Ok(false);
        }
        self.count(&outputs);
        self.record_examples(&outputs);
        Ok(true)
    }

    /// Holds the declared limits of the devices against what is to be computed.
    fn admit(&mut self) -> Result<()> {
        let (examples, length) = self.tried;
        let is_known = |&(most, longest): &(usize, usize)| examples <= most && length <= longest;
        if self.admitted.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        memory::admit(self.lease, self.at_once(examples, length))?;
        self.admitted = Some((examples, length));
        Ok(())
    }

    fn at_once(&self, examples: usize, length: usize) -> AtOnce {
        AtOnce {
            examples,
            length,
            recompute: self.run.settings.recompute,
            is_part: examples < self.run.batch_plan.batch_size(),
        }
    }

    /// After an error of a step: if a device was out of memory and nothing was changed, the run stands before the step
    /// again and computes smaller parts from now on.
    ///
    /// # Errors
    /// The problem itself where that cannot help, and SC0608 where it is denied.
    pub(super) fn divide(&mut self, problem: Box<Diagnostic>) -> Result<()> {
        let least = self.lease.step.replicas.len();
        let from = self.run.part_size().min(self.tried.0.max(least));
        let is_before = self.undo.is_some() && !self.is_updating;
        if !OutOfMemory::is(&problem) || !is_before || from <= least {
            return Err(problem);
        }
        let Some(to) = self.smaller(from, least) else {
            // What is said is of the least that can be computed at once.
            return memory::admit(self.lease, self.at_once(least, self.tried.1)).and(Err(problem));
        };
        self.put_back();
        self.admitted = None;
        free_memory(self.lease.step.replicas.devices());
        let rule = BatchesDivided {
            found: problem.message.clone(),
            step: self.lease.step.steps,
            batch_size: (self.run.batch_plan.batch_size()).min(self.run.data.train.len()),
            part: to,
        };
        (self.run).edit(self.lease, Change::Parts(to as u64))?;
        notice(rule.diagnostic())
    }

    /// Half of so many examples, and less as long as the plan has no room: for the longest row of the data if that can
    /// be, so that the run is divided once.
    fn smaller(&self, from: usize, least: usize) -> Option<usize> {
        let half = |size: &usize| (*size > least).then(|| size.div_ceil(2).max(least));
        let sizes: Vec<usize> = std::iter::successors(half(&from), half).collect();
        let fits = |length: usize| {
            let fits = |&&size: &&usize| {
                let work = self.at_once(size, length);
                memory::admit(self.lease, work).is_ok()
            };
            sizes.iter().find(fits).copied()
        };
        let data = &self.run.data.train;
        let longest = data.report().longest.min(data.max_length());
        fits(longest.max(self.tried.1)).or_else(|| fits(self.tried.1))
    }
}
