//! Requests from outside of the cells to a run that stands between two cells. Their table is
//! `stratoscope_train::requests`.

use serde_json::Value;
use stratoscope_arguments::context::requests::{Answer, Refusal, Request};
use stratoscope_diagnostics::Result;
use stratoscope_train::requests::{Effect, Standing, checked};

use crate::handle::Run;

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

    fn drop_examples(&self, rows: &[u64]) -> Result<Value> {
        Ok(Self::drop_examples(self, rows.iter().copied())?.what.into())
    }

    fn set_batch_size(&self, examples: u64) -> Result<Value> {
        Ok(Self::set_batch_size(self, examples)?.what.into())
    }

    fn set_accumulation(&self, batches: u64) -> Result<Value> {
        Ok(Self::set_accumulation(self, batches)?.what.into())
    }
}

impl Run {
    /// Does what a request asks of a run that stands, with the checks of a cell, and records it in the history. The kernel calls
    /// this for requests that come by a comm or a socket.
    pub fn request(&self, request: &Request) -> Answer {
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
                        let change = change(&given, run)?;
                        run.edit(lease, change)
                    })
                    .map(|edit| Value::from(edit.what))
                    .map_err(Refusal::from),
                Effect::Call(call) | Effect::Either(_, call) => {
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
