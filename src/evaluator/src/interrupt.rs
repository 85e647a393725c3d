//! Interrupts a cell. A compile is interrupted by killing the compiler, which loses nothing. A running cell is asked over
//! the wire; if it does not end in time, its process is killed.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use stratoscope_diagnostics::Diagnostic;
use stratoscope_wire::{InspectAnswer, InspectQuestion, RunAction, RunAnswer, RunRequest, ToCells};

use super::debugging::{self, Debugging};
use super::inspector::Inspector;
use super::link::Link;
use super::relay::{Phase, Relay};
use stratoscope_os::process;
use stratoscope_session::{CellLine, Debuggee, Interrupt};

/// A cell that was asked and has not said that it heard is given this long.
const GRACE: Duration = Duration::from_secs(3);
/// One that heard, and finishes a training step, is given this long.
const GRACE_HEARD: Duration = Duration::from_secs(60);
/// A request to a run that is not answered after this time is given up; it may still be done. A validation may take long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Why a value is not read while the process is stopped.
const STOPPED: &str =
    "the cell is stopped at a breakpoint: its values are in the frames of the call stack";
/// How often it is looked whether the cell has ended.
const PERIOD: Duration = Duration::from_millis(20);

/// The handle that other threads hold.
#[derive(Clone)]
pub struct Handle {
    /// What the cell is doing.
    pub relay: Arc<Relay>,
    /// Where it is asked.
    pub link: Arc<Link>,
    /// The cell process; evcxr puts a new one into the same place.
    pub process: Arc<Mutex<Child>>,
    /// The process that keeps a compiler ready; it is not killed.
    pub standby: Option<u32>,
    /// What is known of the variables.
    pub inspector: Inspector,
    /// Whether cells are debugged.
    pub debugging: Arc<Debugging>,
}

impl Interrupt for Handle {
    fn interrupt(&self) {
        let (cell, phase) = self.relay.progress();
        if phase == Phase::Idle || !self.relay.note_interrupt() {
            return;
        }
        let handle = self.clone();
        let _ = std::thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(move || handle.pursue(cell));
    }

    fn kill(&self) {
        self.kill_compilers();
        self.kill_process();
    }

    fn control(&self, run: u64, action: RunAction) {
        self.link.send(&ToCells::Control { run, action });
    }

    fn request(&self, request: RunRequest) -> Option<RunAnswer> {
        self.link.request(request, REQUEST_TIMEOUT)
    }

    fn inspect_values(&self, question: InspectQuestion) -> InspectAnswer {
        self.inspector.ask_meanwhile(question)
    }

    fn known_values(&self, question: InspectQuestion) -> InspectAnswer {
        match question {
            InspectQuestion::Variables => self.inspector.named(&question, None),
            _ => InspectAnswer::missing(STOPPED),
        }
    }

    fn set_debugging(&self, adapter: Option<u32>, has_information: bool) {
        self.debugging.set(adapter, has_information);
    }

    fn judged(&self, diagnostic: Diagnostic) -> Option<Diagnostic> {
        let mut settings = self.relay.settings();
        let shown = settings.judged(diagnostic, None)?;
        Some(shown.in_profile(settings.profile))
    }

    fn debuggee(&self) -> Option<Debuggee> {
        Some(Debuggee {
            process: self.process.try_lock().ok()?.id(),
            formatters: self.debugging.formatters.clone(),
        })
    }

    fn compiled_lines(&self) -> BTreeMap<u32, CellLine> {
        self.debugging.compiled_lines()
    }
}

impl Handle {
    /// Until the cell is over.
    fn pursue(&self, cell: u64) {
        let mut asked = None;
        loop {
            match self.relay.progress() {
                (now, phase) if now != cell || phase == Phase::Idle => return,
                // It hears nothing: the debugger lets it go on, or is given up.
                (_, Phase::Running) if self.is_stopped_by_the_debugger() => asked = None,
                (_, Phase::Running) => match asked {
                    None => {
                        self.link.send(&ToCells::Interrupt);
                        asked = Some(Instant::now());
                    }
                    Some(since) => {
                        let (_, heard) = self.relay.interruption();
                        let grace = if heard { GRACE_HEARD } else { GRACE };
                        if !heard {
                            // A cell that was just being loaded forgets what was asked before it.
                            self.link.send(&ToCells::Interrupt);
                        }
                        if Instant::now().duration_since(since) > grace {
                            self.kill_process();
                            return;
                        }
                    }
                },
                // A cell that has ended is still waiting to be reported.
                _ if asked.is_some() => {}
                _ => self.kill_compilers(),
            }
            std::thread::sleep(PERIOD);
        }
    }

    /// Ends every process that descends from this one, but not the cell process and its own.
    fn kill_compilers(&self) {
        let Some(cells) = self.process_id() else {
            return;
        };
        let of_debugger: Vec<u32> = (self.debugging.adapter().into_iter())
            .flat_map(|adapter| {
                let servers = process::descendants(adapter, None);
                std::iter::once(adapter).chain(servers)
            })
            .collect();
        for process in process::descendants(std::process::id(), Some(cells)) {
            if Some(process) == self.standby || of_debugger.contains(&process) {
                continue;
            }
            process::kill(process);
        }
    }

    fn is_stopped_by_the_debugger(&self) -> bool {
        self.debugging.adapter().is_some() && self.process_id().is_some_and(debugging::is_stopped)
    }

    fn process_id(&self) -> Option<u32> {
        self.process.lock().ok().map(|process| process.id())
    }

    fn kill_process(&self) {
        let mut process = match self.process.try_lock() {
            Ok(process) => process,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // evcxr holds it while it waits for a process that is dying already.
            Err(TryLockError::WouldBlock) => return,
        };
        let _ = process.kill();
    }
}
