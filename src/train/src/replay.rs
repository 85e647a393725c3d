//! Steps that are made once more, unheard: how `rewind` and `hindsight` replay them.

use std::panic::{self, AssertUnwindSafe};
use std::thread;

use stratoscope_arguments::context::RunContext;

use crate::lease::Lease;
use crate::run_state::{Phase, RunState};

impl RunState<'static> {
    /// Calls what makes steps again. Callbacks and the observer hear nothing of them, since they have heard of those steps;
    /// checkpoints of them exist; no condition stops a replay. All of that is put back, whatever happens.
    ///
    /// A panic of `work` is returned: the caller lets it go on when its own things are put back.
    pub fn replaying<T>(
        &mut self,
        lease: &mut Lease<'_>,
        work: impl FnOnce(&mut Lease<'_>, &mut Self) -> T,
    ) -> thread::Result<T> {
        let mut aside = std::mem::take(&mut self.hooks);
        self.hooks.snapshots = std::mem::take(&mut aside.snapshots);
        let silent = RunContext::nobody();
        let observer = std::mem::replace(&mut self.observer, silent);
        let phase = std::mem::replace(&mut self.phase, Phase::Going);
        self.is_replayed = true;
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(lease, self)));
        self.is_replayed = false;
        self.phase = phase;
        self.observer = observer;
        aside.snapshots = std::mem::take(&mut self.hooks.snapshots);
        self.hooks = aside;
        done
    }
}
