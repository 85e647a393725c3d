//! Compares the declared memory of devices with what is to be computed, and finds the parts in which a batch fits
//! where a device was out of memory.

use stratoscope_data::Batch;
use stratoscope_diagnostics::rules::OutOfMemory;
use stratoscope_diagnostics::{Diagnostic, Result};

use super::{At, Hook};
use crate::loop_state::LoopState;
use crate::memory::{self, AtOnce};

/// Knows what the devices have room for. Without declared limits they have room for everything.
#[derive(Default)]
pub struct MemoryLimits {
    /// Examples and tokens of what was computed last, or is being computed.
    tried: (usize, usize),
    /// The most examples and tokens that were found to fit.
    admitted: Option<(usize, usize)>,
}

impl Hook for MemoryLimits {
    fn call_begins(&mut self) {
        *self = Self::default();
    }

    fn before_batch(&mut self, at: At<'_, '_, '_, '_>, batch: &Batch) -> Result<()> {
        self.tried = (batch.size(), batch.seq);
        let (examples, length) = self.tried;
        let is_known = |&(most, longest): &(usize, usize)| examples <= most && length <= longest;
        if self.admitted.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        memory::admit(at.lease, at_once(at, examples, length))?;
        self.admitted = Some((examples, length));
        Ok(())
    }
}

impl MemoryLimits {
    /// After an error of a step: the number of examples that are to be computed at once from now on.
    ///
    /// # Errors
    /// The problem itself where fewer examples cannot help.
    pub(crate) fn smaller(
        &mut self,
        at: &LoopState<'_, '_, '_>,
        problem: Box<Diagnostic>,
    ) -> Result<usize> {
        let least = at.lease.step.replicas.len();
        let from = at.run.part_size().min(self.tried.0.max(least));
        if !OutOfMemory::is(&problem) || from <= least {
            return Err(problem);
        }
        let Some(to) = self.half_or_less(at, from, least) else {
            // What is said is of the least that can be computed at once.
            memory::admit(at.lease, at_once(at, least, self.tried.1))?;
            return Err(problem);
        };
        self.admitted = None;
        Ok(to)
    }

    /// Half of so many examples, and less as long as the plan has no room: for the longest row of the data if that can
    /// be, so that the run is divided once.
    fn half_or_less(&self, at: &LoopState<'_, '_, '_>, from: usize, least: usize) -> Option<usize> {
        let half = |size: &usize| (*size > least).then(|| size.div_ceil(2).max(least));
        let sizes: Vec<usize> = std::iter::successors(half(&from), half).collect();
        let fits = |length: usize| {
            let fits = |&&size: &&usize| {
                let work = at_once(at, size, length);
                memory::admit(at.lease, work).is_ok()
            };
            sizes.iter().find(fits).copied()
        };
        let data = &at.run.data.train;
        let longest = data.report().longest.min(data.max_length());
        fits(longest.max(self.tried.1)).or_else(|| fits(self.tried.1))
    }
}

fn at_once(at: &LoopState<'_, '_, '_>, examples: usize, length: usize) -> AtOnce {
    AtOnce {
        examples,
        length,
        recompute: at.run.settings.recompute,
        is_part: examples < at.run.batch_plan.batch_size(),
    }
}
