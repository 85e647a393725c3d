//! Pauses: the process is stopped where it is, because a front end asks for it, or to change breakpoints.

use serde_json::{Value, json};

use super::frames::Stop;
use super::{ANSWER_TIMEOUT, Adapter, Native, Pause};

/// A pause that has stopped more often where no cell runs ends there.
const MAX_PAUSES: u32 = 50;

impl Native {
    /// Stops the process; a stop follows.
    pub(super) async fn pause(&self, adapter: &Adapter, why: Pause) -> Result<(), String> {
        {
            let mut state = self.state.lock();
            state.pause = Some(why);
            if !state.is_running && state.reports_continued {
                // LLDB forgets a pause before the process goes on: it is sent when the adapter reports that.
                return Ok(());
            }
        }
        self.send_pause(adapter).await
    }

    /// Sends the pause that is wanted.
    pub(super) async fn send_pause(&self, adapter: &Adapter) -> Result<(), String> {
        let asked = json!({"threadId": 0});
        let paused = adapter.ask("pause", asked, ANSWER_TIMEOUT).await;
        if paused.is_err() {
            self.state.lock().pause = None;
        }
        paused.map(drop)
    }

    /// Where a pause has stopped. `None`: the cell has not begun or is about to end, and its code is to be seen; the next
    /// pause follows when the process goes on.
    pub(super) async fn paused(&self, adapter: &Adapter, cause: u64, before: u32) -> Option<Stop> {
        let thread = self.thread_of_cells(adapter).await.unwrap_or(cause);
        let stop = self.read_stop(adapter, thread).await.ok();
        let is_seen = stop.as_ref().is_some_and(Stop::has_code_of_cells);
        let mut state = self.state.lock();
        if !state.is_cell_loaded {
            return None;
        }
        if !is_seen && before < MAX_PAUSES {
            state.pause = Some(Pause::Asked(before + 1));
            return None;
        }
        stop
    }

    /// What a pause stops is any thread: front ends see that of the cells.
    async fn thread_of_cells(&self, adapter: &Adapter) -> Option<u64> {
        let answer = adapter.ask("threads", json!({}), ANSWER_TIMEOUT).await;
        let body = answer.unwrap_or_default();
        let mut threads = body["threads"].as_array().into_iter().flatten();
        let is_of_cells = |it: &&Value| {
            let name = it["name"].as_str();
            name.is_some_and(|it| it.contains("cells"))
        };
        threads.find(is_of_cells)?["id"].as_u64()
    }
}
