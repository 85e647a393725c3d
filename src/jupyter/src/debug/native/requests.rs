//! Requests of front ends that concern a stopped cell.

use std::sync::Arc;

use serde_json::{Value, json};
use stratoscope_debugger::native::expression;
use stratoscope_debugger::{Answered, CELLS};

use super::frames::{FIRST_FRAME, FIRST_VALUES, variable};
use super::{ANSWER_TIMEOUT, Adapter, Native, Pause};

/// What helps when an expression cannot be evaluated.
const EXPRESSIONS: &str = "LLDB reads variables, fields (`point.x`), elements of arrays, and arithmetic and \
                           comparisons of numbers";

impl Native {
    /// Whether the request is about a stopped cell, or stops a running one.
    pub fn takes(&self, content: &Value) -> bool {
        let arguments = &content["arguments"];
        let thread = arguments["threadId"].as_u64();
        let is_of_cells = thread.is_none_or(|it| it <= CELLS);
        let is_ours =
            |name: &str, first: u64| arguments[name].as_u64().is_some_and(|it| it >= first);
        let is_stopped = self.is_stopped();
        match content["command"].as_str().unwrap_or_default() {
            "continue" | "next" | "stepIn" | "stepOut" | "stackTrace" => is_stopped && is_of_cells,
            "scopes" => is_stopped && is_ours("frameId", FIRST_FRAME),
            "variables" => is_stopped && is_ours("variablesReference", FIRST_VALUES),
            "evaluate" => {
                let frame = &arguments["frameId"];
                is_stopped && (frame.is_null() || is_ours("frameId", FIRST_FRAME))
            }
            "pause" => {
                let is_running = self.adapter().is_some() && self.session.is_executing();
                is_of_cells && !is_stopped && is_running && !self.debugger.lock().has_moving_run()
            }
            _ => false,
        }
    }

    /// Answers such a request.
    pub async fn answer(self: &Arc<Self>, content: &Value) -> Answered {
        let _turn = self.turn.lock().await;
        let answer = match self.adapter() {
            Some(adapter) => self.ask(&adapter, content).await,
            None => Err("the debugger has ended".to_owned()),
        };
        self.debugger.lock().answered(content, answer)
    }

    async fn ask(&self, adapter: &Arc<Adapter>, content: &Value) -> Result<Value, String> {
        let arguments = &content["arguments"];
        let command = content["command"].as_str().unwrap_or_default();
        if command == "pause" {
            if !self.state.lock().is_cell_loaded {
                return Err("the cell is being compiled, and has not begun to run".to_owned());
            }
            self.pause(adapter, Pause::Asked(0)).await?;
            return Ok(json!({}));
        }
        let stop = self.state.lock().stop.clone();
        let stop = stop.ok_or("no cell is stopped")?;
        match command {
            "continue" => {
                self.goes_on();
                self.resume(adapter, stop.thread).await?;
                Ok(json!({"allThreadsContinued": true}))
            }
            "next" | "stepIn" | "stepOut" => {
                self.goes_on();
                self.state.lock().step = Some(0);
                self.step(adapter, command, stop.thread).await?;
                Ok(json!({}))
            }
            "stackTrace" => {
                let all = self.debugger.lock().cells().shows_libraries;
                let frames = stop.listed(all);
                let start = index(&arguments["startFrame"]).unwrap_or(0);
                let levels = index(&arguments["levels"]).filter(|it| *it > 0);
                let shown = frames.iter().skip(start).take(levels.unwrap_or(usize::MAX));
                let shown: Vec<&Value> = shown.collect();
                Ok(json!({"totalFrames": frames.len(), "stackFrames": shown}))
            }
            "scopes" => {
                let frame = arguments["frameId"].as_u64().unwrap_or(0);
                self.scopes(adapter, frame).await
            }
            "variables" => self.children(adapter, arguments).await,
            _ => {
                let rust = arguments["expression"].as_str();
                let rust = rust.ok_or("`expression` is to be a text")?;
                let frame = arguments["frameId"].as_u64();
                self.evaluate(adapter, rust, frame).await
            }
        }
    }

    /// Front ends have changed breakpoints: the adapter learns of it now, or when the cell that comes is loaded.
    async fn has_changed(&self, adapter: &Arc<Adapter>) {
        let (is_stopped, is_in_a_cell, is_pausing) = {
            let mut state = self.state.lock();
            state.has_changed = true;
            (
                state.stop.is_some(),
                state.is_cell_loaded,
                state.pause.is_some(),
            )
        };
        if is_stopped {
            self.change(adapter).await;
        } else if is_in_a_cell && !is_pausing && self.session.is_executing() {
            // Else the cell has just ended.
            let _ = self.pause(adapter, Pause::ToChange).await;
        }
    }

    /// The adapter's answer to an expression in one of its frames.
    pub(super) async fn value_of(
        &self,
        adapter: &Adapter,
        rust: &str,
        frame: u64,
    ) -> Result<Value, String> {
        let expression = expression(rust)?;
        // Not `repl`, which runs commands of LLDB.
        let asked = json!({"expression": expression, "frameId": frame, "context": "watch"});
        adapter.ask("evaluate", asked, ANSWER_TIMEOUT).await
    }

    async fn evaluate(
        &self,
        adapter: &Adapter,
        rust: &str,
        frame: Option<u64>,
    ) -> Result<Value, String> {
        let frame = self
            .frame_of(frame)
            .ok_or("the frame is not there any more")?;
        let found = self.value_of(adapter, rust, frame).await;
        let mut found = found.map_err(|reason| {
            let reason = reason.trim_start_matches("error: ").trim_end();
            format!("{reason}; {EXPRESSIONS}")
        })?;
        found["name"] = "result".into();
        found["value"] = found["result"].clone();
        let mut body = variable(&found).unwrap_or_default();
        body["result"] = found["result"].clone();
        Ok(body)
    }

    /// The debugger has answered this request, which concerns the adapter as well.
    pub async fn follow(self: &Arc<Self>, content: &Value, has_succeeded: bool) {
        if !has_succeeded {
            return;
        }
        match content["command"].as_str().unwrap_or_default() {
            "attach" => self.begin(),
            "disconnect" | "terminate" => self.end().await,
            // A cell that comes sets them otherwise.
            "setBreakpoints" | "setExceptionBreakpoints" if self.adapter().is_some() => {
                let _turn = self.turn.lock().await;
                if let Some(adapter) = self.adapter() {
                    self.has_changed(&adapter).await;
                }
            }
            _ => {}
        }
    }
}

fn index(number: &Value) -> Option<usize> {
    usize::try_from(number.as_u64()?).ok()
}
