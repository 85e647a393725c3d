//! Snapshots of a run of `start!`, taken between two optimizer steps.

use stratoscope_diagnostics::Result;

use super::ring::Ring;
use super::{At, Hook};
use crate::run_state::RunState;
use crate::snapshot::Snapshot;
use crate::state::ModelState;

/// Optimizer steps from one snapshot of `start!` to the next, where nothing is said.
pub(crate) const SNAPSHOT_EVERY: u64 = 10;
/// The memory that the snapshots of a run may take, where nothing is said: 1 GB.
pub(crate) const SNAPSHOT_BYTES: u64 = 1_000_000_000;

/// The snapshots that a run can be turned back to. `fit!` has none.
#[derive(Clone, Default)]
pub struct Snapshots {
    ring: Option<Ring<Snapshot>>,
    /// Where the run stands before the first step that these see; it shares its tensors with the model until that step.
    begin: Option<Snapshot>,
}

impl Snapshots {
    /// One every so many steps, in at most so many bytes.
    pub fn every(steps: u64, most_bytes: u64) -> Self {
        Self {
            ring: Some(Ring::new(steps, most_bytes)),
            begin: None,
        }
    }

    /// The same with where the run stands now: it can be turned back to this place also before it has made a step.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn beginning_at(self, state: &mut ModelState, run: &RunState<'_>) -> Result<Self> {
        state.step.gather()?;
        let begin = Snapshot::of(&state.step, &run.progress, run.edits.len());
        Ok(Self {
            begin: Some(begin),
            ..self
        })
    }

    /// The latest snapshot after at most so many steps that is accepted.
    pub fn nearest(&self, step: u64, accept: impl Fn(&Snapshot) -> bool) -> Option<&Snapshot> {
        let begin = self.begin.as_ref();
        let begin = begin.filter(|it| it.state.steps <= step && accept(it));
        let held = self.ring.as_ref().and_then(|it| it.nearest(step, accept));
        held.or(begin)
    }

    /// Drops the snapshots after more than so many steps, and those that are not accepted.
    pub fn forget_after(&mut self, step: u64, accept: impl Fn(&Snapshot) -> bool) {
        self.begin = (self.begin.take()).filter(|it| it.state.steps <= step && accept(it));
        if let Some(ring) = &mut self.ring {
            ring.forget_after(step, accept);
        }
    }

    /// All that are held, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Snapshot> {
        self.ring.iter().flat_map(Ring::all)
    }

    /// All that are held, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Snapshot> {
        let held = self.ring.iter_mut().flat_map(Ring::all_mut);
        held.chain(&mut self.begin)
    }

    /// The steps that are held, the oldest first.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = u64> {
        let steps: Vec<u64> = self.ring.iter().flat_map(Ring::steps).collect();
        steps.into_iter()
    }

    /// A line about them; `None` where none are taken.
    pub fn in_words(&self) -> Option<String> {
        self.ring.as_ref().map(Ring::in_words)
    }
}

impl Hook for Snapshots {
    fn before_step(&mut self, at: At<'_, '_, '_, '_>) -> Result<()> {
        self.begin = None;
        let steps = at.lease.step.steps;
        let Some(ring) = self.ring.as_mut().filter(|ring| ring.is_due(steps)) else {
            return Ok(());
        };
        at.lease.step.gather()?;
        let snapshot = Snapshot::of(&at.lease.step, &at.run.progress, at.run.edits.len());
        ring.add(steps, snapshot.bytes(), snapshot);
        Ok(())
    }
}
