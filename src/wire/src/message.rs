//! The messages themselves, one enum a direction. Since protocol 1, all of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stratoscope_diagnostics::Diagnostic;

use crate::MimeBundle;
use crate::inspect::{InspectAnswer, InspectQuestion};
use crate::request::RunRequest;

/// Cell process → kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToKernel {
    /// First message. The kernel refuses a version it does not know.
    Hello {
        /// [`VERSION`](crate::VERSION) of the cell process.
        version: u32,
        /// Its process id, by which the kernel interrupts it.
        pid: u32,
    },
    /// Shows something below the running cell.
    Display {
        /// What, by MIME type.
        data: MimeBundle,
        /// Jupyter metadata, by MIME type.
        metadata: MimeBundle,
        /// Names the display so that it can be updated.
        display_id: Option<String>,
        /// `true`: replaces every display of that id instead of adding one.
        update: bool,
    },
    /// The value of the cell's last expression: Jupyter's `execute_result`.
    Result {
        /// What, by MIME type.
        data: MimeBundle,
    },
    /// Removes the cell's outputs.
    ClearOutput {
        /// Wait for the next output before clearing.
        wait: bool,
    },
    /// A warning or note found while the cell runs; the cell goes on.
    Diagnostic {
        /// What was found.
        diagnostic: Box<Diagnostic>,
        /// Line of the cell, counted from 1, of the statement that runs: of several calls of one name it is
        /// the one that is meant.
        line: Option<usize>,
    },
    /// A `?` of the cell met an error; the cell ends.
    Failed {
        /// The error as a diagnostic, where it was one.
        diagnostic: Option<Box<Diagnostic>>,
        /// The error's text.
        message: String,
        /// Line of the cell, counted from 1, of the statement that failed.
        line: Option<usize>,
    },
    /// A panic of the cell's thread.
    Panicked {
        /// The panic's message.
        message: String,
        /// Line of the cell, counted from 1.
        line: Option<usize>,
        /// Backtrace or place outside the cell, for the curious.
        location: Option<String>,
    },
    /// The library of the cell could not be loaded: nothing of the cell has run, and its variables are as before.
    NotLoaded {
        /// The reason, in the loader's words.
        reason: String,
    },
    /// Asks the person at the notebook for a line.
    Input {
        /// Shown before the field.
        prompt: String,
        /// Do not echo.
        password: bool,
    },
    /// Answer to [`ToCells::Describe`]: what the variables that live between cells hold.
    Described {
        /// In order of their names.
        variables: Vec<Described>,
    },
    /// A cell was ended early: those of its variables that are kept nevertheless, and those that it
    /// shadows and that are there again.
    Kept {
        /// In any order.
        variables: Vec<KeptVariable>,
    },
    /// A run of training begins, pauses, goes on or ends: front ends with widgets show its buttons meanwhile.
    Controls {
        /// The number of the run.
        run: u64,
        /// What it does.
        state: RunState,
    },
    /// From a thread that an earlier cell has started.
    ForeignOutput {
        /// In which run of the process: its first cell is run 1.
        run: u64,
        /// Something that is shown ([`Self::is_shown`]) below that cell.
        message: Box<ToKernel>,
    },
    /// Sent when an interrupt was heard; the cell will end by itself soon.
    Interrupted,
    /// Answer to [`ToCells::Inspect`].
    Inspected {
        /// The number of the question.
        id: u64,
        /// The answer.
        answer: InspectAnswer,
        /// The variables that it is about and whose values cannot be shown before their types are registered.
        unknown: Vec<String>,
    },
    /// Answer to [`ToCells::Request`].
    Answered {
        /// The number of the request.
        id: u64,
        /// The answer, as the one who asks gets it.
        answer: Value,
    },
    /// Answer to [`ToCells::Sync`]: everything sent before it has arrived.
    Synced {
        /// The number of the question.
        id: u64,
    },
}

impl ToKernel {
    /// Whether it has a place among the cell's outputs, and the kernel answers [`ToCells::Shown`].
    pub fn is_shown(&self) -> bool {
        matches!(
            self,
            Self::Display { .. }
                | Self::Result { .. }
                | Self::ClearOutput { .. }
                | Self::Diagnostic { .. }
                | Self::ForeignOutput { .. }
        )
    }
}

/// What a run of training does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It trains.
    Running,
    /// It waits between two optimizer steps.
    Paused,
    /// It is over, or its call has returned.
    Ended,
}

/// What a button below a run's table asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAction {
    /// Wait before the next optimizer step.
    Pause,
    /// Make one optimizer step, then wait again.
    Step,
    /// Go on.
    Continue,
    /// End the call, as the interrupt button does; nothing is lost.
    Stop,
    /// Half the learning rate from the next step on.
    HalveRate,
    /// Twice the learning rate from the next step on.
    DoubleRate,
}

/// What a variable holds, as far as the cell process can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Of its value, and of what that owns where its type is known; not what it shares.
    pub bytes: u64,
    /// The device of its numbers, if it has one.
    pub device: Option<String>,
}

/// A variable of a cell that was ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptVariable {
    /// Its name.
    pub name: String,
    /// Its type, as Rust code.
    pub type_name: String,
    /// Whether it is declared `mut`.
    pub is_mutable: bool,
    /// Whether the cell has made it; otherwise it is what it was before.
    pub is_new: bool,
}

/// Kernel → cell process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToCells {
    /// Answer to the handshake.
    Hello {
        /// [`VERSION`](crate::VERSION) of the kernel.
        version: u32,
    },
    /// Asks for [`ToKernel::Synced`] behind everything that was sent before. The kernel asks when
    /// a cell has ended, and replies to the front end after the answer.
    Sync {
        /// Comes back in the answer.
        id: u64,
    },
    /// Asks for [`ToKernel::Described`]. Those that a running cell holds are missing.
    Describe,
    /// Asks for [`ToKernel::Inspected`].
    Inspect {
        /// Comes back in the answer.
        id: u64,
        /// How often types were redefined: what was registered of types before is void.
        generation: u32,
        /// No cell runs, and none begins before the answer: values of every type may be read.
        is_idle: bool,
        /// What is asked.
        question: InspectQuestion,
    },
    /// The interrupt button: stop between two steps and keep everything.
    Interrupt,
    /// Answer to whatever [`ToKernel::is_shown`]: it has its place among the outputs. What the cell
    /// prints next comes after it.
    Shown,
    /// Warnings of these codes, and of no others, are errors: `%warnings deny`. Sent when that changes,
    /// and first of all to a process that is new.
    Deny {
        /// Such as `SC0701`.
        codes: Vec<String>,
    },
    /// A button of a run was pressed.
    Control {
        /// The number of the run.
        run: u64,
        /// What it asks for.
        action: RunAction,
    },
    /// A request to a run of the running cell. Asks for [`ToKernel::Answered`].
    Request {
        /// Comes back in the answer.
        id: u64,
        /// What is asked.
        request: RunRequest,
    },
    /// Answer to [`ToKernel::Input`].
    InputReply {
        /// What was typed, without the line's end; `None` where nobody can be asked, and after an interrupt.
        text: Option<String>,
    },
    /// The session is over and no cell runs: the process ends, after what must be ended in order, such as MPI.
    Leave,
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use stratoscope_diagnostics::Severity;

    use super::*;

    /// The value and the JSON mean each other.
    fn check<M>(message: M, expected: serde_json::Value)
    where
        M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        assert_eq!(
            serde_json::to_value(&message).expect("serializes"),
            expected
        );
        assert_eq!(
            serde_json::from_value::<M>(expected).expect("parses"),
            message
        );
    }

    fn bundle(text: &str) -> MimeBundle {
        MimeBundle::from_iter([("text/plain".to_owned(), json!(text))])
    }

    fn diagnostic() -> Box<Diagnostic> {
        Box::new(Diagnostic::new(
            "SC0102",
            Severity::Error,
            "`steps_per_execution` needs a scope",
        ))
    }

    #[test]
    fn to_kernel_is_what_the_specification_says() {
        check(
            ToKernel::Hello {
                version: 1,
                pid: 77,
            },
            json!({"kind": "hello", "version": 1, "pid": 77}),
        );
        check(
            ToKernel::Display {
                data: bundle("Grüße\n"),
                metadata: MimeBundle::new(),
                display_id: Some("progress".into()),
                update: true,
            },
            json!({"kind": "display", "data": {"text/plain": "Grüße\n"}, "metadata": {},
                   "display_id": "progress", "update": true}),
        );
        check(
            ToKernel::Result { data: bundle("2") },
            json!({"kind": "result", "data": {"text/plain": "2"}}),
        );
        check(
            ToKernel::ClearOutput { wait: false },
            json!({"kind": "clear_output", "wait": false}),
        );
        check(
            ToKernel::Panicked {
                message: "boom".into(),
                line: Some(3),
                location: None,
            },
            json!({"kind": "panicked", "message": "boom", "line": 3, "location": null}),
        );
        check(
            ToKernel::NotLoaded {
                reason: "too many open files".into(),
            },
            json!({"kind": "not_loaded", "reason": "too many open files"}),
        );
        check(
            ToKernel::Input {
                prompt: "name?".into(),
                password: true,
            },
            json!({"kind": "input", "prompt": "name?", "password": true}),
        );
        check(
            ToKernel::Described {
                variables: vec![Described {
                    name: "x".into(),
                    bytes: 24,
                    device: None,
                }],
            },
            json!({"kind": "described",
                   "variables": [{"name": "x", "bytes": 24, "device": null}]}),
        );
        check(
            ToKernel::Kept {
                variables: vec![KeptVariable {
                    name: "x".into(),
                    type_name: "Vec<u8>".into(),
                    is_mutable: true,
                    is_new: false,
                }],
            },
            json!({"kind": "kept",
                   "variables": [{"name": "x", "type_name": "Vec<u8>", "is_mutable": true,
                                  "is_new": false}]}),
        );
        check(
            ToKernel::ForeignOutput {
                run: 3,
                message: Box::new(ToKernel::ClearOutput { wait: true }),
            },
            json!({"kind": "foreign_output", "run": 3, "message": {"kind": "clear_output", "wait": true}}),
        );
        check(
            ToKernel::Controls {
                run: 2,
                state: RunState::Paused,
            },
            json!({"kind": "controls", "run": 2, "state": "paused"}),
        );
        check(ToKernel::Interrupted, json!({"kind": "interrupted"}));
        check(
            ToKernel::Inspected {
                id: 4,
                answer: InspectAnswer::missing("there is none"),
                unknown: vec!["x".into()],
            },
            json!({"kind": "inspected", "id": 4, "answer": {"answer": "missing", "reason": "there is none"},
                   "unknown": ["x"]}),
        );
        check(
            ToKernel::Answered {
                id: 5,
                answer: crate::request::refusal("no_run", "no run trains"),
            },
            json!({"kind": "answered", "id": 5,
                   "answer": {"ok": false, "error": {"code": "no_run", "message": "no run trains"}}}),
        );
        check(
            ToKernel::Synced { id: 9 },
            json!({"kind": "synced", "id": 9}),
        );
    }

    #[test]
    fn to_cells_is_what_the_specification_says() {
        check(
            ToCells::Hello { version: 1 },
            json!({"kind": "hello", "version": 1}),
        );
        check(ToCells::Sync { id: 4 }, json!({"kind": "sync", "id": 4}));
        check(ToCells::Describe, json!({"kind": "describe"}));
        check(
            ToCells::Inspect {
                id: 4,
                generation: 1,
                is_idle: true,
                question: InspectQuestion::Find {
                    expression: "x.y".into(),
                },
            },
            json!({"kind": "inspect", "id": 4, "generation": 1, "is_idle": true,
                   "question": {"about": "find", "expression": "x.y"}}),
        );
        check(ToCells::Interrupt, json!({"kind": "interrupt"}));
        check(ToCells::Shown, json!({"kind": "shown"}));
        check(
            ToCells::Deny {
                codes: vec!["SC0701".into()],
            },
            json!({"kind": "deny", "codes": ["SC0701"]}),
        );
        check(
            ToCells::Control {
                run: 2,
                action: RunAction::HalveRate,
            },
            json!({"kind": "control", "run": 2, "action": "halve_rate"}),
        );
        check(
            ToCells::Request {
                id: 5,
                request: RunRequest {
                    run: Some(2),
                    from: "socket".into(),
                    action: "pause".into(),
                    ..RunRequest::default()
                },
            },
            json!({"kind": "request", "id": 5,
                   "request": {"run": 2, "from": "socket", "action": "pause", "arguments": {}}}),
        );
        check(
            ToCells::InputReply {
                text: Some("Ada".into()),
            },
            json!({"kind": "input_reply", "text": "Ada"}),
        );
        check(
            ToCells::InputReply { text: None },
            json!({"kind": "input_reply", "text": null}),
        );
    }

    #[test]
    fn a_diagnostic_survives_the_journey() {
        for message in [
            ToKernel::Diagnostic {
                diagnostic: diagnostic(),
                line: Some(2),
            },
            ToKernel::Failed {
                diagnostic: Some(diagnostic()),
                message: "failed".into(),
                line: Some(2),
            },
        ] {
            let text = serde_json::to_string(&message).expect("serializes");
            assert_eq!(
                serde_json::from_str::<ToKernel>(&text).expect("parses"),
                message
            );
        }
    }

    #[test]
    fn unknown_fields_and_kinds_are_refused() {
        for text in [
            r#"{"kind": "hello", "version": 1, "pid": 1, "extra": 0}"#,
            r#"{"kind": "synced", "id": 1, "more": true}"#,
            r#"{"kind": "goodbye"}"#,
            r#"{"version": 1, "pid": 1}"#,
            r#"{"kind": "synced", "id": -1}"#,
        ] {
            serde_json::from_str::<ToKernel>(text).expect_err(text);
        }
    }
}
