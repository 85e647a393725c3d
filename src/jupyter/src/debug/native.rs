//! Stops cells: `lldb-dap` is attached to the process that runs the cells while the debugger is on.
//!
//! The debugger knows the compiled text of a cell, and front ends know the cell as typed. Before a cell runs, its process calls a
//! function that is a breakpoint of ours (`stratoscope_cell_loaded`): the breakpoints of the cell, whose library is loaded by
//! then, are set by the lines of its compiled text, and the process goes on. Every stop is read with the same map.
//!
//! Front ends see one thread of the cells, which is the one that has stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use stratoscope_debugger::{CELLS, Debugger};
use stratoscope_diagnostics::rules::{DebuggerProblem, DebuggerUnavailable};
use stratoscope_session::{CellLine, Debuggee, Session};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::adapter::{self, Adapter};
use crate::message::DebugEvent;
use crate::socket::iopub::Iopub;

mod cards;
mod events;
mod frames;
mod left_traps;
mod pauses;
mod requests;
mod steps;
mod stops;

use frames::Stop;

/// A request that does not let the program run is answered within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Attaching reads the symbols of all libraries.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a cell waits for the evaluator, which knows the process.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(20);

/// The function before a cell runs.
const LOADED: &str = "stratoscope_cell_loaded";
/// Parts of the names of the functions that a panic and a failing `?` call.
const PANIC: &str = "rust_panic$";
const ERROR: &str = "evcxr.+CellError.+From";
/// How frames are listed by `thread backtrace`.
const FRAME_FORMAT: &str = r"@${frame.index}|{${module.file.basename}}|{${line.file.fullpath}}|{${line.number}}|{${function.name}}\n";
/// Limits for the formatters of Rust's values.
const LIMITS: &str = include_str!("native/limits.py");
/// Signals that are the program's own business.
const SIGNALS: &str = "SIGINT SIGTERM SIGPIPE SIGCHLD SIGUSR1 SIGUSR2 SIGALRM SIGPROF SIGVTALRM SIGWINCH SIGURG SIGCONT SIGHUP";
/// A step into one of these functions goes through it.
const LIBRARIES: &str =
    "^<?(std|core|alloc|stratoscope[a-z_]*|burn[a-z_]*|rayon[a-z_]*|hashbrown|_\\$LT\\$)";

/// Why the process is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// A front end asks for it. The number: how often the process was stopped where no cell runs, and has gone on.
    Asked(u32),
    /// Breakpoints have changed: the adapter loses stops when it sets breakpoints in a process that runs.
    ToChange,
}

/// See the module. Clones of the `Arc` share it.
pub struct Native {
    session: Arc<Session>,
    iopub: Iopub,
    debugger: Arc<Mutex<Debugger>>,
    state: Mutex<State>,
    /// Held by who talks to the adapter: events and requests take turns.
    turn: tokio::sync::Mutex<()>,
    /// The header of the request of the running cell.
    parent: Mutex<Arc<Value>>,
    /// A cell runs that has outputs.
    shows_cards: AtomicBool,
}

#[derive(Default)]
struct State {
    adapter: Option<Arc<Adapter>>,
    /// The process that it is attached to.
    process: u32,
    /// Compiled cells that are loaded, by the names of their libraries.
    libraries: BTreeMap<String, BTreeMap<u32, CellLine>>,
    /// The adapter's numbers of breakpoints.
    loaded: u64,
    panic: Option<u64>,
    error: Option<u64>,
    /// Those of the front end: the adapter's number → its own.
    installed: BTreeMap<u64, u64>,
    /// Those that end a step.
    temporary: BTreeSet<u64>,
    /// How often each of the front end's was reached.
    hits: BTreeMap<u64, u64>,
    stop: Option<Stop>,
    /// A front end steps; how often the step has gone on in libraries.
    step: Option<u32>,
    pause: Option<Pause>,
    /// The adapter has reported that the process runs, and no stop since then.
    is_running: bool,
    /// The adapter reports when the process goes on.
    reports_continued: bool,
    /// The cell's library is loaded, and the cell has not ended.
    is_cell_loaded: bool,
    /// Breakpoints of front ends have changed; the adapter learns of it when the process is stopped.
    has_changed: bool,
    /// After an interrupt: nothing stops until the next cell.
    is_disabled: bool,
    /// Why the adapter could not be attached, which was shown to a cell without breakpoints.
    shown: Option<DebuggerUnavailable>,
    /// The process that could not be attached to, and why. It is tried again when the debugger is turned on.
    refused: Option<(u32, DebuggerUnavailable)>,
}

impl Native {
    /// It is off.
    pub fn new(session: Arc<Session>, iopub: Iopub, debugger: Arc<Mutex<Debugger>>) -> Arc<Self> {
        Arc::new(Self {
            session,
            iopub,
            debugger,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            parent: Mutex::new(Arc::new(json!({}))),
            shows_cards: AtomicBool::new(false),
        })
    }

    /// A cell is about to run: with the debugger on, its process is debugged from its first statement on.
    pub async fn before_cell(
        self: &Arc<Self>,
        parent: &Arc<Value>,
        number: u64,
        code: &str,
        silent: bool,
    ) {
        *self.parent.lock() = parent.clone();
        self.shows_cards.store(!silent, Ordering::SeqCst);
        let is_started = {
            let mut debugger = self.debugger.lock();
            debugger.execute(number, code);
            debugger.is_started()
        };
        if !is_started {
            return;
        }
        if let Err(reason) = adapter::find() {
            let problem = DebuggerProblem::NotFound;
            return self.show_unavailable(DebuggerUnavailable { problem, reason }, number);
        }
        let _turn = self.turn.lock().await;
        let attached = self.ensure().await;
        match &attached {
            Ok(adapter) => {
                let process = Some(adapter.process);
                self.session.set_debugging(process, self.stops_somewhere());
            }
            Err(problem) => self.show_unavailable(problem.clone(), number),
        }
        let mut state = self.state.lock();
        state.is_cell_loaded = false;
        // At the stop before the first statement the adapter gets what was disabled or has changed.
        state.has_changed = true;
        state.is_disabled = false;
    }

    /// The running cell has ended.
    pub fn cell_ended(&self) {
        self.state.lock().is_cell_loaded = false;
    }

    /// Whether a front end has set something that stops cells.
    fn stops_somewhere(&self) -> bool {
        let debugger = self.debugger.lock();
        let filters = debugger.filters_of_cells();
        !debugger.breakpoints().is_empty() || filters.panics || filters.errors
    }

    /// The debugger was turned on: attaches before the first cell needs it.
    pub fn begin(self: &Arc<Self>) {
        let native = Arc::clone(self);
        tokio::spawn(async move {
            let _turn = native.turn.lock().await;
            native.state.lock().refused = None;
            // A cell that comes shows why.
            let _ = native.ensure().await;
        });
    }

    /// The debugger was turned off. A process that is stopped goes on.
    pub async fn end(&self) {
        let _turn = self.turn.lock().await;
        let adapter = self.state.lock().adapter.take();
        self.session.set_debugging(None, false);
        if let Some(adapter) = adapter {
            let arguments = json!({"terminateDebuggee": false});
            let _ = adapter.ask("disconnect", arguments, ANSWER_TIMEOUT).await;
        }
        self.goes_on();
        *self.state.lock() = State::default();
    }

    /// The running cell is interrupted: it goes on, and nothing stops it any more.
    pub fn interrupt(self: &Arc<Self>) {
        if self.state.lock().adapter.is_none() || !self.session.is_executing() {
            return;
        }
        let native = Arc::clone(self);
        tokio::spawn(async move {
            let _turn = native.turn.lock().await;
            let Some(adapter) = native.adapter() else {
                return;
            };
            native.state.lock().is_disabled = true;
            // A process that runs is stopped by its next breakpoint, and goes on.
            let stop = native.state.lock().stop.take();
            if let Some(stop) = stop {
                native.remove_all(&adapter).await;
                native.goes_on();
                let _ = native.resume(&adapter, stop.thread).await;
            }
        });
    }

    /// Whether a cell is stopped.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().stop.is_some()
    }

    fn adapter(&self) -> Option<Arc<Adapter>> {
        let adapter = self.state.lock().adapter.clone();
        adapter.filter(|it| it.is_open())
    }

    /// The adapter, attached to the process that runs the cells now.
    async fn ensure(self: &Arc<Self>) -> Result<Arc<Adapter>, DebuggerUnavailable> {
        let debuggee = self.debuggee().await.map_err(cards::failed)?;
        if let Some(adapter) = self.adapter()
            && self.state.lock().process == debuggee.process
        {
            return Ok(adapter);
        }
        let refused = self.state.lock().refused.clone();
        if let Some((process, reason)) = refused
            && process == debuggee.process
        {
            return Err(reason);
        }
        {
            let mut state = self.state.lock();
            let shown = state.shown.take();
            *state = State {
                shown,
                ..State::default()
            };
        }
        let program = adapter::find().map_err(|reason| DebuggerUnavailable {
            problem: DebuggerProblem::NotFound,
            reason,
        })?;
        // Else the new adapter takes the traps of one that was killed for instructions of the program.
        let process = debuggee.process;
        let _ = tokio::task::spawn_blocking(move || left_traps::remove(process)).await;
        let (events, mut inbox) = unbounded_channel();
        let adapter = Adapter::start(&program, events).map_err(|error| {
            cards::failed(format!("`{}` does not start: {error}", program.display()))
        })?;
        let adapter = Arc::new(adapter);
        self.session
            .set_debugging(Some(adapter.process), self.stops_somewhere());
        let attached = self.attach(&adapter, &debuggee, &mut inbox).await;
        if let Err(reason) = attached {
            self.session.set_debugging(None, false);
            let problem = cards::failed(reason);
            self.state.lock().refused = Some((debuggee.process, problem.clone()));
            return Err(problem);
        }
        {
            let mut state = self.state.lock();
            state.adapter = Some(Arc::clone(&adapter));
            state.process = debuggee.process;
            state.is_running = true;
            state.is_cell_loaded = self.session.is_executing();
        }
        tokio::spawn(Arc::clone(self).listen(Arc::clone(&adapter), inbox));
        Ok(adapter)
    }

    async fn debuggee(&self) -> Result<Debuggee, String> {
        let begun = Instant::now();
        loop {
            if let Some(debuggee) = self.session.debuggee() {
                return Ok(debuggee);
            }
            if begun.elapsed() > START_TIMEOUT || self.session.has_failed_to_start() {
                return Err("the process that runs the cells has not started".to_owned());
            }
            tokio::time::sleep(START_POLL).await;
        }
    }

    async fn attach(
        &self,
        adapter: &Arc<Adapter>,
        debuggee: &Debuggee,
        inbox: &mut UnboundedReceiver<Value>,
    ) -> Result<(), String> {
        let arguments = json!({"adapterID": "stratoscope", "linesStartAt1": true, "columnsStartAt1": true, "pathFormat": "path"});
        adapter.ask("initialize", arguments, ATTACH_TIMEOUT).await?;
        let formatters = &debuggee.formatters;
        let mut commands = vec![
            format!("settings set frame-format \"{FRAME_FORMAT}\""),
            format!("settings set target.process.thread.step-avoid-regexp '{LIBRARIES}'"),
        ];
        if formatters.join("lldb_lookup.py").is_file() {
            commands.push(format!(
                "command script import \"{}\"",
                formatters.join("lldb_lookup.py").display()
            ));
            commands.push(format!(
                "command source -s 1 \"{}\"",
                formatters.join("lldb_commands").display()
            ));
            commands.push(python(LIMITS));
        }
        let attaching = {
            let (adapter, process) = (Arc::clone(adapter), debuggee.process);
            tokio::spawn(async move {
                let arguments =
                    json!({"pid": process, "stopOnEntry": false, "initCommands": commands});
                adapter.ask("attach", arguments, ATTACH_TIMEOUT).await
            })
        };
        // Some versions answer when the configuration is done.
        while !attaching.is_finished() {
            let event = tokio::time::timeout(START_POLL, inbox.recv()).await;
            match event {
                Ok(Some(event)) if event["event"] == "initialized" => break,
                Ok(None) => break,
                _ => {}
            }
        }
        if attaching.is_finished() {
            let attached = attaching.await.map_err(|error| error.to_string())?;
            attached?;
            self.configure(adapter).await?;
        } else {
            self.configure(adapter).await?;
            let attached = attaching.await.map_err(|error| error.to_string())?;
            attached?;
        }
        Ok(())
    }

    /// Sets our own breakpoints, and lets the process go on.
    async fn configure(&self, adapter: &Arc<Adapter>) -> Result<(), String> {
        let signals = format!("process handle -p true -s false -n false {SIGNALS}");
        let _ = self.command(adapter, &signals).await;
        let loaded = self
            .command(adapter, &format!("breakpoint set -K false -n {LOADED}"))
            .await?;
        let loaded =
            stops::number_of(&loaded).ok_or("it does not find the process's own functions")?;
        self.state.lock().loaded = loaded;
        self.choose_filters(adapter).await;
        adapter
            .ask("configurationDone", json!({}), ATTACH_TIMEOUT)
            .await?;
        Ok(())
    }

    /// Runs a command of LLDB; what it prints.
    async fn command(&self, adapter: &Adapter, command: &str) -> Result<String, String> {
        let arguments = json!({"expression": format!("`{command}"), "context": "repl"});
        let body = adapter.ask("evaluate", arguments, ANSWER_TIMEOUT).await?;
        Ok(body["result"].as_str().unwrap_or_default().to_owned())
    }

    async fn resume(&self, adapter: &Adapter, thread: u64) -> Result<(), String> {
        adapter
            .ask("continue", json!({"threadId": thread}), ANSWER_TIMEOUT)
            .await
            .map(drop)
    }

    fn is_attached(&self, adapter: &Arc<Adapter>) -> bool {
        let state = self.state.lock();
        let attached = state.adapter.as_ref();
        attached.is_some_and(|it| Arc::ptr_eq(it, adapter))
    }

    /// The adapter is of no use any more. Whether it was in use.
    fn forget(&self, adapter: &Arc<Adapter>) -> bool {
        if !self.is_attached(adapter) {
            return false;
        }
        self.state.lock().adapter = None;
        self.session.set_debugging(None, false);
        self.goes_on();
        *self.state.lock() = State::default();
        true
    }

    /// Tells front ends that the cell is not stopped any more, if it was.
    fn goes_on(&self) {
        self.state.lock().stop = None;
        let event = {
            let mut debugger = self.debugger.lock();
            if !std::mem::take(&mut debugger.cells().is_stopped) {
                return;
            }
            debugger.event(
                "continued",
                json!({"threadId": CELLS, "allThreadsContinued": true}),
            )
        };
        self.publish(event);
    }

    fn publish(&self, event: Value) {
        let parent = self.parent.lock().clone();
        self.iopub.publish(&parent, &DebugEvent(event));
    }
}

/// The command that runs a program of Python, in one line.
fn python(program: &str) -> String {
    let digits: String = program.bytes().map(|it| format!("{it:02x}")).collect();
    format!("script exec(bytes.fromhex('{digits}').decode(), {{}})")
}
