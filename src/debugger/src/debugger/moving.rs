//! Requests about runs of training: those of the running cell, which have buttons, and those of `start!`, which stand in
//! variables.

use serde_json::{Map, Value, json};
use stratoscope_wire::{InspectAnswer, MimeBundle, RunState, ValuePath};

use super::Debugger;
use crate::action::{About, Action, Asked, Pending, Then};
use crate::filters;
use crate::protocol::text;
use crate::references::{Parts, Referred, VARIABLES};
use crate::runs::CELLS;
use crate::standing::FIRST;
use crate::values;

impl Debugger {
    /// Whether a front end has started the debugger.
    pub fn is_started(&self) -> bool {
        self.is_started
    }

    /// A run of the running cell begins, pauses, goes on or ends. Returns the events that tell it, if a debugger was started.
    pub fn run_changed(&mut self, run: u64, now: RunState) -> Vec<Value> {
        let event = self.runs.set(run, now);
        self.numbered(event.into_iter().collect())
    }

    /// The cell has ended, and so have its runs. Returns the events that tell it.
    pub fn cell_ended(&mut self) -> Vec<Value> {
        let runs = self.runs.known().into_iter();
        runs.flat_map(|run| self.run_changed(run, RunState::Ended))
            .collect()
    }

    /// Where the runs of `start!` stand, asked for while no cell runs. Returns the events that tell what has changed.
    pub fn runs_stand(&mut self, answer: InspectAnswer) -> Vec<Value> {
        let runs = match answer {
            InspectAnswer::Runs { runs } => runs,
            // The process that runs the cells has ended, and the runs with it.
            _ => Vec::new(),
        };
        let events = self.standing.set(runs, Some("step"));
        self.numbered(events)
    }

    /// The reply to a request that moves a run: the run is under way.
    pub fn begin_move(&mut self, pending: Pending) -> Action {
        let About::Move(call) = pending.about else {
            return self.refused(&pending.request, "the request moves no run");
        };
        let mut code = String::new();
        if let Some(condition) = self.conditions.code() {
            code += &format!("{}.break_for_panel({condition})?;\n", call.name);
        }
        code += &format!("{}.{}?", call.name, call.call);
        let event = self.standing.begin(call.thread);
        let events = self.numbered(vec![event]);
        let mut action = self.reply(&pending.request, json!({"allThreadsContinued": false}));
        if let Action::Reply(answered) = &mut action {
            answered.events = events;
            answered.then = Some(Then::Evaluate(code));
        }
        action
    }

    /// The reply to a request that is not possible now.
    pub fn refuse(&mut self, pending: &Pending, reason: &str) -> Action {
        self.refused(&pending.request, reason)
    }

    /// What the call that moved a run has returned, or why it has failed. Returns the event that shows it.
    pub fn moved(&mut self, result: Result<MimeBundle, String>) -> Vec<Value> {
        let (category, text) = match &result {
            Ok(data) => (
                "console",
                data.get("text/plain")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            ),
            Err(reason) => ("stderr", reason.as_str()),
        };
        if text.is_empty() {
            return Vec::new();
        }
        let output = format!("{}\n", text.trim_end());
        let body = json!({"category": category, "output": output});
        self.numbered(vec![
            json!({"type": "event", "event": "output", "body": body}),
        ])
    }

    /// Numbered events, if a debugger was started.
    fn numbered(&mut self, mut events: Vec<Value>) -> Vec<Value> {
        if !self.is_started {
            return Vec::new();
        }
        for event in &mut events {
            event["seq"] = self.next().into();
        }
        events
    }

    /// Whether a value of a run can be watched.
    pub(super) fn data_info(&self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let name = text(arguments, "name")?;
        let number = arguments.get("variablesReference").and_then(Value::as_u64);
        let of = number.and_then(|number| self.references.get(number));
        let expression = of.map(|of| values::of_child(&of.expression, &name));
        let part = expression.as_deref().and_then(|it| self.standing.part(it));
        Ok(filters::data_of(part))
    }

    /// The stack of a thread. JupyterLab asks for that of thread 1, whichever thread has stopped.
    pub(super) fn frames(&self, thread: Option<u64>) -> Vec<Value> {
        let stopped = || [self.runs.stopped(), self.standing.stopped()].concat();
        let thread = thread
            .filter(|it| *it > CELLS)
            .or_else(|| stopped().first().copied());
        [self.runs.frames(thread), self.standing.frames(thread)].concat()
    }

    /// The scopes of a frame: its run, and the variables of the notebook.
    pub(super) fn scopes(&mut self, arguments: &Map<String, Value>) -> Value {
        let mut scopes = vec![json!({
            "name": "Variables", "variablesReference": VARIABLES, "expensive": false, "presentationHint": "globals",
        })];
        let frame = arguments.get("frameId").and_then(Value::as_u64);
        if let Some((name, part)) = frame.and_then(|frame| self.standing.of_frame(frame)) {
            let run = ValuePath::of(name);
            let mut shown = vec![("Run".to_owned(), run.clone(), name.to_owned())];
            if let Some((part, position)) = part {
                let mut letters = part.chars();
                let first = letters.next().map(|it| it.to_ascii_uppercase());
                let title = first.into_iter().chain(letters).collect();
                let expression = values::of_child(name, part);
                shown.insert(0, (title, run.child(*position), expression));
            }
            let numbered = shown.into_iter().map(|(title, path, expression)| {
                let number = self.references.number(Referred {
                    parts: Parts { path, window: None },
                    expression,
                    named: 0,
                    indexed: 0,
                });
                json!({
                    "name": title, "variablesReference": number, "expensive": false, "presentationHint": "locals",
                })
            });
            scopes.splice(0..0, numbered.collect::<Vec<_>>());
        }
        json!({"scopes": scopes})
    }

    pub(super) fn act_on_run(
        &mut self,
        request: &Asked,
        command: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Action, String> {
        let thread = arguments.get("threadId").and_then(Value::as_u64);
        let thread = thread.filter(|it| *it > CELLS);
        let is_standing = match thread {
            Some(thread) => thread >= FIRST,
            None => self.runs.known().is_empty() && self.standing.has_any(),
        };
        let then = if !is_standing {
            let (run, action) = self.runs.action(command, arguments)?;
            Then::Control(run, action)
        } else if command == "pause" && self.standing.moving().is_some() {
            Then::Interrupt
        } else {
            let call = self.standing.call(command, thread)?;
            return Ok(Action::Move(Pending {
                request: request.clone(),
                about: About::Move(call),
            }));
        };
        let mut action = self.reply(request, json!({"allThreadsContinued": false}));
        if let Action::Reply(answered) = &mut action {
            answered.then = Some(then);
        }
        Ok(action)
    }
}
