//! Requests from outside of the cells to a run that stands between two cells. Their table is
//! `stratoscope_train::requests`. And the one request to a run that trains which its loop cannot do: to turn it back.

use serde_json::Value;
use stratoscope_arguments::context::requests::{Answer, Refusal, Request};
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_diagnostics::Result;
use stratoscope_train::lease::Lease;
use stratoscope_train::loop_state::{Goal, Pause, TurnBack};
use stratoscope_train::requests::{Effect, Standing, checked};
use stratoscope_train::run_state::RunState;

use crate::handle::Run;
use crate::rewind::{check_rewind, rewind};

impl Standing for Run {
    fn step(&self, steps: u64) -> Result<Value> {
        Ok(Self::step(self, steps)?.headline().into())
    }

    fn epoch(&self) -> Result<Value> {
        Ok(Self::epoch(self)?.headline().into())
    }

    fn finish(&self) -> Result<Value> {
        Ok(Self::finish(self)?.notes().join("; ").into())
    }

    fn rewind(&self, step: u64) -> Result<Value> {
        Ok(Self::rewind(self, step)?.to_string().into())
    }
}

impl Run {
    /// Does what a request asks of a run that stands, with the checks of a cell, and records it in the history. The kernel calls
    /// this for requests that come by a comm or a socket.
    pub fn request(&self, request: &Request) -> Answer {
        begin_call();
        let outcome = match checked(request) {
            Ok((action, given)) => match &action.effect {
                Effect::Report => {
                    let report = self.read("report", |state, run| Ok(run.reported(state)));
                    return Answer {
                        outcome: report.map_err(Refusal::from),
                    };
                }
                Effect::Change(change) => (self)
                    .with("request", |lease, run| {
                        let change = change(&given, run, lease)?;
                        run.edit(lease, change)
                    })
                    .map(|edit| Value::from(edit.what))
                    .map_err(Refusal::from),
                Effect::Call(call) | Effect::Either(_, call) | Effect::Rewind(call) => {
                    call(self, &given).map_err(Refusal::from)
                }
                Effect::Move(_) => Err(Refusal::new(
                    "not_now",
                    "the run stands between two cells: `step`, `epoch` and `finish` let it train",
                )),
            },
            Err(refusal) => Err(refusal),
        };
        let owned = &self.owned;
        match owned.state.try_borrow_mut() {
            Ok(mut run) => run.recorded(&owned.model.state(), request, outcome),
            // A callback of the run has it in its hands; no request comes from there.
            Err(_) => Answer { outcome },
        }
    }
}

/// Drives a run to its goal. Where a request turns it back on the way, it goes on from there: `step(20)` ends at the step at
/// which it would have ended, `epoch` at the end of the epoch that the run is in then.
///
/// # Errors
/// Those of `RunState::drive`, and those of turning back but for SC0915, which is the answer to the request.
pub(crate) fn drive(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    goal: Goal,
) -> Result<Pause> {
    let end = match goal {
        Goal::Steps(steps) => Goal::UntilStep(lease.step.steps.saturating_add(steps)),
        other => other,
    };
    let mut pause = run.drive(lease, goal)?;
    while let Pause::TurnBack(asked) = pause {
        pause = match check_rewind(lease, run, asked.step) {
            Ok(()) => turn_back(lease, run, &asked, end)?,
            Err(problem) => {
                answer(lease, run, &asked, Err(problem.into()));
                run.drive_on(lease, end)?
            }
        };
    }
    Ok(pause)
}

/// Turns a run back that trains, and drives it on. Its table ends where it was, and another one begins.
fn turn_back(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    asked: &TurnBack,
    end: Goal,
) -> Result<Pause> {
    let rewound = match rewind(lease, run, asked.step) {
        Ok(rewound) => rewound,
        Err(problem) => {
            answer(lease, run, asked, Err(Refusal::from(problem.clone())));
            return Err(problem);
        }
    };
    let line = rewound.to_string();
    let mut history = run.history(lease);
    history.paused = Some(line.clone());
    // The answer comes first: a run that has ended refuses what it was asked.
    answer(lease, run, asked, Ok(line.into()));
    run.observer.fit_ended(run.number, &history);
    if rewound.interrupted {
        return Ok(Pause::Interrupted);
    }
    run.drive(lease, end)
}

/// Records a request that turns a run back, and answers it.
fn answer(
    lease: &Lease<'_>,
    run: &mut RunState<'static>,
    asked: &TurnBack,
    outcome: Result<Value, Refusal>,
) {
    let answer = run.recorded(lease, &asked.request, outcome);
    run.observer.answered(asked.number, &answer);
}
