//! The buttons below a run's table, as the cell process knows them, and the requests that came by a comm or a socket. The
//! kernel draws the buttons and says which was pressed; requests it only passes on. The loop does both between two steps.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use stratoscope_models::actions;
use stratoscope_models::events::{Advanced, FitStarted, RunCommand};
use stratoscope_models::requests::Request;
use stratoscope_wire::request::{RUNS, refusal};
use stratoscope_wire::{RunAction, RunRequest, RunState, ToKernel};

use crate::connection;

/// More presses and requests than a run has answered are refused.
const MOST_COMMANDS: usize = 64;

/// A run that is going on.
struct Going {
    number: u64,
    has_buttons: bool,
    is_paused: bool,
    /// What was asked and not yet answered.
    commands: VecDeque<RunCommand>,
    /// What it will do.
    planned: Value,
    /// Where it is.
    at: Value,
}

impl Going {
    fn new(number: u64) -> Self {
        Self {
            number,
            has_buttons: false,
            is_paused: false,
            commands: VecDeque::new(),
            planned: Value::Null,
            at: Value::Null,
        }
    }

    fn listed(&self) -> Value {
        let state = match self.is_paused {
            true => "paused",
            false => "training",
        };
        json!({"run": self.number, "state": state, "planned": self.planned, "at": self.at})
    }
}

/// The runs that are going on.
static RUNS_NOW: Mutex<Vec<Going>> = Mutex::new(Vec::new());

fn runs() -> MutexGuard<'static, Vec<Going>> {
    RUNS_NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(run: u64, change: impl FnOnce(&mut Going) -> T) -> Option<T> {
    runs().iter_mut().find(|it| it.number == run).map(change)
}

/// A run begins, or a call of a run of `start!`.
pub(super) fn begin(event: &FitStarted) {
    let mut going = Going::new(event.run);
    going.planned = planned(event);
    // A call that has panicked has not ended its run.
    close(event.run);
    runs().push(going);
}

/// The batches of a run were changed while it trains.
pub(super) fn replanned(event: &FitStarted) {
    with(event.run, |going| going.planned = planned(event));
}

fn planned(event: &FitStarted) -> Value {
    json!({
        "epochs": event.epochs, "batches_per_epoch": event.batches_per_epoch, "batch_size": event.batch_size,
        "optimizer_steps": event.planned.optimizer_steps, "examples": event.examples, "devices": event.devices,
    })
}

/// A cell begins: the runs of the one before are over, also one that has panicked.
pub(crate) fn begin_cell() {
    let numbers: Vec<u64> = runs().iter().map(|it| it.number).collect();
    numbers.into_iter().for_each(close);
}

/// A run reports where it is.
pub(super) fn advanced(event: &Advanced) {
    let metrics = event.epoch_metrics.iter();
    let metrics: Map<String, Value> = metrics
        .map(|it| (it.name.to_owned(), json!(it.value)))
        .collect();
    let at = json!({
        "epoch": event.epoch, "batch": event.batches, "optimizer_steps": event.counters.optimizer_steps,
        "epoch_loss": event.epoch_loss, "metrics": metrics, "learning_rate": event.learning_rate,
        "seconds_left": event.seconds_left,
    });
    with(event.run, |going| going.at = at);
}

/// The table of a run is shown, and its buttons.
pub(super) fn open(run: u64) {
    set(run, RunState::Running);
}

/// A run pauses or goes on. A run that is paused has buttons.
pub(super) fn set(run: u64, state: RunState) {
    with(run, |going| {
        going.has_buttons = true;
        going.is_paused = state == RunState::Paused;
    });
    connection::send(&ToKernel::Controls { run, state });
}

/// A run is over: its buttons disappear.
pub(super) fn close(run: u64) {
    let closed: Vec<Going> = runs().extract_if(.., |it| it.number == run).collect();
    if closed.iter().any(|it| it.has_buttons) {
        let state = RunState::Ended;
        connection::send(&ToKernel::Controls { run, state });
    }
    for command in closed.into_iter().flat_map(|it| it.commands) {
        if let RunCommand::Request { number, .. } = command {
            answered(number, refusal("not_now", "the run has ended or stands"));
        }
    }
}

/// A button was pressed. One of a run that is over asks for nothing.
pub(crate) fn pressed(run: u64, action: RunAction) {
    let command = match action {
        RunAction::Pause => RunCommand::Pause,
        RunAction::Step => RunCommand::Step,
        RunAction::Continue => RunCommand::Continue,
        RunAction::Stop => RunCommand::Stop,
        RunAction::HalveRate => RunCommand::ScaleRate(0.5),
        RunAction::DoubleRate => RunCommand::ScaleRate(2.0),
    };
    with(run, |going| going.push(command));
}

impl Going {
    fn push(&mut self, command: RunCommand) -> bool {
        let has_room = self.commands.len() < MOST_COMMANDS;
        if has_room {
            self.commands.push_back(command);
        }
        has_room
    }
}

/// A request came. The loop of its run answers it; the list of runs is answered at once.
pub(crate) fn requested(number: u64, request: RunRequest) {
    if let Err(answer) = passed_on(number, request) {
        answered(number, answer);
    }
}

/// Puts a request before its run.
///
/// # Errors
/// The answer, where the run has no part in it.
fn passed_on(number: u64, request: RunRequest) -> Result<(), Value> {
    let RunRequest {
        run,
        from,
        action,
        arguments,
    } = request;
    let mut runs = runs();
    if action == RUNS {
        let training: Vec<Value> = runs.iter().map(Going::listed).collect();
        let result = json!({"training": training, "actions": actions()});
        return Err(json!({"ok": true, "result": result}));
    }
    let run = match (run, &mut runs[..]) {
        (_, []) => return Err(refusal("no_run", "no run trains now")),
        (None, [one]) => one,
        (None, _) => {
            return Err(refusal(
                "which_run",
                "several runs train: name one by `run`",
            ));
        }
        (Some(run), all) => match all.iter_mut().find(|it| it.number == run) {
            Some(found) => found,
            None => return Err(refusal("no_run", format!("no run {run} trains now"))),
        },
    };
    let request = Request {
        from,
        action,
        arguments,
    };
    match run.push(RunCommand::Request { number, request }) {
        true => Ok(()),
        false => Err(refusal(
            "too_many",
            "too many requests wait for the next step of the run",
        )),
    }
}

/// Sends the answer to a request.
pub(super) fn answered(id: u64, answer: Value) {
    connection::reply(&ToKernel::Answered { id, answer });
}

/// What was asked first of a run.
pub(super) fn next(run: u64) -> Option<RunCommand> {
    with(run, |going| going.commands.pop_front()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(run: u64) {
        runs().push(Going::new(run));
        open(run);
    }

    #[test]
    fn a_run_hears_its_own_buttons_in_order() {
        let (one, other) = (u64::MAX, u64::MAX - 1);
        begin(one);
        pressed(one, RunAction::Pause);
        pressed(other, RunAction::Stop);
        pressed(one, RunAction::HalveRate);
        let asked = [next(one), next(one), next(one), next(other)];
        let scaled = Some(RunCommand::ScaleRate(0.5));
        assert_eq!(asked, [Some(RunCommand::Pause), scaled, None, None]);
        for _ in 0..2 * MOST_COMMANDS {
            pressed(one, RunAction::Step);
        }
        let heard = std::iter::from_fn(|| next(one)).count();
        assert_eq!(heard, MOST_COMMANDS);
        close(one);
        pressed(one, RunAction::Step);
        assert_eq!(next(one), None);
    }

    #[test]
    fn a_request_reaches_the_run_that_it_names() {
        let (run, gone) = (u64::MAX - 2, u64::MAX - 3);
        begin(run);
        let request = |run, action: &str| RunRequest {
            run: Some(run),
            from: "comm".to_owned(),
            action: action.to_owned(),
            ..RunRequest::default()
        };
        assert_eq!(passed_on(7, request(run, "pause")), Ok(()));
        let heard = next(run).expect("one request");
        assert!(
            matches!(heard, RunCommand::Request { number: 7, request } if request.action == "pause")
        );
        let refused = passed_on(8, request(gone, "pause")).expect_err("it is not there");
        assert_eq!(refused["error"]["code"], "no_run");
        let listed = passed_on(9, request(run, RUNS)).expect_err("it is answered at once");
        let runs = listed["result"]["training"].as_array().expect("a list");
        assert!(
            runs.iter()
                .any(|it| it["run"] == run && it["state"] == "training")
        );
        close(run);
    }
}
