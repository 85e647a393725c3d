//! What a request leads to, and what is remembered of one that waits.

use serde_json::Value;
use stratoscope_wire::{InspectQuestion, RunAction};

use crate::references::Referred;
use crate::standing::Move;

/// What is to be done for a request.
#[derive(Debug)]
pub enum Action {
    /// Nothing more: this is the reply.
    Reply(Answered),
    /// A question about values; its answer goes to [`crate::Debugger::inspected`].
    Inspect {
        /// What is asked.
        question: InspectQuestion,
        /// For the reply.
        then: Pending,
    },
    /// A run of `start!` is to be moved by the call that a cell would make. If no cell runs, [`crate::Debugger::begin_move`] makes
    /// the reply, otherwise [`crate::Debugger::refuse`].
    Move(Pending),
    /// Rust code is to be evaluated, if no cell runs; its result goes to [`crate::Debugger::evaluated`].
    Evaluate {
        /// The code.
        expression: String,
        /// For the reply.
        then: Pending,
    },
}

/// A reply, and the events that follow it.
#[derive(Debug)]
pub struct Answered {
    /// The content of `debug_reply`.
    pub reply: Value,
    /// The contents of `debug_event`s.
    pub events: Vec<Value>,
    /// What is done besides.
    pub then: Option<Then>,
}

/// What is done besides a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// A run of the running cell is asked for this.
    Control(u64, RunAction),
    /// The call that moves a run is interrupted: the run stands before its next step.
    Interrupt,
    /// After the reply: the kernel asks where the runs stand ([`crate::Debugger::runs_stand`]).
    Look,
    /// After the reply: this code is evaluated, [`crate::Debugger::moved`] gets its result, and then the kernel asks where
    /// the runs stand.
    Evaluate(String),
}

/// A request that waits for an answer.
#[derive(Debug)]
pub struct Pending {
    pub(crate) request: Asked,
    pub(crate) about: About,
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub seq: Value,
    pub command: String,
}

/// What a request is about.
#[derive(Debug)]
pub(crate) enum About {
    Variables,
    Children(Children),
    /// `hover`, `watch`, `repl` or nothing.
    Evaluate {
        expression: String,
        may_run: bool,
    },
    /// First where the value is, then what is displayed of it.
    Rich,
    Move(Move),
}

/// The children that a request asks for.
#[derive(Debug)]
pub(crate) struct Children {
    pub of: Referred,
    /// The first positions among the named and among the indexed children.
    pub starts: (usize, usize),
    /// All children are wanted, so that a long list is divided.
    pub is_whole: bool,
}
