//! Asks the process that runs the cells about values, for a debugger. It is asked between two cells, and while one runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stratoscope_session::Variable;
use stratoscope_wire::{InspectAnswer, InspectQuestion, InspectedValue};

use crate::assist::Assistant;
use crate::link::{Inspected, Link};
use crate::magic::table::short;

/// A value whose `Debug` takes longer is not shown. An optimizer step of a run whose model is read belongs to it.
const PATIENCE: Duration = Duration::from_secs(12);

/// Why there is no answer.
const NO_ANSWER: &str = "the process that runs the cells does not answer: it is not running, or the `Debug` of a value does not end";

/// Shared by the evaluator and by whoever asks while it runs a cell.
#[derive(Clone)]
pub struct Inspector {
    link: Arc<Link>,
    assistant: Assistant,
    /// How often types were redefined.
    generation: Arc<AtomicU32>,
}

impl Inspector {
    /// `assistant` knows the variables that the last cell has left.
    pub fn new(link: Arc<Link>, assistant: Assistant) -> Self {
        Self {
            link,
            assistant,
            generation: Arc::default(),
        }
    }

    /// Types are of this generation from now on.
    pub fn set_generation(&self, generation: u32) {
        self.generation.store(generation, Ordering::SeqCst);
    }

    /// Asks while no cell runs; the caller sees to that.
    pub fn ask_idle(&self, question: &InspectQuestion) -> Option<Inspected> {
        self.ask(true, question)
    }

    /// Asks while a cell may run: what it has taken, and what only its thread may read, is not read.
    pub fn ask_meanwhile(&self, question: InspectQuestion) -> InspectAnswer {
        let asked = self.ask(false, &question);
        self.named(&question, asked.map(|it| it.answer))
    }

    fn ask(&self, is_idle: bool, question: &InspectQuestion) -> Option<Inspected> {
        let generation = self.generation.load(Ordering::SeqCst);
        self.link
            .inspect(generation, is_idle, question.clone(), PATIENCE)
    }

    /// The answer with the types of the variables as the notebook writes them, and with those variables that a cell has.
    pub fn named(
        &self,
        question: &InspectQuestion,
        answer: Option<InspectAnswer>,
    ) -> InspectAnswer {
        let known = self.assistant.variables();
        match (question, answer) {
            (InspectQuestion::Variables, Some(InspectAnswer::Values { values, .. })) => {
                listed(&known, values)
            }
            (InspectQuestion::Variables, None) => listed(&known, Vec::new()),
            (_, Some(InspectAnswer::Found { path, mut value })) => {
                let Some(variable) = known.iter().find(|it| it.name == path.name) else {
                    // A name that a model had before it was moved.
                    return InspectAnswer::missing(format!("there is no variable `{}`", path.name));
                };
                if path.steps.is_empty() {
                    value.type_name = short(&variable.type_name);
                }
                InspectAnswer::Found { path, value }
            }
            (_, Some(answer)) => answer,
            (_, None) => InspectAnswer::missing(NO_ANSWER),
        }
    }
}

/// The variables of the notebook, with the values that are known.
fn listed(known: &[Variable], mut values: Vec<InspectedValue>) -> InspectAnswer {
    let listed = known.iter().map(|variable| {
        let found = values.iter_mut().find(|it| it.name == variable.name);
        let value = found.map(std::mem::take).unwrap_or_default();
        InspectedValue {
            name: variable.name.clone(),
            type_name: short(&variable.type_name),
            ..value
        }
    });
    let values: Vec<InspectedValue> = listed.collect();
    let count = values.len();
    InspectAnswer::Values {
        values,
        named: count,
        all_named: count,
        all_indexed: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notebook_decides_which_variables_there_are() {
        let variable = |name: &str| Variable {
            name: name.to_owned(),
            type_name: "u8".to_owned(),
            ..Variable::default()
        };
        let value = |name: &str| InspectedValue {
            name: name.to_owned(),
            value: Some("7".to_owned()),
            ..InspectedValue::default()
        };
        let known = [variable("free"), variable("taken")];
        // The store holds more than variables.
        let answer = listed(&known, vec![value("executor"), value("free")]);
        let InspectAnswer::Values { values, .. } = answer else {
            panic!("{answer:?}")
        };
        let shown = values
            .iter()
            .map(|it| (it.name.as_str(), it.value.as_deref()));
        assert!(shown.eq([("free", Some("7")), ("taken", None)]));
        assert!(values.iter().all(|it| it.type_name == "u8"));
    }
}
