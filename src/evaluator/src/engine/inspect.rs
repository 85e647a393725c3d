//! Questions of a debugger between two cells. Types that the cell process cannot show are registered by a cell first, which
//! only a cell can do: it names them. The cell has no statement besides, uses no variable, and shows nothing.

use std::collections::BTreeSet;

use stratoscope_wire::{InspectAnswer, InspectQuestion};

use super::{Engine, Evaluate};
use crate::inspector::Inspector;
use crate::link::Inspected;

/// More types are registered when they are asked for next.
const MOST_TYPES: usize = 100;

/// How values are asked for, and what was registered for that.
pub(super) struct Inspection {
    inspector: Inspector,
    /// The types that were registered, or that no cell can register.
    tried: BTreeSet<String>,
    /// The generation of types that they are of, and the process that knows them.
    of: (u32, u64),
}

impl Inspection {
    /// Nothing was registered.
    pub(super) fn new(inspector: Inspector) -> Self {
        Self {
            inspector,
            tried: BTreeSet::new(),
            of: (0, 0),
        }
    }

    /// For those who ask while a cell runs.
    pub(super) fn inspector(&self) -> Inspector {
        self.inspector.clone()
    }
}

impl Engine {
    /// Answers while no cell runs.
    pub(super) fn inspect_idle(&mut self, question: InspectQuestion) -> InspectAnswer {
        let inspector = self.inspection.inspector();
        inspector.set_generation(self.generation);
        let mut asked = inspector.ask_idle(&question);
        if let Some(found) = &asked
            && self.register_types_of(found)
        {
            asked = inspector.ask_idle(&question);
        }
        inspector.named(&question, asked.map(|it| it.answer))
    }

    /// Registers the types of these variables that were not tried before. Whether any was.
    fn register_types_of(&mut self, found: &Inspected) -> bool {
        let now = (self.generation, found.process);
        if self.inspection.of != now {
            self.inspection.of = now;
            self.inspection.tried.clear();
        }
        let types: BTreeSet<String> = self
            .list_names()
            .filter(|(name, kind)| {
                found.unknown.iter().any(|it| it == name) && !self.inspection.tried.contains(*kind)
            })
            .map(|(_, kind)| kind.to_owned())
            .take(MOST_TYPES)
            .collect();
        if types.is_empty() {
            return false;
        }
        self.inspection.tried.extend(types.iter().cloned());
        let all: Vec<&str> = types.iter().map(String::as_str).collect();
        if !self.register(&all) && all.len() > 1 {
            // One of them cannot be named there.
            for kind in all {
                self.register(&[kind]);
            }
        }
        true
    }

    fn register(&mut self, types: &[&str]) -> bool {
        let code = format!("::stratoscope::__register_types!({});", types.join(", "));
        self.evaluate_expression(&code).is_ok()
    }
}
