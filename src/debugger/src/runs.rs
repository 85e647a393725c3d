//! Runs of the running cell as threads of the debugger. The requests do what the buttons below a run's table do. Runs between
//! two cells are in `standing.rs`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stratoscope_wire::{RunAction, RunState};

/// The thread of the cells. It does not stop.
pub const CELLS: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub struct Runs {
    /// By their numbers.
    states: BTreeMap<u64, RunState>,
    /// Those of which an optimizer step was asked for, so that their next pause is the end of it.
    stepping: Vec<u64>,
}

impl Runs {
    /// Records what a run does; returns the event that tells it, without `seq`.
    pub fn set(&mut self, run: u64, now: RunState) -> Option<Value> {
        let thread = thread_of(run);
        let before = match now {
            RunState::Ended => self.states.remove(&run),
            now => self.states.insert(run, now),
        };
        let event =
            |name: &str, body: Value| Some(json!({"type": "event", "event": name, "body": body}));
        match (before, now) {
            // Of a run that ends while it is stopped, a front end would show the stack for good.
            (Some(RunState::Paused), RunState::Running | RunState::Ended) => event(
                "continued",
                json!({"threadId": thread, "allThreadsContinued": false}),
            ),
            (_, RunState::Paused) => {
                let has_stepped = self.stepping.contains(&run);
                self.stepping.retain(|it| *it != run);
                let reason = if has_stepped { "step" } else { "pause" };
                event(
                    "stopped",
                    json!({
                        "reason": reason, "description": "between two optimizer steps", "threadId": thread,
                        "allThreadsStopped": false, "preserveFocusHint": false,
                    }),
                )
            }
            _ => None,
        }
    }

    /// The runs that have not ended: their cell has.
    pub fn known(&self) -> Vec<u64> {
        self.states.keys().copied().collect()
    }

    /// As `threads` lists them.
    pub fn threads(&self) -> Vec<Value> {
        let cells = json!({"id": CELLS, "name": "cells"});
        let runs = self.states.iter().map(|(run, state)| {
            let does = match state {
                RunState::Paused => "paused",
                _ => "training",
            };
            json!({"id": thread_of(*run), "name": format!("run {run} ({does})")})
        });
        [cells].into_iter().chain(runs).collect()
    }

    /// The threads that stand.
    pub fn stopped(&self) -> Vec<u64> {
        let paused = self
            .states
            .iter()
            .filter(|(_, state)| **state == RunState::Paused);
        paused.map(|(run, _)| thread_of(*run)).collect()
    }

    /// The stack of a thread: a run that stands has one frame.
    pub fn frames(&self, thread: Option<u64>) -> Vec<Value> {
        let stopped = self.stopped().into_iter().filter(|it| Some(*it) == thread);
        let frame = |thread: u64| {
            let name = format!("run {}, between two optimizer steps", thread - CELLS - 1);
            json!({"id": thread, "name": name, "line": 0, "column": 0, "source": {"name": "run"}})
        };
        stopped.map(frame).collect()
    }

    /// The run and the action that a request means.
    ///
    /// # Errors
    /// The request is not possible now; the reason.
    pub fn action(
        &mut self,
        command: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(u64, RunAction), String> {
        let (wanted, action) = match command {
            "pause" => (RunState::Running, RunAction::Pause),
            "continue" => (RunState::Paused, RunAction::Continue),
            "next" | "stepIn" | "stepOut" => (RunState::Paused, RunAction::Step),
            _ => {
                return Err(format!(
                    "`{command}` is not possible: a run that trains in a cell goes forward only; a run of `start!` has `run.rewind(1)`"
                ));
            }
        };
        let thread = arguments.get("threadId").and_then(Value::as_u64);
        let is_wanted = |state: &RunState| *state == wanted;
        // A front end without a stopped thread names the first one.
        let run = match thread.filter(|it| *it > CELLS) {
            Some(thread) => {
                Some(thread - CELLS - 1).filter(|run| self.states.get(run).is_some_and(is_wanted))
            }
            None => self
                .states
                .iter()
                .rev()
                .find(|(_, state)| is_wanted(state))
                .map(|(run, _)| *run),
        };
        let run = run.ok_or_else(|| match wanted {
            RunState::Running => "only a run of training can be paused, and none trains in this thread now".to_owned(),
            _ => format!("`{command}` needs a paused run, and none is paused in this thread: cells do not stop"),
        })?;
        if action == RunAction::Step {
            self.stepping.push(run);
        }
        Ok((run, action))
    }
}

/// The number of the thread of a run.
fn thread_of(run: u64) -> u64 {
    run.saturating_add(CELLS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(thread: u64) -> Map<String, Value> {
        Map::from_iter([("threadId".to_owned(), thread.into())])
    }

    #[test]
    fn a_run_is_paused_stepped_and_continued() {
        let mut runs = Runs::default();
        assert!(runs.action("pause", &of(CELLS)).is_err());
        assert_eq!(runs.set(0, RunState::Running), None);
        assert!(runs.action("next", &of(2)).is_err() && runs.frames(Some(2)).is_empty());
        assert_eq!(runs.action("pause", &of(CELLS)), Ok((0, RunAction::Pause)));
        let stopped = runs.set(0, RunState::Paused).expect("an event");
        assert_eq!(
            (&stopped["event"], &stopped["body"]["reason"]),
            (&json!("stopped"), &json!("pause"))
        );
        assert_eq!(stopped["body"]["threadId"], 2);
        assert_eq!((runs.stopped(), runs.frames(Some(2)).len()), (vec![2], 1));
        assert!(runs.action("pause", &of(2)).is_err());
        assert_eq!(runs.action("next", &of(2)), Ok((0, RunAction::Step)));
        assert_eq!(
            runs.set(0, RunState::Paused).expect("an event")["body"]["reason"],
            "step"
        );
        assert_eq!(
            runs.action("continue", &of(2)),
            Ok((0, RunAction::Continue))
        );
        let continued = runs.set(0, RunState::Running).expect("an event");
        assert_eq!(continued["event"], "continued");
        assert_eq!(runs.threads().len(), 2);
        assert!(
            runs.action("stepBack", &of(2))
                .is_err_and(|reason| reason.contains("rewind"))
        );
        runs.set(0, RunState::Paused);
        assert_eq!(
            runs.set(0, RunState::Ended).expect("an event")["event"],
            "continued"
        );
        assert_eq!((runs.threads().len(), runs.known()), (1, vec![]));
    }

    #[test]
    fn of_several_runs_each_has_its_thread() {
        let mut runs = Runs::default();
        runs.set(3, RunState::Paused);
        runs.set(4, RunState::Running);
        assert_eq!(runs.action("pause", &Map::new()), Ok((4, RunAction::Pause)));
        assert!(runs.action("next", &of(6)).is_err(), "it trains");
        assert_eq!(
            runs.action("continue", &of(5)),
            Ok((3, RunAction::Continue))
        );
        assert!(runs.action("continue", &of(u64::MAX)).is_err());
    }
}
