//! What happened to workers, as cards.

use stratoscope_diagnostics::rules::{WorkerCame, WorkerLost};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::units;
use stratoscope_workers::{Event, EventKind, Fault, Process, Pulse, Team};

use stratoscope_arguments::context::warnings::notice;

use crate::StepState;

/// `worker 2 (process 4711 on node1)`.
fn named(seat: usize, process: Option<&Process>) -> String {
    match process {
        Some(process) => format!("worker {seat} ({process})"),
        None => format!("worker {seat}"),
    }
}

/// The same for who has a seat now.
pub(super) fn name_of(team: &Team, seat: usize) -> String {
    let seats = team.seats();
    let process = seats.get(seat - 1).and_then(|it| it.process.as_ref());
    named(seat, process)
}

/// What a worker did when it was last heard.
fn heard(silent: f64, pulse: &Pulse) -> String {
    match pulse.doing.as_str() {
        "" => format!("{silent:.1} s before"),
        doing => format!("{silent:.1} s before, when it said that it {doing}"),
    }
}

/// The most that a worker sends, in words: `each sends up to 175 MiB a step, 1.5 s at 1 Gb/s`; with local SGD
/// `each sends up to 350 MiB every 8 steps, 2.9 s at 1 Gb/s`.
pub fn bytes_sent(most: u64, every: u64) -> String {
    const BYTES_A_SECOND: f64 = 1e9 / 8.0;
    let time = match most as f64 / BYTES_A_SECOND {
        seconds if seconds < 0.1 => format!("{:.1} ms", 1000.0 * seconds),
        seconds => units::seconds(seconds),
    };
    let when = match every {
        0 | 1 => "a step".to_owned(),
        every => format!("every {every} steps"),
    };
    format!(
        "each sends up to {} {when}, {time} at 1 Gb/s",
        units::bytes(most)
    )
}

impl StepState {
    /// Shows what has happened to workers since this was called last.
    ///
    /// # Errors
    /// SC0808 and SC0812, where they are denied.
    pub(super) fn tell_of_workers(&mut self) -> Result<()> {
        let Some(remote) = &self.workers else {
            return Ok(());
        };
        let (team, step) = (&remote.team, self.steps);
        for event in team.events() {
            let Event {
                seat,
                process,
                kind,
                ..
            } = event;
            let worker = named(seat, process.as_ref());
            let card = match kind {
                EventKind::Lost {
                    fault,
                    silent,
                    pulse,
                } => WorkerLost {
                    worker,
                    reason: match fault {
                        Fault::Silent(_) => format!("{fault}; it hangs, or the network is cut"),
                        fault => fault.to_string(),
                    },
                    heard: heard(silent.as_secs_f64(), &pulse),
                    step,
                    left: 1 + team
                        .seats()
                        .iter()
                        .filter(|it| it.process.is_some())
                        .count(),
                    replaced: team.loss_policy().replaces,
                }
                .diagnostic(),
                EventKind::Came => WorkerCame {
                    worker,
                    failed: None,
                    step,
                }
                .diagnostic(),
                EventKind::NotStarted(reason) => WorkerCame {
                    worker,
                    failed: Some(reason),
                    step,
                }
                .diagnostic(),
            };
            notice(card)?;
        }
        Ok(())
    }
}
