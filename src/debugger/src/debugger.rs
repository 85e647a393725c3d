//! The state of a debugger and its answers.

use serde_json::{Map, Value, json};
use stratoscope_wire::{
    InspectAnswer, InspectQuestion, InspectedValue, MimeBundle, ValuePath, Window,
};

use crate::action::{About, Action, Answered, Asked, Children, Pending, Then};
use crate::breakpoints::Breakpoints;
use crate::filters::Conditions;
use crate::murmur::SEED;
use crate::protocol::{COMMANDS, OF_RUNS, capabilities, text, whole};
use crate::references::{References, Referred, VARIABLES};
use crate::runs::{CELLS, Runs};
use crate::sources::{SUFFIX, Sources};
use crate::standing::Standing;
use crate::values;

mod cells;
mod moving;

pub use cells::CellsOfDebugger;

/// The debugger of a kernel, for all of its clients.
#[derive(Debug)]
pub struct Debugger {
    sent: u64,
    is_initialized: bool,
    is_started: bool,
    sources: Sources,
    breakpoints: Breakpoints,
    references: References,
    runs: Runs,
    standing: Standing,
    conditions: Conditions,
    cells: CellsOfDebugger,
}

impl Debugger {
    /// A debugger that nobody has started. The paths of cells begin with `prefix`.
    pub fn new(prefix: String) -> Self {
        Self {
            sent: 0,
            is_initialized: false,
            is_started: false,
            sources: Sources::new(prefix),
            breakpoints: Breakpoints::default(),
            references: References::default(),
            runs: Runs::default(),
            standing: Standing::default(),
            conditions: Conditions::default(),
            cells: CellsOfDebugger::default(),
        }
    }

    /// Answers the content of a `debug_request`, or says what its answer needs. Every request gets a reply, also one that is
    /// not understood.
    pub fn request(&mut self, content: &Value) -> Action {
        let command = content["command"].as_str().unwrap_or_default();
        let request = Asked {
            seq: content["seq"].clone(),
            command: command.to_owned(),
        };
        let arguments = match &content["arguments"] {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => Map::new(),
            _ => return self.refused(&request, "the arguments of a request are an object"),
        };
        if command.is_empty() {
            return self.refused(
                &request,
                "a request needs a `command`, such as `initialize`",
            );
        }
        match self.answer(&request, &arguments) {
            Ok(action) => action,
            Err(reason) => self.refused(&request, &reason),
        }
    }

    fn answer(
        &mut self,
        request: &Asked,
        arguments: &Map<String, Value>,
    ) -> Result<Action, String> {
        let body = match request.command.as_str() {
            "initialize" => {
                self.is_initialized = true;
                let client = arguments.get("clientID").and_then(Value::as_str);
                self.references.shows_types_as_values = client == Some("jupyterlab");
                capabilities()
            }
            "attach" => return self.attach(request, arguments),
            "configurationDone" | "setFunctionBreakpoints" => json!({}),
            "setExceptionBreakpoints" => self.conditions.choose(arguments)?,
            "dataBreakpointInfo" => self.data_info(arguments)?,
            "setDataBreakpoints" => self.conditions.watch(arguments)?,
            "disconnect" | "terminate" => {
                (self.is_initialized, self.is_started) = (false, false);
                self.breakpoints.clear();
                json!({})
            }
            "debugInfo" => self.debug_info(),
            "inspectVariables" => return Ok(Self::inspect_variables(request)),
            "richInspectVariables" => {
                let expression = text(arguments, "variableName")?;
                return Ok(inspect(
                    request,
                    InspectQuestion::Find { expression },
                    About::Rich,
                ));
            }
            "variables" => return self.variables(request, arguments),
            "evaluate" => {
                let expression = text(arguments, "expression")?;
                // A question while the pointer rests on a name must change nothing.
                let may_run = arguments.get("context").and_then(Value::as_str) != Some("hover");
                let about = About::Evaluate {
                    expression: expression.clone(),
                    may_run,
                };
                return Ok(inspect(
                    request,
                    InspectQuestion::Find { expression },
                    about,
                ));
            }
            "threads" => {
                let threads = [self.runs.threads(), self.standing.threads()];
                json!({"threads": threads.concat()})
            }
            "stackTrace" => {
                let frames = self.frames(arguments.get("threadId").and_then(Value::as_u64));
                json!({"totalFrames": frames.len(), "stackFrames": frames})
            }
            "scopes" => self.scopes(arguments),
            "modules" => json!({"modules": [], "totalModules": 0}),
            "dumpCell" => json!({"sourcePath": self.sources.add(&text(arguments, "code")?)}),
            "source" => self.source(arguments)?,
            "setBreakpoints" => self.breakpoints.set(arguments)?,
            command if OF_RUNS.contains(&command) => {
                return self.act_on_run(request, command, arguments);
            }
            command => {
                let command: String = command.chars().take(100).collect();
                return Err(format!(
                    "`{command}` is not a request of this kernel; it answers {}",
                    COMMANDS.join(", ")
                ));
            }
        };
        Ok(self.reply(request, body))
    }

    /// Makes the reply of what was found.
    pub fn inspected(&mut self, pending: Pending, answer: InspectAnswer) -> Action {
        let Pending { request, about } = pending;
        match (about, answer) {
            (About::Variables, InspectAnswer::Values { values, .. }) => {
                let variables = values
                    .into_iter()
                    .map(|value| self.variable_of_notebook(value));
                let variables: Vec<Value> = variables.collect();
                self.reply(&request, json!({"variables": variables}))
            }
            (
                About::Children(asked),
                InspectAnswer::Values {
                    values,
                    named,
                    all_named,
                    all_indexed,
                },
            ) => {
                let totals = (named, all_named, all_indexed);
                let variables = self.children(&asked, values, totals);
                self.reply(&request, json!({"variables": variables}))
            }
            (About::Evaluate { expression, .. }, InspectAnswer::Found { path, value }) => {
                let variable = values::variable(&mut self.references, value, path, expression);
                let mut body = variable.clone();
                body["result"] = variable["value"].clone();
                self.reply(&request, body)
            }
            (
                About::Evaluate {
                    expression,
                    may_run: true,
                },
                InspectAnswer::Missing { .. },
            ) => {
                let about = About::Evaluate {
                    expression: expression.clone(),
                    may_run: false,
                };
                Action::Evaluate {
                    expression,
                    then: Pending { request, about },
                }
            }
            (About::Rich, InspectAnswer::Found { path, .. }) => {
                inspect(&request, InspectQuestion::Rich { path }, About::Rich)
            }
            (About::Rich, InspectAnswer::Rich { data }) => {
                self.reply(&request, json!({"data": data, "metadata": {}}))
            }
            (_, InspectAnswer::Missing { reason }) => self.refused(&request, &reason),
            _ => self.refused(
                &request,
                "the process that runs the cells has answered something else",
            ),
        }
    }

    /// Makes the reply of what was evaluated, or of the reason why it was not.
    pub fn evaluated(&mut self, pending: Pending, result: Result<MimeBundle, String>) -> Action {
        match result {
            Ok(data) => {
                let text = data
                    .get("text/plain")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                self.reply(
                    &pending.request,
                    json!({"result": text, "variablesReference": 0}),
                )
            }
            Err(reason) => self.refused(&pending.request, &reason),
        }
    }

    fn attach(
        &mut self,
        request: &Asked,
        arguments: &Map<String, Value>,
    ) -> Result<Action, String> {
        if !self.is_initialized {
            return Err("`attach` comes after `initialize`".to_owned());
        }
        let just_my_code = arguments.get("justMyCode").and_then(Value::as_bool);
        self.cells.shows_libraries = just_my_code == Some(false);
        self.is_started = true;
        let mut action = self.reply(request, json!({}));
        if let Action::Reply(answered) = &mut action {
            let event =
                json!({"type": "event", "event": "initialized", "seq": self.next(), "body": {}});
            answered.events.push(event);
            answered.then = Some(Then::Look);
        }
        Ok(action)
    }

    fn debug_info(&self) -> Value {
        let of_cells = self.cells.is_stopped.then_some(CELLS);
        let stopped = [self.runs.stopped(), self.standing.stopped()].concat();
        let stopped: Vec<u64> = of_cells.into_iter().chain(stopped).collect();
        json!({
            "isStarted": self.is_started, "hashMethod": "Murmur2", "hashSeed": SEED,
            "tmpFilePrefix": self.sources.prefix(), "tmpFileSuffix": SUFFIX, "breakpoints": self.breakpoints.listed(),
            "stoppedThreads": stopped, "richRendering": true,
            "exceptionPaths": [], "copyToGlobals": false,
        })
    }

    fn inspect_variables(request: &Asked) -> Action {
        inspect(request, InspectQuestion::Variables, About::Variables)
    }

    fn variables(
        &mut self,
        request: &Asked,
        arguments: &Map<String, Value>,
    ) -> Result<Action, String> {
        let number = arguments.get("variablesReference").and_then(Value::as_u64);
        let number = number.ok_or("`variablesReference` is to be a whole number")?;
        if number == VARIABLES {
            return Ok(Self::inspect_variables(request));
        }
        let (start, count) = (whole(arguments, "start")?, whole(arguments, "count")?);
        let filter = arguments.get("filter").and_then(Value::as_str);
        let of = self.references.get(number).cloned();
        let of =
            of.ok_or("this reference is not known or out of date: ask for the variables again")?;
        let is_whole = start == 0 && count == 0 && filter != Some("named");
        if let Some(part) = of.parts.window
            && is_whole
            && values::is_divided(part.count)
        {
            let ranges = self.ranges(&of, part);
            return Ok(self.reply(request, json!({"variables": ranges})));
        }
        let (named, indexed) = values::windows(&of, filter, start, count);
        let path = of.parts.path.clone();
        let about = About::Children(Children {
            is_whole: is_whole && of.parts.window.is_none(),
            starts: (named.start, indexed.start),
            of,
        });
        Ok(inspect(
            request,
            InspectQuestion::Children {
                path,
                named,
                indexed,
            },
            about,
        ))
    }

    /// The children as `Variable`s. `totals`: how many of `found` are named, and how many named and indexed children
    /// there are in all.
    fn children(
        &mut self,
        asked: &Children,
        found: Vec<InspectedValue>,
        (named, all_named, all_indexed): (usize, usize, usize),
    ) -> Vec<Value> {
        let Children {
            of,
            starts,
            is_whole,
        } = asked;
        let mut variables = Vec::with_capacity(found.len());
        let is_divided = *is_whole && values::is_divided(all_indexed);
        for (place, value) in found.into_iter().enumerate() {
            let position = match place.checked_sub(named) {
                None => starts.0 + place,
                Some(_) if is_divided => break,
                Some(place) => all_named + starts.1 + place,
            };
            let path = of.parts.path.child(position);
            let expression = values::of_child(&of.expression, &value.name);
            let variable = values::variable(&mut self.references, value, path, expression);
            variables.push(variable);
        }
        if is_divided {
            let all = Window {
                start: 0,
                count: all_indexed,
            };
            variables.extend(self.ranges(of, all));
        }
        variables
    }

    fn ranges(&mut self, of: &Referred, window: Window) -> Vec<Value> {
        let ranges = values::ranges(window);
        let ranges = ranges
            .into_iter()
            .map(|window| values::range(&mut self.references, of, window));
        ranges.collect()
    }

    fn variable_of_notebook(&mut self, value: InspectedValue) -> Value {
        let (path, expression) = (ValuePath::of(&value.name), value.name.clone());
        values::variable(&mut self.references, value, path, expression)
    }

    fn source(&self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let path = arguments
            .get("source")
            .and_then(|source| source["path"].as_str());
        let path = path.ok_or("`source` needs the `path` of a cell")?;
        let of_run = || self.standing.text(path);
        let text = self.sources.text(path).map(str::to_owned).or_else(of_run);
        let text = text.ok_or("no cell has this path: only cells of `dumpCell` have one")?;
        Ok(json!({"content": text, "mimeType": "text/rust"}))
    }

    fn reply(&mut self, request: &Asked, body: Value) -> Action {
        let reply = json!({
            "type": "response", "seq": self.next(), "request_seq": request.seq, "command": request.command,
            "success": true, "body": body,
        });
        Action::Reply(Answered {
            reply,
            events: Vec::new(),
            then: None,
        })
    }

    fn refused(&mut self, request: &Asked, reason: &str) -> Action {
        let reply = json!({
            "type": "response", "seq": self.next(), "request_seq": request.seq, "command": request.command,
            "success": false, "message": reason, "body": {"error": {"id": 1, "format": reason}},
        });
        Action::Reply(Answered {
            reply,
            events: Vec::new(),
            then: None,
        })
    }

    fn next(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }
}

fn inspect(request: &Asked, question: InspectQuestion, about: About) -> Action {
    let request = request.clone();
    Action::Inspect {
        question,
        then: Pending { request, about },
    }
}

#[cfg(test)]
mod tests;
