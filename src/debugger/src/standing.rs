//! Runs of `start!` as threads of the debugger. They live in variables, and stand between two cells. A request that moves one
//! becomes the call that a cell would make, so that the panel, the cells and the history of the run are one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use stratoscope_wire::{RunFrame, StandingRun};

use crate::murmur::{SEED, murmur2};
use crate::sources::SUFFIX;

/// Threads of runs in variables have numbers from here on, those of the running cell smaller ones.
pub const FIRST: u64 = 1_000_000;
/// A thread's frames are numbered from its own number.
const MAX_FRAMES: u64 = 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Standing {
    runs: BTreeMap<String, Thread>,
    /// Numbers are not given twice.
    given: u64,
    /// The thread that a request has set in motion.
    moving: Option<u64>,
}

#[derive(Debug)]
struct Thread {
    number: u64,
    at: StandingRun,
    /// The steps before which a condition stopped it.
    breakpoints: BTreeSet<u64>,
}

impl Thread {
    /// The text in which the frames have their lines.
    fn listing(&self) -> String {
        self.at.listing.join("\n")
    }

    /// Its name. A front end keeps a text by its name, and shows it beside each frame.
    fn path(&self) -> String {
        let hash = murmur2(self.listing().as_bytes(), SEED);
        format!("run_{hash}{SUFFIX}")
    }

    /// The frames with their numbers, the innermost one first.
    fn numbered(&self) -> impl Iterator<Item = (u64, &RunFrame)> {
        let frames = self.at.frames.iter().take(MAX_FRAMES as usize).rev();
        (self.number..).zip(frames)
    }
}

/// What a request does with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its thread.
    pub thread: u64,
    /// The variable.
    pub name: String,
    /// The call: `step(1)`.
    pub call: String,
}

impl Standing {
    /// As `threads` lists them.
    pub fn threads(&self) -> Vec<Value> {
        let listed = self.runs.values().map(|thread| {
            let does = match self.moving == Some(thread.number) {
                true => "training",
                false => "stands",
            };
            let name = &thread.at.name;
            json!({"id": thread.number, "name": format!("run `{name}` ({does})")})
        });
        listed.collect()
    }

    /// The threads that stand.
    pub fn stopped(&self) -> Vec<u64> {
        let numbers = self.runs.values().map(|thread| thread.number);
        numbers.filter(|it| self.moving != Some(*it)).collect()
    }

    /// The stack of a thread that stands, the coming step first.
    pub fn frames(&self, thread: Option<u64>) -> Vec<Value> {
        let found = (self.runs.values()).find(|it| Some(it.number) == thread);
        let Some(found) = found.filter(|it| self.moving != Some(it.number)) else {
            return Vec::new();
        };
        let listed = found.numbered().map(|(id, it)| {
            // JupyterLab's list of frames stays empty for good if one has no source.
            let source = json!({"name": found.at.name});
            let mut frame =
                json!({"id": id, "name": it.name, "line": 0, "column": 0, "source": source});
            if !found.at.listing.is_empty() {
                frame["line"] = it.line.into();
                frame["source"]["path"] = found.path().into();
            }
            frame
        });
        listed.collect()
    }

    /// The text with this name.
    pub fn text(&self, path: &str) -> Option<String> {
        let mut threads = self.runs.values();
        let found = threads.find(|it| it.path() == path)?;
        Some(found.listing())
    }

    /// The variable of a frame, and what the frame shows beside the run.
    pub fn of_frame(&self, frame: u64) -> Option<(&str, Option<&(String, usize)>)> {
        let number = frame - frame % MAX_FRAMES;
        let found = self.runs.values().find(|it| it.number == number)?;
        let of_number = found.numbered().find(|(id, _)| *id == frame);
        let part = of_number.and_then(|(_, frame)| frame.part.as_ref());
        Some((&found.at.name, part))
    }

    /// The part of a run that an expression names: `model.dense` of `run.model.dense`.
    pub fn part<'a>(&self, expression: &'a str) -> Option<&'a str> {
        let (name, part) = expression.split_once('.')?;
        self.runs.contains_key(name).then_some(part)
    }

    /// The thread that moves.
    pub fn moving(&self) -> Option<u64> {
        self.moving
    }

    /// Whether there is a run.
    pub fn has_any(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The call that a request means. A front end without a stopped thread names the first one.
    ///
    /// # Errors
    /// It is not possible now; the reason.
    pub fn call(&self, command: &str, thread: Option<u64>) -> Result<Move, String> {
        let of_variable = thread.filter(|it| *it >= FIRST);
        let found = match of_variable {
            Some(number) => self.runs.values().find(|it| it.number == number),
            None => self.runs.values().next(),
        };
        let found = found.ok_or("this run has ended, or its variable is gone")?;
        if self.moving.is_some() {
            return Err(format!(
                "`{command}` waits for the run that is under way: pause it, or let it stop"
            ));
        }
        let made = found.at.made;
        let call = match command {
            "stepIn" => "next_layer()".to_owned(),
            "next" | "stepOut" => "step(1)".to_owned(),
            "continue" => "finish()".to_owned(),
            "stepBack" if found.at.is_in_step => "previous_layer()".to_owned(),
            "stepBack" | "reverseContinue" if made == 0 => {
                return Err("the run has made no step that could be undone".to_owned());
            }
            "stepBack" => format!("rewind({})", made - 1),
            "reverseContinue" => {
                let before = found.breakpoints.range(..made).next_back();
                format!("rewind({})", before.copied().unwrap_or(0))
            }
            "pause" => return Err("the run stands: only one that trains can be paused".to_owned()),
            _ => return Err(format!("`{command}` is not possible for a run")),
        };
        Ok(Move {
            thread: found.number,
            name: found.at.name.clone(),
            call,
        })
    }

    /// A call moves this thread from now on; returns the event that tells it, without `seq`.
    pub fn begin(&mut self, thread: u64) -> Value {
        self.moving = Some(thread);
        event(
            "continued",
            json!({"threadId": thread, "allThreadsContinued": false}),
        )
    }

    /// Where the runs stand now. `reason`: why the one that a request has moved stops. Returns the events that tell what has
    /// changed, without `seq`.
    pub fn set(&mut self, runs: Vec<StandingRun>, reason: Option<&str>) -> Vec<Value> {
        let moved = self.moving.take();
        let mut events = Vec::new();
        let before = std::mem::take(&mut self.runs);
        let mut gone: BTreeMap<String, Thread> = before;
        for at in runs {
            let (number, mut breakpoints, known) = match gone.remove(&at.name) {
                Some(thread) => (thread.number, thread.breakpoints, Some(thread.at)),
                None => {
                    self.given += 1;
                    (FIRST + self.given * MAX_FRAMES, BTreeSet::new(), None)
                }
            };
            // Those of later steps were undone.
            breakpoints.retain(|step| *step <= at.made);
            if at.breakpoint.is_some() {
                breakpoints.insert(at.made);
            }
            if known.as_ref() != Some(&at) || moved == Some(number) {
                events.push(stopped(
                    number,
                    &at,
                    reason.filter(|_| moved == Some(number)),
                ));
            }
            let name = at.name.clone();
            let thread = Thread {
                number,
                at,
                breakpoints,
            };
            self.runs.insert(name, thread);
        }
        for thread in gone.into_values() {
            let number = thread.number;
            // Of a thread that ends while it is stopped, a front end would show the stack for good.
            if moved != Some(number) {
                events.push(event(
                    "continued",
                    json!({"threadId": number, "allThreadsContinued": false}),
                ));
            }
            events.push(event(
                "thread",
                json!({"reason": "exited", "threadId": number}),
            ));
        }
        events
    }
}

/// A run stands. Its reason in the words of the protocol: `step`, `exception` for a condition, `entry` for a new run.
fn stopped(thread: u64, at: &StandingRun, reason: Option<&str>) -> Value {
    let reason = match (&at.breakpoint, reason) {
        (Some(_), _) => "exception",
        (None, _) if at.is_interrupted => "pause",
        (None, Some(reason)) => reason,
        (None, None) if at.stop.is_empty() => "entry",
        (None, None) => "pause",
    };
    let mut body = json!({
        "reason": reason, "threadId": thread, "allThreadsStopped": false, "preserveFocusHint": false,
        "description": if at.stop.is_empty() { "before its first step" } else { &at.stop },
    });
    if let Some(condition) = &at.breakpoint {
        body["text"] = condition.as_str().into();
    }
    event("stopped", body)
}

fn event(name: &str, body: Value) -> Value {
    json!({"type": "event", "event": name, "body": body})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, made: u64, breakpoint: Option<&str>) -> StandingRun {
        StandingRun {
            name: name.to_owned(),
            made,
            frames: [(1, "run".to_owned()), (2, format!("step {}", made + 1))]
                .map(|(line, name)| RunFrame {
                    name,
                    line,
                    part: None,
                })
                .into(),
            is_in_step: false,
            listing: vec!["run".to_owned(), "    step".to_owned()],
            stop: format!("next: step {}", made + 1),
            breakpoint: breakpoint.map(str::to_owned),
            is_interrupted: false,
        }
    }

    fn listed(events: &[Value]) -> Vec<(&str, u64)> {
        let of = |it: &'_ Value| it["body"]["threadId"].as_u64().expect("a thread");
        let events = events.iter();
        events
            .map(|it| (it["event"].as_str().expect("a name"), of(it)))
            .collect()
    }

    #[test]
    fn a_run_steps_forward_and_back() {
        let mut standing = Standing::default();
        let events = standing.set(vec![run("run", 0, None)], None);
        let thread = standing.stopped()[0];
        assert_eq!(listed(&events), [("stopped", thread)]);
        assert!(
            standing.set(vec![run("run", 0, None)], None).is_empty(),
            "nothing has changed"
        );
        assert!(standing.call("stepBack", Some(thread)).is_err());
        assert!(standing.call("goto", Some(thread)).is_err());
        let call = standing.call("next", Some(thread)).expect("it stands");
        assert_eq!((call.name.as_str(), call.call.as_str()), ("run", "step(1)"));
        assert_eq!(standing.begin(thread)["event"], "continued");
        assert!(standing.call("next", Some(thread)).is_err() && standing.stopped().is_empty());
        assert!(standing.frames(Some(thread)).is_empty());
        let events = standing.set(vec![run("run", 7, None)], Some("step"));
        assert_eq!(events[0]["body"]["reason"], "step");
        assert_eq!(
            standing.call("stepBack", None).expect("it stands").call,
            "rewind(6)"
        );
        let frames = standing.frames(Some(thread));
        assert_eq!((&frames[0]["name"], frames.len()), (&json!("step 8"), 2));
        let source = frames[0]["source"]["path"].as_str().expect("a path");
        assert_eq!(standing.text(source).as_deref(), Some("run\n    step"));
        assert_eq!(
            (frames[0]["line"].as_u64(), standing.text("other")),
            (Some(2), None)
        );
        let outer = frames[1]["id"].as_u64().expect("an id");
        assert_eq!(standing.of_frame(outer), Some(("run", None)));
        assert_eq!(standing.of_frame(5), None);
    }

    #[test]
    fn a_run_goes_through_the_layers_of_its_coming_step() {
        let mut standing = Standing::default();
        standing.set(vec![run("run", 4, None)], None);
        let thread = standing.stopped()[0];
        let call = |standing: &Standing, command: &str| {
            let call = standing.call(command, Some(thread));
            call.expect("it stands").call
        };
        assert_eq!(call(&standing, "stepIn"), "next_layer()");
        standing.begin(thread);
        let layer = RunFrame {
            name: "forward: classifier (9 of 19)".to_owned(),
            line: 2,
            part: Some(("layer".to_owned(), 10)),
        };
        let mut inside = run("run", 4, None);
        inside.is_in_step = true;
        inside.frames.push(layer.clone());
        let events = standing.set(vec![inside], Some("step"));
        assert_eq!(events[0]["body"]["reason"], "step");
        let frames = standing.frames(Some(thread));
        assert_eq!(frames[0]["name"], layer.name);
        let inner = frames[0]["id"].as_u64().expect("an id");
        assert_eq!(standing.of_frame(inner), Some(("run", layer.part.as_ref())));
        assert_eq!(call(&standing, "stepBack"), "previous_layer()");
        assert_eq!(call(&standing, "stepOut"), "step(1)");
        assert_eq!(call(&standing, "reverseContinue"), "rewind(0)");
    }

    #[test]
    fn back_to_the_last_breakpoint() {
        let mut standing = Standing::default();
        standing.set(vec![run("run", 3, Some("nan()"))], None);
        let thread = standing.stopped()[0];
        let events = standing.set(vec![run("run", 9, Some("spike(4.0)"))], None);
        assert_eq!(
            (&events[0]["body"]["reason"], &events[0]["body"]["text"]),
            (&json!("exception"), &json!("spike(4.0)"))
        );
        let back = |standing: &Standing| {
            standing
                .call("reverseContinue", Some(thread))
                .map(|it| it.call)
        };
        assert_eq!(back(&standing), Ok("rewind(3)".to_owned()));
        standing.set(vec![run("run", 3, None)], None);
        assert_eq!(back(&standing), Ok("rewind(0)".to_owned()));
        standing.set(vec![run("run", 10, None)], None);
        assert_eq!(
            back(&standing),
            Ok("rewind(3)".to_owned()),
            "that of step 9 was undone"
        );
    }

    #[test]
    fn a_run_that_ends_is_no_thread() {
        let mut standing = Standing::default();
        standing.set(vec![run("a", 0, None), run("b", 0, None)], None);
        let [a, b] = standing.stopped()[..] else {
            panic!()
        };
        standing.begin(a);
        let events = standing.set(vec![run("b", 0, None)], Some("step"));
        assert_eq!(listed(&events), [("thread", a)]);
        let events = standing.set(Vec::new(), None);
        assert_eq!(listed(&events), [("continued", b), ("thread", b)]);
        assert!(standing.call("next", Some(b)).is_err());
        standing.set(vec![run("a", 0, None)], None);
        assert!(standing.stopped()[0] > b, "numbers are not given twice");
    }
}
