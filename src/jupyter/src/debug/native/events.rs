//! The adapter's events.
//!
//! One stop is several events: one for each thread that has a reason to stop. They come in one piece, and the first of them that
//! is handled lets the process go on. What comes behind it, until the adapter reports that the process goes on, belongs to
//! a stop that is over: requests about it would meet a process that runs, and `lldb-dap` 19 does not answer them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Adapter, Native, Pause, START_POLL};

/// The events of one stop are written in one piece.
const NEXT_EVENT_TIMEOUT: Duration = Duration::from_millis(4);

/// How often it is looked whether the process has ended, which LLDB does not report of a process that is stopped.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Whether a process has ended. As long as a debugger traces it, its parent does not learn of it.
pub(super) fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, which is in parentheses, may have some itself.
    let state = stat.rsplit_once(") ").map_or("X", |(_, rest)| rest);
    cfg!(target_os = "linux") && state.starts_with(['Z', 'X'])
}

/// Whether nobody traces a thread of a process that has not ended: a debugger that ends lets one thread go after the other.
/// Only Linux shows it.
pub(super) fn is_untraced(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let is_untraced = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let mut lines = status.lines();
        let tracer = lines.find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|it| it.trim() == "0")
    };
    threads.into_iter().flatten().flatten().any(is_untraced) && !has_ended(process)
}

impl Native {
    /// Reads the adapter's events until it ends.
    pub(super) async fn listen(
        self: Arc<Self>,
        adapter: Arc<Adapter>,
        mut inbox: UnboundedReceiver<Value>,
    ) {
        let mut events = VecDeque::new();
        loop {
            let next = match events.pop_front() {
                Some(event) => Some(event),
                None => match tokio::time::timeout(LOOK_INTERVAL, inbox.recv()).await {
                    Ok(event) => event,
                    Err(_) => {
                        if has_ended(self.state.lock().process) {
                            adapter.end();
                        }
                        continue;
                    }
                },
            };
            let Some(event) = next.filter(|it| !it.is_null()) else {
                break;
            };
            let _turn = self.turn.lock().await;
            match event["event"].as_str() {
                Some("stopped") if self.is_news() => {
                    events.push_front(event);
                    receive(&mut inbox, &mut events).await;
                    let stops = first_stop(&mut events);
                    self.stopped(&adapter, &stops).await;
                }
                Some("continued") => {
                    let wanted = {
                        let mut state = self.state.lock();
                        state.is_running = true;
                        state.reports_continued = true;
                        state.pause
                    };
                    if let Some(Pause::Asked(1..)) = wanted {
                        // It is to go on a little.
                        tokio::time::sleep(START_POLL).await;
                    }
                    if wanted.is_some() {
                        let _ = self.send_pause(&adapter).await;
                    }
                }
                // The process has ended, and the evaluator says why; or the debugger was turned off, or is lost.
                Some("exited" | "terminated") => break,
                _ => {}
            }
        }
        adapter.end();
        let _turn = self.turn.lock().await;
        let process = self.state.lock().process;
        if self.forget(&adapter) && !has_ended(process) {
            self.show_end(&adapter);
        }
    }

    /// Whether a stop is not one that was handled.
    fn is_news(&self) -> bool {
        let mut state = self.state.lock();
        let is_running = std::mem::take(&mut state.is_running);
        is_running || !state.reports_continued
    }
}

/// Takes what has come, until nothing comes.
async fn receive(inbox: &mut UnboundedReceiver<Value>, events: &mut VecDeque<Value>) {
    while let Ok(Some(event)) = tokio::time::timeout(NEXT_EVENT_TIMEOUT, inbox.recv()).await {
        events.push_back(event);
    }
}

/// The bodies of the events of the first stop. The thread that has caused it comes first.
fn first_stop(events: &mut VecDeque<Value>) -> Vec<Value> {
    let mut bodies = Vec::new();
    let mut others = VecDeque::new();
    while let Some(mut event) = events.pop_front() {
        match event["event"].as_str() {
            Some("stopped") => bodies.push(event["body"].take()),
            Some("continued") => {
                others.push_back(event);
                break;
            }
            _ => others.push_back(event),
        }
    }
    others.append(events);
    *events = others;
    bodies.sort_by_key(|it| it["threadCausedFocus"] != true);
    bodies
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_end() {
        assert!(!has_ended(std::process::id()));
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("it starts");
        let begun = std::time::Instant::now();
        while !has_ended(child.id()) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(has_ended(child.id()), "a zombie has ended");
        child.wait().expect("it has ended");
        assert!(has_ended(u32::MAX));
        assert!(is_untraced(std::process::id()) && !is_untraced(u32::MAX));
    }

    #[test]
    fn the_events_of_a_stop_are_one_stop() {
        let stopped = |thread: u64, is_cause: bool| json!({"event": "stopped", "body": {"threadId": thread, "threadCausedFocus": is_cause}});
        let mut events: VecDeque<Value> = [
            stopped(1, false),
            json!({"event": "module"}),
            stopped(2, true),
            json!({"event": "continued"}),
            stopped(3, true),
        ]
        .into();
        let threads: Vec<u64> = first_stop(&mut events)
            .iter()
            .filter_map(|it| it["threadId"].as_u64())
            .collect();
        assert_eq!(threads, [2, 1]);
        let names: Vec<&str> = events
            .iter()
            .filter_map(|it| it["event"].as_str())
            .collect();
        assert_eq!(names, ["module", "continued", "stopped"]);
    }
}
