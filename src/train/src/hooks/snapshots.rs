//! Snapshots of a run of `start!`, taken between two optimizer steps.

use stratoscope_diagnostics::Result;

use super::ring::Ring;
use super::{At, Hook};
use crate::snapshot::Snapshot;

/// Optimizer steps from one snapshot of `start!` to the next, where nothing is said.
pub(crate) const SNAPSHOT_EVERY: u64 = 10;
/// The memory that the snapshots of a run may take, where nothing is said: 1 GB.
pub(crate) const SNAPSHOT_BYTES: u64 = 1_000_000_000;

/// The snapshots that a run can be turned back to. `fit!` has none.
#[derive(Clone, Default)]
pub struct Snapshots {
    ring: Option<Ring<Snapshot>>,
}

impl Snapshots {
    /// One every so many steps, in at most so many bytes.
    pub fn every(steps: u64, most_bytes: u64) -> Self {
        Self {
            ring: Some(Ring::new(steps, most_bytes)),
        }
    }

    /// The latest snapshot after at most so many steps that is accepted.
    pub fn nearest(&self, step: u64, accept: impl Fn(&Snapshot) -> bool) -> Option<&Snapshot> {
        self.ring.as_ref()?.nearest(step, accept)
    }

    /// Drops the snapshots after more than so many steps, and those that are not accepted.
    pub fn forget_after(&mut self, step: u64, accept: impl Fn(&Snapshot) -> bool) {
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
        self.ring.iter_mut().flat_map(Ring::all_mut)
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
