//! The actions that a run offers to requests: one table from which their description, the checks and what they do follow.
//!
//! A change is made by the same function as the method of `Run` with its name, so it has the checks of a cell.

use serde_json::{Map, Value, json};
use stratoscope_diagnostics::Result;

use super::arguments::{Argument, Given, Kind};
use crate::batch_changes::{accumulation_change, batch_size_change, drop_change};
use crate::edits::{Change, clipping_change, pin, rate_change, scale, skip_change};
use crate::regularization::{decay_change, dropout_change};
use crate::run_state::RunState;
use crate::state::ModelState;
use stratoscope_arguments::count::{Count, IntoCount};
use stratoscope_optim::Clipping;

/// An action.
pub struct Action {
    /// Its name.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// What it does, without a final dot.
    pub does: &'static str,
    /// What it does, as code.
    pub effect: Effect,
}

/// What an action does.
pub enum Effect {
    /// Shows where the run is, and its settings. It is not recorded.
    Report,
    /// A change, before the next step of a run that trains or stands.
    Change(fn(&Given<'_>, &RunState<'_>, &ModelState) -> Result<Change>),
    /// Moves a run that trains, as its buttons do.
    Move(Move),
    /// A call of a run that stands, as a cell makes it. Returns what it says.
    Call(fn(&dyn Standing, &Given<'_>) -> Result<Value>),
    /// The first for a run that trains, the second for one that stands.
    Either(Move, fn(&dyn Standing, &Given<'_>) -> Result<Value>),
    /// Turns a run of `start!` back: one that trains leaves its loop for that, one that stands does it by this call.
    Rewind(fn(&dyn Standing, &Given<'_>) -> Result<Value>),
}

/// A run of `start!` that stands between two cells, as requests drive it. Each call is the method of `Run` with its name, and
/// returns what it prints.
#[allow(missing_docs, reason = "named as the methods of `Run`")]
pub trait Standing {
    fn step(&self, steps: u64) -> Result<Value>;
    fn epoch(&self) -> Result<Value>;
    fn finish(&self) -> Result<Value>;
    fn rewind(&self, step: u64) -> Result<Value>;
}

/// What moves a run that trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It waits before the next step.
    Pause,
    /// It makes one step and waits.
    Step,
    /// It goes on.
    Continue,
    /// It ends as after an interrupt.
    Stop,
}

/// As in `run.freeze(prefix)`, in bytes.
const MAX_PREFIX: usize = 256;
/// Rows of one request.
const MAX_ROWS: usize = 1000;
/// Steps, examples and batches.
const MAX_COUNT: u64 = 1_000_000_000;

const RATE: Argument = Argument::new("rate", Kind::Number, "the rate of every step from now on");
const FACTOR: Argument = Argument::new(
    "factor",
    Kind::Number,
    "multiplies what the schedule says; factors multiply",
);
const CLIPPINGS: [&str; 4] = ["none", "clipnorm", "global_clipnorm", "clipvalue"];
const PREFIX: Argument = Argument::new(
    "prefix",
    Kind::Text(MAX_PREFIX),
    "the beginning of the names of variables",
);

/// The table.
pub(crate) const ACTIONS: [Action; 19] = [
    Action {
        name: "report",
        arguments: &[],
        does: "shows where the run is, its latest numbers, its settings and its changes",
        effect: Effect::Report,
    },
    Action {
        name: "pause",
        arguments: &[],
        does: "waits before the next optimizer step",
        effect: Effect::Move(Move::Pause),
    },
    Action {
        name: "continue",
        arguments: &[],
        does: "lets a paused run go on",
        effect: Effect::Move(Move::Continue),
    },
    Action {
        name: "stop",
        arguments: &[],
        does: "ends the call as an interrupt does; nothing is lost",
        effect: Effect::Move(Move::Stop),
    },
    Action {
        name: "step",
        arguments: &[Argument::new(
            "steps",
            Kind::Whole(1, MAX_COUNT),
            "optimizer steps, 1 if it is left out; a paused run makes one",
        )
        .optional()],
        does: "makes optimizer steps, then waits",
        effect: Effect::Either(Move::Step, |run, given| {
            run.step(given.whole("steps").unwrap_or(1))
        }),
    },
    Action {
        name: "epoch",
        arguments: &[],
        does: "goes on to the end of the epoch",
        effect: Effect::Call(|run, _| run.epoch()),
    },
    Action {
        name: "finish",
        arguments: &[],
        does: "makes all steps that are left",
        effect: Effect::Call(|run, _| run.finish()),
    },
    Action {
        name: "rewind",
        arguments: &[Argument::new(
            "step",
            Kind::Whole(0, MAX_COUNT),
            "the optimizer steps that it has made afterwards",
        )],
        does: "takes a run of `start!` back to a step; one that trains then goes on to the end of its call",
        effect: Effect::Rewind(|run, given| run.rewind(given.whole("step").unwrap_or(0))),
    },
    Action {
        name: "set_learning_rate",
        arguments: &[RATE],
        does: "sets the learning rate",
        effect: Effect::Change(|given, _, _| rate_change(pin(given.number("rate")))),
    },
    Action {
        name: "scale_learning_rate",
        arguments: &[FACTOR],
        does: "multiplies the learning rate",
        effect: Effect::Change(|given, _, _| rate_change(scale(given.number("factor")))),
    },
    Action {
        name: "set_clipping",
        arguments: &[
            Argument::new("kind", Kind::OneOf(&CLIPPINGS), "what is limited"),
            Argument::new("limit", Kind::Positive, "the limit; not for `none`").optional(),
        ],
        does: "sets how gradients are clipped",
        effect: Effect::Change(|given, _, _| {
            let limit = given.number("limit");
            clipping_change(match given.text("kind") {
                "clipnorm" => Clipping::PerTensor(limit),
                "global_clipnorm" => Clipping::Global(limit),
                "clipvalue" => Clipping::Value(limit),
                _ => Clipping::None,
            })
        }),
    },
    Action {
        name: "set_dropout",
        arguments: &[Argument::new(
            "rate",
            Kind::Share,
            "the rate of every dropout",
        )],
        does: "sets dropout",
        effect: Effect::Change(|given, _, _| dropout_change(given.number("rate"))),
    },
    Action {
        name: "set_weight_decay",
        arguments: &[Argument::new("decay", Kind::Number, "the decay")],
        does: "sets the weight decay of an optimizer that has one",
        effect: Effect::Change(|given, run, _| decay_change(run, given.number("decay"))),
    },
    Action {
        name: "skip_batch",
        arguments: &[],
        does: "leaves out the batch of the next step",
        effect: Effect::Change(|_, run, _| skip_change(run)),
    },
    Action {
        name: "freeze",
        arguments: &[PREFIX],
        does: "does not train these variables any more",
        effect: Effect::Change(|given, _, _| {
            Ok(Change::Train(given.text("prefix").to_owned(), false))
        }),
    },
    Action {
        name: "unfreeze",
        arguments: &[PREFIX],
        does: "trains these variables again",
        effect: Effect::Change(|given, _, _| {
            Ok(Change::Train(given.text("prefix").to_owned(), true))
        }),
    },
    Action {
        name: "drop_examples",
        arguments: &[Argument::new(
            "rows",
            Kind::Rows(MAX_ROWS),
            "indices in the training data",
        )],
        does: "leaves these examples out from now on",
        effect: Effect::Change(|given, run, state| {
            let rows: Vec<Count> = (given.rows("rows").into_iter())
                .map(IntoCount::into_count)
                .collect();
            drop_change(state, run, &rows)
        }),
    },
    Action {
        name: "set_batch_size",
        arguments: &[Argument::new(
            "examples",
            Kind::Whole(1, MAX_COUNT),
            "the examples of a batch",
        )],
        does: "sets the batch size",
        effect: Effect::Change(|given, run, state| {
            batch_size_change(state, run, given.whole("examples").unwrap_or(1))
        }),
    },
    Action {
        name: "set_accumulation",
        arguments: &[Argument::new(
            "batches",
            Kind::Whole(1, MAX_COUNT),
            "the batches of an optimizer step",
        )],
        does: "sets how many batches make an optimizer step",
        effect: Effect::Change(|given, run, state| {
            accumulation_change(state, run, given.whole("batches").unwrap_or(1))
        }),
    },
];

impl Action {
    /// The action with a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ACTIONS.iter().find(|it| it.name == name)
    }

    /// Whether a run offers it while it trains.
    pub(crate) fn is_for_training(&self) -> bool {
        !matches!(self.effect, Effect::Call(_))
    }

    /// Whether a run offers it between two cells.
    pub(crate) fn is_for_standing(&self) -> bool {
        !matches!(self.effect, Effect::Move(_))
    }

    fn description(&self) -> Value {
        let properties = self.arguments.iter();
        let properties: Map<String, Value> = properties
            .map(|it| (it.name.to_owned(), it.schema()))
            .collect();
        let required = self.arguments.iter().filter(|it| !it.is_optional);
        let required: Vec<&str> = required.map(|it| it.name).collect();
        json!({
            "action": self.name,
            "description": self.does,
            "training": self.is_for_training(),
            "standing": self.is_for_standing(),
            "arguments": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            },
        })
    }
}

/// All actions as JSON: their names, what they do, whether a run offers them while it trains and while it stands between two
/// cells, and their arguments as JSON Schema.
pub fn actions() -> Value {
    ACTIONS.iter().map(Action::description).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_action_is_described_once() {
        let described = actions();
        let described = described.as_array().expect("a list");
        let names: BTreeSet<&str> = described
            .iter()
            .filter_map(|it| it["action"].as_str())
            .collect();
        assert_eq!(names.len(), ACTIONS.len());
        for it in described {
            assert!(it["training"] == true || it["standing"] == true, "{it}");
            assert_eq!(it["arguments"]["additionalProperties"], false);
        }
        let rate = described
            .iter()
            .find(|it| it["action"] == "set_learning_rate");
        let rate = rate.expect("there is one");
        assert_eq!(rate["arguments"]["required"], json!(["rate"]));
        assert_eq!(rate["arguments"]["properties"]["rate"]["minimum"], 0);
    }
}
