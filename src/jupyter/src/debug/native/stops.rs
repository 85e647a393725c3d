//! What a stop means: a cell is loaded, a breakpoint was reached, a step has ended, or the process cannot go on.

use std::sync::Arc;

use serde_json::{Value, json};
use stratoscope_debugger::native::{Piece, holds, message};
use stratoscope_debugger::{Breakpoint, CELLS};
use stratoscope_diagnostics::Rule;
use stratoscope_diagnostics::rules::ConditionNotEvaluated;
use stratoscope_session::Stream;

use super::frames::Stop;
use super::{Adapter, ERROR, Native, PANIC, Pause};

/// How the adapter describes the stop behind an instruction.
const SINGLE_STEP: &str = "trace";
/// Signals by which LLDB stops threads; they may come late.
const OWN_SIGNALS: [&str; 2] = ["SIGSTOP", "SIGTRAP"];

/// What becomes of a stop.
enum Next {
    GoesOn,
    Stops(&'static str, String),
    /// A step has ended somewhere.
    HasStepped,
}

/// The number in `Breakpoint 3: …`.
pub(super) fn number_of(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("Breakpoint ")?;
    rest.split_once(':')?.0.parse().ok()
}

/// The numbers of the breakpoints in an event.
fn reached_by(body: &Value) -> Vec<u64> {
    let reached = body["hitBreakpointIds"].as_array().into_iter().flatten();
    reached.filter_map(Value::as_u64).collect()
}

impl Native {
    /// The process has stopped. `bodies`: one for each thread that has a reason, that of the cause first.
    pub(super) async fn stopped(self: &Arc<Self>, adapter: &Arc<Adapter>, bodies: &[Value]) {
        let mut reached: Vec<u64> = bodies.iter().flat_map(reached_by).collect();
        reached.sort_unstable();
        reached.dedup();
        let (temporary, is_loaded, is_disabled, has_changed, pause) = {
            let mut state = self.state.lock();
            let is_loaded = reached.contains(&state.loaded);
            (
                std::mem::take(&mut state.temporary),
                is_loaded,
                state.is_disabled,
                state.has_changed,
                state.pause.take(),
            )
        };
        let cause = bodies.first().and_then(|it| it["threadId"].as_u64());
        let cause = cause.unwrap_or(0);
        for number in &temporary {
            // One that was reached is gone by itself.
            let delete = format!("breakpoint delete {number}");
            let _ = self.command(adapter, &delete).await;
        }
        if is_disabled {
            self.remove_all(adapter).await;
            let _ = self.resume(adapter, cause).await;
            return;
        }
        if is_loaded {
            self.loaded(adapter).await;
        }
        if is_loaded || has_changed {
            self.change(adapter).await;
        }
        if is_loaded {
            let _ = self.resume(adapter, cause).await;
            return;
        }
        for body in bodies {
            let thread = body["threadId"].as_u64().unwrap_or(0);
            let Ok(stop) = self.read_stop(adapter, thread).await else {
                continue;
            };
            let reached = reached_by(body);
            let next = match reached.iter().any(|it| temporary.contains(it)) {
                true => Next::Stops("step", String::new()),
                false => self.meaning(adapter, body, &reached, &stop).await,
            };
            match next {
                Next::GoesOn => {}
                Next::HasStepped => return self.has_stepped(adapter, stop).await,
                Next::Stops(reason, text) => return self.stop_at(stop, reason, &text, &reached),
            }
        }
        if let Some(Pause::Asked(before)) = pause
            && let Some(stop) = self.paused(adapter, cause, before).await
        {
            return self.stop_at(stop, "pause", "", &[]);
        }
        let _ = self.resume(adapter, cause).await;
    }

    async fn meaning(
        &self,
        adapter: &Arc<Adapter>,
        body: &Value,
        reached: &[u64],
        stop: &Stop,
    ) -> Next {
        let (panic, error) = {
            let state = self.state.lock();
            (state.panic, state.error)
        };
        let is_reached = |number: Option<u64>| number.is_some_and(|it| reached.contains(&it));
        if stop.is_in_a_cell() && is_reached(panic) {
            return Next::Stops("exception", "a panic".to_owned());
        }
        if stop.is_in_a_cell() && is_reached(error) {
            return Next::Stops("exception", "a `?` that ends the cell".to_owned());
        }
        let text = body["text"].as_str().or(body["description"].as_str());
        let text = text.unwrap_or_default();
        match body["reason"].as_str().unwrap_or_default() {
            "breakpoint" => {
                for breakpoint in self.reached(reached) {
                    if self.stops_at(adapter, &breakpoint, stop).await {
                        return Next::Stops("breakpoint", String::new());
                    }
                }
                Next::GoesOn
            }
            // That of a single instruction belongs to a step that goes on.
            "step" if text != SINGLE_STEP => Next::HasStepped,
            "exception" | "signal" if !OWN_SIGNALS.iter().any(|it| text.ends_with(it)) => {
                Next::Stops("exception", text.to_owned())
            }
            _ => Next::GoesOn,
        }
    }

    /// The breakpoints of front ends with these numbers.
    fn reached(&self, numbers: &[u64]) -> Vec<Breakpoint> {
        let ids = self.ids_of(numbers);
        let debugger = self.debugger.lock();
        let all = debugger.breakpoints().iter();
        all.filter(|it| ids.contains(&it.id)).cloned().collect()
    }

    fn ids_of(&self, numbers: &[u64]) -> Vec<u64> {
        let state = self.state.lock();
        let known = numbers.iter().filter_map(|it| state.installed.get(it));
        known.copied().collect()
    }

    /// Whether the condition holds. One that cannot be evaluated stops, too. LLDB's own conditions let `lldb-dap` 19 hang at times.
    async fn condition_holds(
        &self,
        adapter: &Adapter,
        (condition, line): (&str, u32),
        stop: &Stop,
    ) -> bool {
        match self.value_of(adapter, condition, stop.top()).await {
            Ok(body) => holds(body["result"].as_str().unwrap_or_default()),
            Err(reason) => {
                let found = ConditionNotEvaluated {
                    condition: condition.to_owned(),
                    line,
                    reason: reason.trim_start_matches("error: ").trim_end().to_owned(),
                };
                self.show(found.diagnostic());
                true
            }
        }
    }

    /// Whether a breakpoint that was reached stops the cell. A log point prints.
    async fn stops_at(&self, adapter: &Adapter, breakpoint: &Breakpoint, stop: &Stop) -> bool {
        if let Some(condition) = &breakpoint.condition
            && !self
                .condition_holds(adapter, (condition, breakpoint.line), stop)
                .await
        {
            return false;
        }
        let hit = {
            let mut state = self.state.lock();
            let hit = state.hits.entry(breakpoint.id).or_insert(0);
            *hit += 1;
            *hit
        };
        if breakpoint.hits.is_some_and(|it| !it.stops(hit)) {
            return false;
        }
        let Some(template) = &breakpoint.message else {
            return true;
        };
        let mut text = String::new();
        for piece in message(template) {
            let rust = match piece {
                Piece::Text(piece) => {
                    text += &piece;
                    continue;
                }
                Piece::Expression(rust) => rust,
            };
            match self.value_of(adapter, &rust, stop.top()).await {
                Ok(body) => text += body["result"].as_str().unwrap_or_default(),
                Err(reason) => text += &format!("<{}>", reason.trim_start_matches("error: ")),
            }
        }
        text.push('\n');
        let parent = self.parent.lock().clone();
        // It waits while the queue is full.
        tokio::task::block_in_place(|| {
            self.iopub.publish_text(&parent, Stream::Stdout, &text);
        });
        let source = json!({"path": breakpoint.path});
        let body = json!({"category": "console", "output": text, "source": source, "line": breakpoint.line});
        let event = self.debugger.lock().event("output", body);
        self.publish(event);
        false
    }

    /// Tells front ends.
    pub(super) fn stop_at(&self, stop: Stop, reason: &str, text: &str, reached: &[u64]) {
        let mut body = json!({
            "reason": reason, "threadId": CELLS, "allThreadsStopped": true, "preserveFocusHint": false,
            "hitBreakpointIds": self.ids_of(reached),
        });
        if !text.is_empty() {
            body["text"] = text.into();
            body["description"] = text.into();
        }
        {
            let mut state = self.state.lock();
            state.stop = Some(stop);
            state.step = None;
        }
        let event = {
            let mut debugger = self.debugger.lock();
            debugger.cells().is_stopped = true;
            debugger.event("stopped", body)
        };
        self.publish(event);
    }

    /// A cell is loaded and has not run: its lines are read, and its breakpoints set.
    async fn loaded(&self, adapter: &Arc<Adapter>) {
        let said = self.command(adapter, "image list -b").await;
        let said = said.unwrap_or_default();
        let Some(name) = newest_cell(&said) else {
            return;
        };
        let lines = self.session.compiled_lines();
        {
            let mut state = self.state.lock();
            state.libraries.insert(name.to_owned(), lines);
            state.is_cell_loaded = true;
        }
        let breakpoints = self.debugger.lock().breakpoints().to_vec();
        let installed = self.state.lock().installed.clone();
        for breakpoint in &breakpoints {
            // Those that are new are set in all libraries.
            if installed.values().any(|it| *it == breakpoint.id) {
                self.install(adapter, name, breakpoint).await;
            }
        }
    }

    /// Removes all breakpoints of front ends; [`Native::change`] sets them again. The process is stopped.
    pub(super) async fn remove_all(&self, adapter: &Adapter) {
        let numbers: Vec<String> = {
            let mut state = self.state.lock();
            let installed = std::mem::take(&mut state.installed).into_keys();
            let filters = state.panic.take().into_iter().chain(state.error.take());
            installed.chain(filters).map(|it| it.to_string()).collect()
        };
        if !numbers.is_empty() {
            let delete = format!("breakpoint delete {}", numbers.join(" "));
            let _ = self.command(adapter, &delete).await;
        }
    }

    /// Sets the breakpoints that are new, in all libraries, and removes those that are gone. The process
    /// is stopped.
    pub(super) async fn change(&self, adapter: &Arc<Adapter>) {
        self.state.lock().has_changed = false;
        let wanted = self.debugger.lock().breakpoints().to_vec();
        let installed = self.state.lock().installed.clone();
        let is_wanted = |id: u64| wanted.iter().any(|it| it.id == id);
        for (number, _) in installed.iter().filter(|(_, id)| !is_wanted(**id)) {
            let delete = format!("breakpoint delete {number}");
            let _ = self.command(adapter, &delete).await;
            self.state.lock().installed.remove(number);
        }
        let libraries: Vec<String> = self.state.lock().libraries.keys().cloned().collect();
        let is_installed = |id: u64| installed.values().any(|it| *it == id);
        for breakpoint in wanted.iter().filter(|it| !is_installed(it.id)) {
            for library in &libraries {
                self.install(adapter, library, breakpoint).await;
            }
        }
        self.choose_filters(adapter).await;
    }

    /// Sets a breakpoint in a library, if the library has its cell.
    async fn install(&self, adapter: &Arc<Adapter>, library: &str, breakpoint: &Breakpoint) {
        let Some(line) = self.compiled_line(library, breakpoint) else {
            return;
        };
        let command = format!("breakpoint set --shlib {library} --file lib.rs --line {line}");
        if let Some(number) = self.set(adapter, &command).await {
            let mut state = self.state.lock();
            state.installed.insert(number, breakpoint.id);
        }
    }

    /// The line in the library's text; the next one behind it where nothing is compiled of the line.
    fn compiled_line(&self, library: &str, breakpoint: &Breakpoint) -> Option<u32> {
        let debugger = self.debugger.lock();
        let state = self.state.lock();
        let lines = state.libraries.get(library)?.iter();
        let is_of_cell = |cell| debugger.path_of(cell).as_ref() == Some(&breakpoint.path);
        let behind = lines.filter(|(_, it)| it.line >= breakpoint.line && is_of_cell(it.cell));
        let next = behind.min_by_key(|(compiled, it)| (it.line, **compiled));
        next.map(|(compiled, _)| *compiled)
    }

    /// Sets a breakpoint that stops once each time its line begins; its number.
    pub(super) async fn set(&self, adapter: &Arc<Adapter>, command: &str) -> Option<u64> {
        let said = self.command(adapter, command).await.ok()?;
        let number = number_of(&said)?;
        if said.contains(" locations") {
            // A line that calls a macro is in several pieces.
            let list = format!("breakpoint list -f {number}");
            let listed = self.command(adapter, &list).await;
            let later = later_pieces(&listed.unwrap_or_default());
            if !later.is_empty() {
                let disable = format!("breakpoint disable {}", later.join(" "));
                let _ = self.command(adapter, &disable).await;
            }
        }
        Some(number)
    }

    /// Sets the breakpoints of panics and errors that front ends have chosen.
    pub(super) async fn choose_filters(&self, adapter: &Arc<Adapter>) {
        let chosen = self.debugger.lock().filters_of_cells();
        let (panic, error) = {
            let state = self.state.lock();
            (state.panic, state.error)
        };
        let panic = self.choose(adapter, chosen.panics, panic, PANIC).await;
        let error = self.choose(adapter, chosen.errors, error, ERROR).await;
        let mut state = self.state.lock();
        (state.panic, state.error) = (panic, error);
    }

    async fn choose(
        &self,
        adapter: &Adapter,
        is_chosen: bool,
        number: Option<u64>,
        function: &str,
    ) -> Option<u64> {
        match (is_chosen, number) {
            (true, None) => {
                let set = format!("breakpoint set -r '{function}'");
                number_of(&self.command(adapter, &set).await.ok()?)
            }
            (false, Some(number)) => {
                let delete = format!("breakpoint delete {number}");
                let _ = self.command(adapter, &delete).await;
                None
            }
            (_, number) => number,
        }
    }
}

/// Before and behind the number in the name of a cell's library.
pub(super) const LIBRARY: (&str, &str) = ("libcode_", ".so");

/// The library of the cell that was loaded last, among all libraries.
fn newest_cell(listed: &str) -> Option<&str> {
    let names = listed.split_whitespace();
    let numbered = names.filter_map(|name| {
        let number = name.strip_prefix(LIBRARY.0)?.strip_suffix(LIBRARY.1)?;
        Some((number.parse::<u64>().ok()?, name))
    });
    numbered.max().map(|(_, name)| name)
}

/// Of the places of a breakpoint, as they are listed, those behind the first one of each function.
fn later_pieces(listed: &str) -> Vec<String> {
    let mut first: Vec<(&str, u64, &str)> = Vec::new();
    let mut later = Vec::new();
    for line in listed.lines() {
        let Some((number, rest)) = line.trim().split_once(": where = ") else {
            continue;
        };
        let function = rest.split([' ', '+']).next().unwrap_or_default();
        let address = rest.split_once("address = 0x").map_or("", |(_, it)| it);
        let is_other = |it: char| !it.is_ascii_hexdigit();
        let digits = address.find(is_other).unwrap_or(address.len());
        let Ok(address) = u64::from_str_radix(&address[..digits], 16) else {
            continue;
        };
        match first.iter_mut().find(|it| it.0 == function) {
            None => first.push((function, address, number)),
            Some(known) if address < known.1 => {
                later.push(known.2.to_owned());
                *known = (function, address, number);
            }
            Some(_) => later.push(number.to_owned()),
        }
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lldb_prints_of_a_breakpoint_is_read() {
        let said = "(lldb) breakpoint set -n f\nBreakpoint 12: no locations (pending).\n";
        assert_eq!(number_of(said), Some(12));
        assert_eq!(number_of("error: no such thing"), None);
        let listed = "2: file = 'lib.rs', line = 10, exact_match = 0, locations = 3\n\
            \x20 2.1: where = libcode_1.so`ctx::f::h12 + 20 at lib.rs:10:13, address = 0x0030, resolved\n\
            \x20 2.2: where = libcode_1.so`ctx::f::h12 + 10 at lib.rs:10:1, address = 0x0020, resolved\n\
            \x20 2.3: where = libcode_1.so`ctx::g + 1 at lib.rs:10:1, address = 0x0010, unresolved\n";
        assert_eq!(later_pieces(listed), ["2.1"]);
        let listed =
            "[  0] stratoscope\n[  1] libcode_9.so\n[  2] libcode_10.so\n[  3] libcode.so\n";
        assert_eq!(newest_cell(listed), Some("libcode_10.so"));
    }
}
