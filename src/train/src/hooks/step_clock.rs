//! The timeline of the steps that `run.profile` makes: what the thread of the loop does from one moment to the next. The clock has
//! two ends, the first and the last of all hooks, so that what lies between them is the time of the other hooks.
//!
//! There are no gaps: each moment ends what was before it. Without a profile both ends are empty and return at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;

use super::{At, EpochOver, Hook};
use crate::loop_state::Pause;
use stratoscope_report::history::ExecutionRecord;
use stratoscope_step::forward::BatchOutputs;
use stratoscope_step::{Proposed, StepRecorded};

/// What the thread of the loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It waits for a batch.
    Data,
    /// All replicas compute a batch, or a part of one.
    Passes,
    /// The gradients of the replicas are combined.
    Exchange,
    /// The optimizer changes the variables.
    Update,
    /// Something else, in words.
    Host(&'static str),
    /// What it was, the next moment says.
    Unknown,
}

/// From when to when it does something.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// What the run did.
    pub activity: Activity,
    /// When it began.
    pub begun: Instant,
    /// When it ended.
    pub ended: Instant,
}

/// A timeline.
#[derive(Debug, Default)]
pub struct Spans {
    /// All spans, in the order of their ends.
    pub all: Vec<Span>,
    /// With which span each step begins.
    pub steps: Vec<usize>,
    /// Steps that were made.
    pub made: usize,
    open: Option<(Activity, Instant)>,
}

impl Spans {
    /// A timeline with these spans, for tests of what is made of one. `steps`: with which span each step begins.
    pub fn planted(all: Vec<Span>, steps: Vec<usize>) -> Self {
        Self {
            all,
            made: steps.len(),
            steps,
            open: None,
        }
    }
}

impl Spans {
    /// What was going on ends, as `known` says what it was.
    fn next(&mut self, known: impl FnOnce(Activity) -> Activity, next: Activity) {
        let now = Instant::now();
        if let Some((activity, begun)) = self.open.replace((next, now)) {
            self.all.push(Span {
                activity: known(activity),
                begun,
                ended: now,
            });
        }
    }

    /// A moment begins: the other hooks hear of it now.
    fn begins(&mut self, moment: Moment) {
        let known = |before: Activity| match (before, moment) {
            (Activity::Unknown, Moment::BeforeStep | Moment::BeforeBatch) => Activity::Data,
            (Activity::Unknown, Moment::EpochEnded) => {
                Activity::Host("the validation and the end of the epoch")
            }
            (Activity::Unknown, _) => Activity::Host("the loop"),
            (known, _) => known,
        };
        self.next(known, Activity::Host(moment.words()));
        if moment == Moment::BeforeStep {
            // The wait for its batch is a part of it.
            self.steps.push(self.all.len().saturating_sub(1));
        }
        if moment == Moment::StepMade {
            self.made += 1;
        }
    }

    /// All hooks have heard of it.
    fn ended(&mut self, moment: Moment) {
        let next = match moment {
            Moment::BeforeBatch => Activity::Passes,
            Moment::BeforeExchange => Activity::Exchange,
            Moment::Proposed => Activity::Update,
            Moment::EpochBegins
            | Moment::AfterBatch
            | Moment::ExecutionEnded
            | Moment::EpochEnded => Activity::Unknown,
            _ => Activity::Host("the loop"),
        };
        self.next(|known| known, next);
    }
}

/// A moment of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    EpochBegins,
    BeforeStep,
    BeforeBatch,
    Computed,
    Counted,
    BeforeExchange,
    Proposed,
    Updated,
    StepMade,
    StepEnded,
    AfterBatch,
    ExecutionEnded,
    EpochEnded,
    CallEnds,
}

impl Moment {
    /// What the hooks do then.
    fn words(self) -> &'static str {
        match self {
            Self::EpochBegins => "callbacks at the begin of an epoch",
            Self::BeforeStep => "snapshots and checkpoints before a step",
            Self::BeforeBatch => "checks before a batch",
            Self::Computed | Self::Counted => "checks and metrics after a batch",
            Self::BeforeExchange | Self::Proposed => "breakpoints",
            Self::Updated | Self::StepMade | Self::StepEnded => "records of a step",
            Self::AfterBatch => "the table after a batch",
            Self::ExecutionEnded => "callbacks and the table after an execution",
            Self::EpochEnded => "callbacks at the end of an epoch",
            Self::CallEnds => "the end of the call",
        }
    }
}

/// The timeline that both ends write.
pub type SharedSpans = Arc<Mutex<Spans>>;

/// Both ends of the clock.
#[derive(Default)]
pub struct StepClock {
    /// The end that is called before all other hooks.
    pub first: FirstHook,
    /// The end that is called after them.
    pub last: LastHook,
}

impl StepClock {
    /// A clock that writes this timeline.
    pub fn of(spans: &SharedSpans) -> Self {
        Self {
            first: FirstHook(Some(Arc::clone(spans))),
            last: LastHook(Some(Arc::clone(spans))),
        }
    }
}

/// The first hook: a moment begins.
#[derive(Default)]
pub struct FirstHook(Option<SharedSpans>);

/// The last hook: a moment has ended.
#[derive(Default)]
pub struct LastHook(Option<SharedSpans>);

fn with(spans: &Option<SharedSpans>, work: impl FnOnce(&mut Spans)) {
    if let Some(spans) = spans {
        work(&mut spans.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// All moments of an end of the clock, each by the same method of the timeline.
macro_rules! moments {
    ($end:ty, $mark:ident) => {
        impl Hook for $end {
            fn epoch_begins(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
                self.mark(Moment::EpochBegins)
            }

            fn before_step(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
                self.mark(Moment::BeforeStep)
            }

            fn before_batch(&mut self, _: At<'_, '_, '_, '_>, _: &Batch) -> Result<()> {
                self.mark(Moment::BeforeBatch)
            }

            fn computed(
                &mut self,
                _: At<'_, '_, '_, '_>,
                _: &Batch,
                _: &BatchOutputs,
            ) -> Result<()> {
                self.mark(Moment::Computed)
            }

            fn counted(&mut self, _: At<'_, '_, '_, '_>, _: &BatchOutputs) -> Result<()> {
                self.mark(Moment::Counted)
            }

            fn before_exchange(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
                self.mark(Moment::BeforeExchange)
            }

            fn proposed(&mut self, _: At<'_, '_, '_, '_>, _: &Proposed) -> Result<()> {
                self.mark(Moment::Proposed)
            }

            fn updated(&mut self, _: At<'_, '_, '_, '_>, _: &StepRecorded) -> Result<()> {
                self.mark(Moment::Updated)
            }

            fn step_made(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
                self.mark(Moment::StepMade)
            }

            fn step_ended(&mut self, _: At<'_, '_, '_, '_>) -> Result<()> {
                self.mark(Moment::StepEnded)
            }

            fn after_batch(&mut self, _: At<'_, '_, '_, '_>, _: bool) -> Result<()> {
                self.mark(Moment::AfterBatch)
            }

            fn execution_ended(
                &mut self,
                _: At<'_, '_, '_, '_>,
                _: &ExecutionRecord,
            ) -> Result<()> {
                self.mark(Moment::ExecutionEnded)
            }

            fn epoch_ended(&mut self, _: At<'_, '_, '_, '_>, _: &EpochOver<'_>) -> Result<()> {
                self.mark(Moment::EpochEnded)
            }

            fn call_ends(&mut self, _: At<'_, '_, '_, '_>, _: &Pause) -> Result<()> {
                self.mark(Moment::CallEnds)
            }

            fn call_begins(&mut self) {
                with(&self.0, |spans| {
                    spans
                        .open
                        .get_or_insert((Activity::Unknown, Instant::now()));
                });
            }
        }

        impl $end {
            fn mark(&self, moment: Moment) -> Result<()> {
                with(&self.0, |spans| spans.$mark(moment));
                Ok(())
            }
        }
    };
}

moments!(FirstHook, begins);
moments!(LastHook, ended);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_has_no_gaps_and_the_wait_for_a_batch_belongs_to_its_step() {
        let mut spans = Spans {
            open: Some((Activity::Unknown, Instant::now())),
            ..Spans::default()
        };
        let step = [
            Moment::BeforeStep,
            Moment::BeforeBatch,
            Moment::Computed,
            Moment::Counted,
            Moment::BeforeExchange,
            Moment::Proposed,
            Moment::Updated,
            Moment::StepMade,
            Moment::StepEnded,
            Moment::AfterBatch,
        ];
        let end = [Moment::ExecutionEnded, Moment::EpochEnded, Moment::CallEnds];
        let all = std::iter::once(Moment::EpochBegins)
            .chain(step)
            .chain(step)
            .chain(end);
        for moment in all {
            spans.begins(moment);
            spans.ended(moment);
        }
        assert_eq!((spans.made, spans.steps.len()), (2, 2));
        for pair in spans.all.windows(2) {
            assert_eq!(pair[0].ended, pair[1].begun);
        }
        for &begin in &spans.steps {
            assert_eq!(spans.all[begin].activity, Activity::Data);
        }
        let of = |wanted: Activity| {
            let own = spans.all.iter().filter(|it| it.activity == wanted);
            own.count()
        };
        assert_eq!(of(Activity::Data), 2);
        assert_eq!(of(Activity::Passes), 2);
        assert_eq!(of(Activity::Exchange), 2);
        assert_eq!(of(Activity::Update), 2);
        assert_eq!(of(Activity::Unknown), 0);
        assert_eq!(
            of(Activity::Host("the validation and the end of the epoch")),
            1
        );
    }
}
