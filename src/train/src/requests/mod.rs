//! Requests that reach a run from outside of its cells: checked by the table of `actions`, done between two optimizer steps,
//! and recorded in the history with their outcome. A run that trains does them in its loop (`hooks/live_table.rs`); one of
//! `start!` that stands between two cells does them by `Run::request` of the crate `run`.

use serde_json::{Value, json};

use crate::run_state::RunState;
use crate::state::ModelState;
use stratoscope_arguments::context::requests::{Answer, Refusal, Request};
use stratoscope_report::history::RequestRecord;

mod actions;
mod arguments;
mod report;

pub use actions::Move;
pub use actions::{Action, Effect, Standing, actions};
pub use arguments::Given;

/// The history keeps this many requests; of more, the latest ones.
const MAX_RECORDS: usize = 1000;

/// What a run that trains does after a request.
pub enum Done {
    /// This answer.
    Answered(Answer),
    /// It moves; who moves it records that, with [`RunState::recorded`].
    Moves(Move),
    /// It is turned back to the moment after this number of steps; who does it records that.
    TurnsBack(u64),
}

/// The action that a request names, and its checked arguments.
pub fn checked(request: &Request) -> Result<(&'static Action, Given<'_>), Refusal> {
    let unknown = || {
        let message = "there is no such action; `runs` lists those that there are";
        Refusal::new("unknown_action", message)
    };
    let action = Action::named(&request.action).ok_or_else(unknown)?;
    let given = Given::check(&request.arguments, action.arguments)?;
    Ok((action, given))
}

impl RunState<'_> {
    /// Does what a request asks of a run that trains, between two steps.
    pub fn requested(&mut self, state: &mut ModelState, request: &Request) -> Done {
        let (action, given) = match checked(request) {
            Ok(checked) => checked,
            Err(refusal) => return Done::Answered(self.recorded(state, request, Err(refusal))),
        };
        let outcome = match &action.effect {
            Effect::Report => {
                let outcome = Ok(self.reported(state));
                return Done::Answered(Answer { outcome });
            }
            Effect::Move(to) => return Done::Moves(*to),
            // `fit!` keeps no snapshots.
            Effect::Rewind(_) if !self.pauses_between_steps => Err(Refusal::new(
                "not_now",
                "a run of `fit!` has no snapshots to go back to; one of `start!` has them",
            )),
            Effect::Rewind(_) => return Done::TurnsBack(given.whole("step").unwrap_or(0)),
            Effect::Either(to, _) if given.whole("steps").unwrap_or(1) == 1 => {
                return Done::Moves(*to);
            }
            Effect::Either(..) => Err(Refusal::new(
                "not_now",
                "a paused run makes one step for a request",
            )),
            Effect::Call(_) => Err(Refusal::new(
                "not_now",
                "only a run of `start!` between two cells does this",
            )),
            Effect::Change(change) => change(&given, self, state)
                .and_then(|change| self.edit(state, change))
                .map(|edit| Value::from(edit.what))
                .map_err(Refusal::from),
        };
        Done::Answered(self.recorded(state, request, outcome))
    }

    /// Records a request with its outcome; returns the answer.
    pub fn recorded(
        &mut self,
        state: &ModelState,
        request: &Request,
        outcome: Result<Value, Refusal>,
    ) -> Answer {
        let step = state.step.steps;
        if self.requests.len() >= MAX_RECORDS {
            self.requests.remove(0);
        }
        self.requests.push(RequestRecord {
            step,
            from: request.from.clone(),
            request: request.in_words(),
            outcome: match &outcome {
                Ok(Value::String(text)) => text.clone(),
                Ok(other) => other.to_string(),
                Err(refusal) => format!("refused ({}): {}", refusal.code, refusal.message),
            },
        });
        let outcome = outcome.map(|what| json!({"step": step, "what": what}));
        Answer { outcome }
    }
}
