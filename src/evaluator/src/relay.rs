//! What the running cell has reported and where its outputs go: shared by the threads that read the wire and the pipes,
//! the evaluator's thread, and threads that interrupt.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stratoscope_cell_syntax::CellSyntax;
use stratoscope_diagnostics::{Diagnostic, Profile};
use stratoscope_wire::{Described, KeptVariable, MimeBundle, ToCells, ToKernel};

use super::link::Link;
use super::show;
use super::streams::Heard;
use stratoscope_session::DiagnosticSettings;
use stratoscope_session::{OutputSink, Stream};

/// What the evaluator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No cell.
    Idle = 0,
    /// Checking, analyzing or compiling a cell.
    Compiling = 1,
    /// The cell process runs it.
    Running = 2,
}

/// How the cell process said that the cell ended early.
#[derive(Clone, Debug)]
pub enum Ending {
    /// A `?` met an error.
    Failed {
        diagnostic: Option<Box<Diagnostic>>,
        message: String,
        line: Option<usize>,
    },
    /// It panicked.
    Panicked {
        message: String,
        line: Option<usize>,
        location: Option<String>,
    },
    /// It could not be loaded, and has not begun.
    NotLoaded { reason: String },
}

impl Ending {
    /// The line of the cell it came from.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Failed { line, .. } | Self::Panicked { line, .. } => *line,
            Self::NotLoaded { .. } => None,
        }
    }
}

/// What the standard library said before it ended the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastWords {
    /// The stack is used up.
    StackOverflow,
    /// So many bytes could not be had.
    OutOfMemory(String),
    /// A panic came where none can be caught.
    Panic,
}

impl LastWords {
    /// Those in this text of standard error.
    fn find(text: &str) -> Option<Self> {
        if text.contains("has overflowed its stack") {
            return Some(Self::StackOverflow);
        }
        if text.contains("non-unwinding panic. aborting")
            || text.contains("panicked while processing panic. aborting")
        {
            return Some(Self::Panic);
        }
        let (_, rest) = text.split_once("memory allocation of ")?;
        let (bytes, _) = rest.split_once(" bytes failed")?;
        Some(Self::OutOfMemory(bytes.to_owned()))
    }
}

/// The cell whose outputs are being received: the running one, or the last.
#[derive(Clone)]
pub struct Current {
    /// Its text, parsed once for all that read it.
    pub cell: CellSyntax,
    /// `In[number]`.
    pub number: u64,
    /// Where what it shows goes.
    pub outputs: Arc<dyn OutputSink>,
    /// The version of TensorFlow whose words its cards quote.
    pub profile: Option<Profile>,
    /// The cards of its errors.
    pub cards: Arc<Mutex<Vec<MimeBundle>>>,
}

impl Current {
    /// The cell as typed.
    pub fn code(&self) -> &str {
        self.cell.code()
    }
}

/// Longer than each of [`LastWords`].
const SENTENCE_BYTES: usize = 200;

/// How many cells are remembered for what their threads say later.
const MOST_CELLS: usize = 1000;

/// See the module.
#[derive(Default)]
pub struct Relay {
    current: Mutex<Option<Current>>,
    /// The cells by their runs in the present process.
    runs: Mutex<BTreeMap<u64, Current>>,
    ending: Mutex<Option<Ending>>,
    kept: Mutex<Option<Vec<KeptVariable>>>,
    phase: AtomicU8,
    /// Counts executed cells.
    generation: AtomicU64,
    interrupted: AtomicBool,
    heard: AtomicBool,
    link: Mutex<Option<Arc<Link>>>,
    settings: Mutex<DiagnosticSettings>,
    described: Mutex<Vec<Described>>,
    last_words: Mutex<Option<LastWords>>,
    /// The end of what standard error has said: a sentence may come in pieces.
    tail: Mutex<String>,
}

impl Relay {
    /// The wire, once it listens: answers go there.
    pub fn connect(&self, link: &Arc<Link>) {
        *lock(&self.link) = Some(Arc::clone(link));
    }

    /// What `%profile` and `%warnings` set.
    pub fn settings(&self) -> MutexGuard<'_, DiagnosticSettings> {
        lock(&self.settings)
    }

    /// What the cell process has reported about its variables, once.
    pub fn take_described(&self) -> Vec<Described> {
        std::mem::take(&mut *lock(&self.described))
    }

    /// Says something to the cell process, if there is one.
    pub fn send(&self, message: &ToCells) {
        let link = lock(&self.link).clone();
        if let Some(link) = link {
            link.send(message);
        }
    }

    /// A cell begins.
    pub fn begin(&self, current: Current) {
        *lock(&self.ending) = None;
        *lock(&self.kept) = None;
        *lock(&self.current) = Some(current);
        self.interrupted.store(false, Ordering::SeqCst);
        self.heard.store(false, Ordering::SeqCst);
        *lock(&self.last_words) = None;
        lock(&self.tail).clear();
        self.settings().policy.begin();
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.set_phase(Phase::Compiling);
    }

    /// The cell is over; returns what it said about its end.
    pub fn end(&self) -> Option<Ending> {
        self.set_phase(Phase::Idle);
        lock(&self.ending).take()
    }

    /// What a cell that was ended early has kept of its own; `None`: it went to its end.
    pub fn take_kept(&self) -> Option<Vec<KeptVariable>> {
        lock(&self.kept).take()
    }

    /// Whether the interrupt button was pressed, and whether the cell heard.
    pub fn interruption(&self) -> (bool, bool) {
        (
            self.interrupted.load(Ordering::SeqCst),
            self.heard.load(Ordering::SeqCst),
        )
    }

    /// The interrupt button was pressed; `false` when it was before.
    pub fn note_interrupt(&self) -> bool {
        !self.interrupted.swap(true, Ordering::SeqCst)
    }

    /// Which cell it is, and what it does.
    pub fn progress(&self) -> (u64, Phase) {
        let phase = match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Idle,
            1 => Phase::Compiling,
            _ => Phase::Running,
        };
        (self.generation.load(Ordering::SeqCst), phase)
    }

    /// The cell process says that it starts or has ended a cell.
    pub fn set_running(&self, running: bool) {
        let (from, to) = match running {
            true => (Phase::Compiling, Phase::Running),
            false => (Phase::Running, Phase::Compiling),
        };
        // Not after the cell: this arrives on another thread.
        let (relaxed, order) = (Ordering::SeqCst, Ordering::SeqCst);
        let _ = self
            .phase
            .compare_exchange(from as u8, to as u8, order, relaxed);
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// The running cell, or the last.
    pub fn current(&self) -> Option<Current> {
        lock(&self.current).clone()
    }

    /// What the standard library said before it ended the process.
    pub fn last_words(&self) -> Option<LastWords> {
        lock(&self.last_words).clone()
    }

    /// What was heard of the process's streams.
    pub fn hear(&self, heard: Heard<'_>) {
        match heard {
            Heard::Begins(run) => self.begins(run),
            Heard::Text(stream, text) => self.stream(self.current(), stream, text),
            Heard::Foreign(run, stream, text) => self.stream(self.of_run(run), stream, text),
        }
    }

    /// The cell that is being executed is this run.
    fn begins(&self, run: u64) {
        let mut runs = lock(&self.runs);
        match self.current() {
            Some(current) => runs.insert(run, current),
            None => runs.remove(&run),
        };
        if runs.len() > MOST_CELLS {
            runs.pop_first();
        }
    }

    /// The cell that was this run; where that is forgotten, the last one.
    fn of_run(&self, run: u64) -> Option<Current> {
        let found = lock(&self.runs).get(&run).cloned();
        found.or_else(|| self.current())
    }

    fn stream(&self, cell: Option<Current>, stream: Stream, text: &str) {
        if stream == Stream::Stderr {
            let mut tail = lock(&self.tail);
            tail.push_str(text);
            if let Some(words) = LastWords::find(&tail) {
                *lock(&self.last_words) = Some(words);
            }
            let keep = tail.len().saturating_sub(SENTENCE_BYTES);
            let keep = (keep..).find(|&at| tail.is_char_boundary(at));
            tail.drain(..keep.unwrap_or(0));
        }
        if let Some(cell) = cell {
            cell.outputs.stream(stream, text);
        }
    }

    /// A message of the cell process.
    pub fn receive(self: &Arc<Self>, message: ToKernel) {
        match message {
            ToKernel::ForeignOutput { run, message } => {
                self.receive_for(self.of_run(run), *message)
            }
            message => self.receive_for(self.current(), message),
        }
    }

    fn receive_for(self: &Arc<Self>, cell: Option<Current>, message: ToKernel) {
        let Some(current) = cell else {
            return;
        };
        let outputs = &current.outputs;
        match message {
            ToKernel::Display {
                data,
                metadata,
                display_id,
                update,
            } => outputs.display(data, metadata, display_id, update),
            ToKernel::Result { data } => outputs.result(data),
            ToKernel::ClearOutput { wait } => outputs.clear(wait),
            ToKernel::Controls { run, state } => outputs.run_controls(run, state),
            ToKernel::Diagnostic { diagnostic, line } => {
                let judged = self.settings().judged(*diagnostic, line);
                if let Some(diagnostic) = judged {
                    // What has no place is about the whole cell.
                    let line = line.filter(|_| !diagnostic.labels.is_empty());
                    show::diagnostic(diagnostic, line, &current);
                }
            }
            ToKernel::Failed {
                diagnostic,
                message,
                line,
            } => {
                *lock(&self.ending) = Some(Ending::Failed {
                    diagnostic,
                    message,
                    line,
                });
            }
            ToKernel::Panicked {
                message,
                line,
                location,
            } => {
                *lock(&self.ending) = Some(Ending::Panicked {
                    message,
                    line,
                    location,
                });
            }
            ToKernel::NotLoaded { reason } => {
                *lock(&self.kept) = Some(Vec::new());
                *lock(&self.ending) = Some(Ending::NotLoaded { reason });
            }
            ToKernel::Input { prompt, password } => self.ask(current, prompt, password),
            ToKernel::Kept { variables } => *lock(&self.kept) = Some(variables),
            ToKernel::Described { variables } => *lock(&self.described) = variables,
            ToKernel::Interrupted => self.heard.store(true, Ordering::SeqCst),
            // The link handles the first four; output of an earlier cell is not wrapped twice.
            ToKernel::Hello { .. }
            | ToKernel::Synced { .. }
            | ToKernel::Inspected { .. }
            | ToKernel::Answered { .. }
            | ToKernel::ForeignOutput { .. } => {}
        }
    }

    /// Asks the person, on a thread of its own: outputs of other threads go on meanwhile.
    fn ask(self: &Arc<Self>, current: Current, prompt: String, password: bool) {
        let relay = Arc::clone(self);
        let asking = move || {
            let text = current.outputs.input(&prompt, password);
            if text.is_none() && relay.interruption().0 {
                // Before the answer, so that the cell knows why there is none.
                relay.send(&ToCells::Interrupt);
            }
            relay.send(&ToCells::InputReply { text });
        };
        let _ = std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(asking);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
