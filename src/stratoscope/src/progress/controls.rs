//! The buttons below a run's table, as the cell process knows them: the kernel draws them and says which was pressed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stratoscope_train::events::RunCommand;
use stratoscope_wire::{RunAction, RunState, ToKernel};

use crate::connection;

/// More presses than a run has answered are dropped.
const MOST_COMMANDS: usize = 64;

/// The runs that are going on, each with what was asked and not yet answered.
static RUNS: Mutex<Vec<(u64, VecDeque<RunCommand>)>> = Mutex::new(Vec::new());

fn runs() -> MutexGuard<'static, Vec<(u64, VecDeque<RunCommand>)>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run begins: its buttons are shown.
pub(super) fn open(run: u64) {
    runs().push((run, VecDeque::new()));
    set(run, RunState::Running);
}

/// A run pauses or goes on.
pub(super) fn set(run: u64, state: RunState) {
    connection::send(&ToKernel::Controls { run, state });
}

/// A run is over: its buttons disappear.
pub(super) fn close(run: u64) {
    let known = {
        let mut runs = runs();
        let before = runs.len();
        runs.retain(|(number, _)| *number != run);
        runs.len() < before
    };
    if known {
        set(run, RunState::Ended);
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
    let mut runs = runs();
    let waiting = runs.iter_mut().find(|(number, _)| *number == run);
    if let Some((_, commands)) = waiting.filter(|(_, commands)| commands.len() < MOST_COMMANDS) {
        commands.push_back(command);
    }
}

/// What was asked first of a run.
pub(super) fn next(run: u64) -> Option<RunCommand> {
    let mut runs = runs();
    let (_, commands) = runs.iter_mut().find(|(number, _)| *number == run)?;
    commands.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_hears_its_own_buttons_in_order() {
        let (one, other) = (u64::MAX, u64::MAX - 1);
        open(one);
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
}
