//! `run.next_layer()` and `run.previous_layer()`: through the coming step layer by layer, forward and backward, a micro-batch
//! after the other, to the update. The passes are those that the step will make, with its masks and bits. The run has not
//! changed until its step is made, by the call after the update or by any other. What is kept is what one micro-batch computes.

use std::sync::Arc;

use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_diagnostics::Result;
use stratoscope_report::inspection::{InStep, Place, passes_of};
use stratoscope_report::run_report::Position;
use stratoscope_strategy::RunningValues;
use stratoscope_train::lease::Lease;
use stratoscope_train::run_state::{ComingStep, RunState, position};

use crate::handle::Run;
use crate::micro_batch::probes_of;

/// A place within the coming step, and what is needed to go on from there.
#[derive(Clone)]
pub(crate) struct Inside {
    pub place: InStep,
    /// The running states, such as those of a batch normalization, before each micro-batch so far.
    running: Vec<RunningValues>,
}

/// Where to go.
#[derive(Clone, Copy)]
enum Way {
    Next,
    Previous,
}

impl Way {
    fn call(self) -> &'static str {
        match self {
            Self::Next => "next_layer",
            Self::Previous => "previous_layer",
        }
    }
}

impl Run {
    /// Goes to the next layer of the coming step, forward and then backward, and shows what it computes: each output, each
    /// gradient. After the last layer of the last micro-batch comes the update, and after that the call makes the step, as
    /// `step(1)` does at any place. Until then nothing of the run has changed; a change of the run begins the step anew.
    ///
    /// # Errors
    /// SC0520 if it is interrupted, SC0907 if a device fails; at the end of the step as [`step`](Self::step).
    pub fn next_layer(&self) -> Result<InStep> {
        self.walk(Way::Next)
    }

    /// Goes back to the layer before, and from the first one to before the step. See [`next_layer`](Self::next_layer).
    ///
    /// # Errors
    /// As [`next_layer`](Self::next_layer).
    pub fn previous_layer(&self) -> Result<InStep> {
        self.walk(Way::Previous)
    }

    /// Where it stands within its coming step; `None` if it stands before it.
    pub fn in_step(&self) -> Option<InStep> {
        let inside = self.owned.inside.try_borrow().ok()?;
        inside.as_ref().map(|inside| inside.place.clone())
    }

    fn walk(&self, way: Way) -> Result<InStep> {
        begin_call();
        let _listening = Listening::begin();
        let before = self.owned.inside.take();
        let is_at_end = |inside: &Inside| matches!(inside.place.place, Place::Update(_));
        if matches!(way, Way::Next) && before.as_ref().is_some_and(is_at_end) {
            return self.made();
        }
        let kept = before.clone();
        let found = self.with_unchanged(way.call(), |lease, run| {
            let Some(coming) = run.coming_step(lease)? else {
                return Ok(None);
            };
            let walk = Walk {
                at: position(lease, run),
                run,
                coming: &coming,
                call: way.call(),
            };
            match way {
                Way::Next => walk.next(lease, before),
                Way::Previous => walk.previous(lease, before),
            }
            .map(Some)
        });
        match found {
            // There are no more steps: the run says so.
            Ok(None) => self.made(),
            Ok(Some(inside)) => {
                let place = inside.place.clone();
                let is_inside = place.place != Place::Before;
                self.owned.inside.replace(is_inside.then_some(inside));
                Ok(place)
            }
            Err(problem) => {
                self.owned.inside.replace(kept);
                Err(problem)
            }
        }
    }

    /// Makes the step.
    fn made(&self) -> Result<InStep> {
        let stop = self.step(1)?;
        Ok(InStep {
            step: stop.position.step,
            steps: stop.position.steps,
            micro_batch: 0,
            micro_batches: 0,
            replicas: Vec::new(),
            passes: Arc::default(),
            place: Place::Made(Box::new(stop)),
        })
    }
}

/// A run, and its coming step.
struct Walk<'a> {
    run: &'a RunState<'static>,
    coming: &'a ComingStep,
    at: Position,
    call: &'a str,
}

impl Walk<'_> {
    fn next(&self, lease: &mut Lease<'_>, inside: Option<Inside>) -> Result<Inside> {
        let Some(inside) = inside else {
            return self.micro_batch(lease, 0, Vec::new(), Edge::First);
        };
        match inside.place.place {
            Place::After(at) if at + 1 < inside.place.passes.len() => {
                Ok(inside.moved(Place::After(at + 1)))
            }
            _ if inside.place.micro_batch + 1 < self.coming.batches.len() => self.micro_batch(
                lease,
                inside.place.micro_batch + 1,
                inside.running,
                Edge::First,
            ),
            _ => {
                let look = self.run.inspection(lease, self.coming);
                let updates = lease.step.replicas.undisturbed(|| look.updates())?;
                Ok(inside.moved(Place::Update(Box::new(updates))))
            }
        }
    }

    fn previous(&self, lease: &mut Lease<'_>, inside: Option<Inside>) -> Result<Inside> {
        let Some(inside) = inside else {
            return Ok(self.outside(lease));
        };
        let last = inside.place.passes.len().saturating_sub(1);
        match (&inside.place.place, inside.place.micro_batch) {
            (Place::After(0), 0) => Ok(self.outside(lease)),
            (Place::After(0), later) => {
                self.micro_batch(lease, later - 1, inside.running, Edge::Last)
            }
            (Place::After(at), _) => {
                let before = Place::After(at - 1);
                Ok(inside.moved(before))
            }
            _ => Ok(inside.moved(Place::After(last))),
        }
    }

    /// Computes a micro-batch. `running`: the running states before it and those before it in the step.
    fn micro_batch(
        &self,
        lease: &mut Lease<'_>,
        index: usize,
        mut running: Vec<RunningValues>,
        edge: Edge,
    ) -> Result<Inside> {
        if running.is_empty() {
            running.push(lease.step.replicas.running_values());
        }
        running.truncate(index + 1);
        let before = (index, &running[index]);
        let (probes, after) = probes_of(lease, self.run, self.coming, before, self.call)?;
        running.push(after);
        let passes = passes_of(probes);
        let at = match edge {
            Edge::First => 0,
            Edge::Last => passes.len().saturating_sub(1),
        };
        let place = InStep {
            micro_batch: index,
            passes: passes.into(),
            place: Place::After(at),
            ..self.outside(lease).place
        };
        Ok(Inside { place, running })
    }

    /// Before the step.
    fn outside(&self, lease: &Lease<'_>) -> Inside {
        let place = InStep {
            step: self.at.step + 1,
            steps: self.at.steps,
            micro_batch: 0,
            micro_batches: self.coming.batches.len(),
            replicas: self.run.inspection(lease, self.coming).replica_names(),
            passes: Arc::default(),
            place: Place::Before,
        };
        Inside {
            place,
            running: Vec::new(),
        }
    }
}

/// At which layer of a micro-batch.
#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}

impl Inside {
    fn moved(mut self, place: Place) -> Self {
        self.place.place = place;
        self
    }
}
