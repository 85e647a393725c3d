//! Commands to the workers, their answers, and what happens when one is lost.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Event, EventKind, LOOK, Shared, WorkerSource};
use crate::fault::{Fault, Outcome};
use crate::frame::Kind;
use crate::hop::Closer;
use crate::link::Link;
use crate::message::{self, MOST_BYTES, WAITS};

impl Shared {
    pub(super) fn address_of(&self, seat: usize) -> Option<String> {
        match &self.source {
            WorkerSource::At(addresses) => addresses.get(seat).map(|(name, _)| name.clone()),
            WorkerSource::Started(..) | WorkerSource::Awaited(_) => None,
        }
    }

    /// The folder with the key; `None` where no process is started, and once the job is over.
    pub(super) fn folder(&self) -> Option<std::path::PathBuf> {
        let folder = self.folder.lock();
        folder.as_ref().map(|it| it.path().to_owned())
    }

    /// What the worker of a seat has written, in that folder.
    pub(super) fn log(&self, seat: usize) -> Option<std::path::PathBuf> {
        Some(self.folder()?.join(format!("worker-{}.log", seat + 1)))
    }

    pub(super) fn send(&self, seat: usize, number: u64, command: &message::Command) -> Outcome<()> {
        let (id, commands) = {
            let mut state = self.state.lock();
            let seat = state.seats.get_mut(seat - 1);
            let member = seat.and_then(|it| it.member.as_mut());
            let member = member.ok_or(Fault::Closed)?;
            member.answers.insert(number, None);
            (member.id, Arc::clone(&member.commands))
        };
        let bytes = command.encoded();
        let sent = commands.lock().send_message(Kind::Command, number, &bytes);
        sent.inspect_err(|fault| self.lose(seat, id, fault.clone()))
    }

    pub(super) fn answer(
        &self,
        seat: usize,
        number: u64,
        asked: &dyn Fn() -> bool,
    ) -> Outcome<Vec<u8>> {
        let mut state = self.state.lock();
        loop {
            let member = state
                .seats
                .get_mut(seat - 1)
                .and_then(|it| it.member.as_mut());
            let member = member.ok_or(Fault::Closed)?;
            // Who has the seat now may not be who was sent the command.
            let answer = member.answers.get_mut(&number).ok_or(Fault::Closed)?;
            if let Some(answer) = answer.take() {
                // Of commands before this one nobody wants an answer any more.
                member.answers.retain(|&other, _| other > number);
                return answer;
            }
            if asked() {
                return Err(Fault::Aborted);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Reads what a worker says until it is lost.
    pub(super) fn hear(&self, seat: usize, id: u64, answers: &mut Link) {
        let fault = loop {
            let frame = match answers.receive_message(MOST_BYTES) {
                Ok(frame) => frame,
                Err(fault) => break fault,
            };
            let mut state = self.state.lock();
            let member = state.seats[seat - 1].member.as_mut();
            let Some(member) = member.filter(|member| member.id == id) else {
                return;
            };
            member.heard = Instant::now();
            match frame.kind {
                Kind::Heartbeat => match serde_json::from_slice(&frame.payload) {
                    Ok(pulse) => member.pulse = pulse,
                    Err(error) => break Fault::refused(error.to_string()),
                },
                Kind::Answer => match message::decoded(frame.payload) {
                    Ok(answer) => {
                        // It says so itself, half a second later.
                        WAITS.clone_into(&mut member.pulse.doing);
                        if let Some(wanted) = member.answers.get_mut(&frame.step) {
                            *wanted = Some(answer);
                        }
                    }
                    Err(fault) => break fault,
                },
                kind => break Fault::refused(format!("{kind:?} from a worker")),
            }
            drop(state);
            self.changed.notify_all();
        };
        self.lose(seat, id, fault);
    }

    /// The worker is lost: nothing of it is believed any more, and nobody waits for it.
    pub(super) fn lose(&self, seat: usize, id: u64, fault: Fault) {
        if self.is_over.load(Ordering::SeqCst) {
            return;
        }
        let (member, child) = {
            let mut state = self.state.lock();
            let Some(it) = state.seats.get_mut(seat - 1) else {
                return;
            };
            let Some(member) = it.member.take_if(|member| member.id == id) else {
                return;
            };
            it.next = Some(Instant::now());
            it.reason = fault.to_string();
            let child = it.child.take();
            state.version += 1;
            state.losing += 1;
            (member, child)
        };
        member.closers.iter().for_each(Closer::close);
        self.changed.notify_all();
        self.abort();
        let silent = member.heard.elapsed();
        let fault = ended(fault, child);
        let mut state = self.state.lock();
        state.losing -= 1;
        state.events.push(Event {
            seat,
            process: Some(member.process),
            after: self.begun.elapsed(),
            kind: EventKind::Lost {
                fault,
                silent,
                pulse: member.pulse,
            },
        });
        self.changed.notify_all();
    }

    /// Ends the collective that is going on, at all members.
    pub(super) fn abort(&self) {
        if let Some(aborter) = &*self.aborter.lock() {
            aborter.abort();
        }
        let generation = self.generation.load(Ordering::SeqCst);
        let others: Vec<Arc<Mutex<Link>>> = {
            let state = self.state.lock();
            let members = state.seats.iter().filter_map(|it| it.member.as_ref());
            members.map(|member| Arc::clone(&member.commands)).collect()
        };
        for commands in others {
            // A worker that the message does not reach is noticed by its own reader.
            let _ = commands.lock().send(Kind::Abort, generation, &[]);
        }
    }
}

/// How long it is waited for the end of a process that has closed its connection.
pub(super) const ENDING: Duration = Duration::from_secs(2);

/// The fault, with what became of the process. It is killed: one that hangs must not come back to life.
fn ended(fault: Fault, child: Option<Child>) -> Fault {
    let Some(mut child) = child else { return fault };
    // A process that has closed its connection is about to end, on a busy machine a while later.
    let until = Instant::now()
        + if fault == Fault::Closed {
            ENDING
        } else {
            Duration::ZERO
        };
    let mut status = child.try_wait().ok().flatten();
    while status.is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait().ok().flatten();
    }
    match status {
        Some(status) => Fault::Broken(format!("its process ended with {status}")),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            fault
        }
    }
}
