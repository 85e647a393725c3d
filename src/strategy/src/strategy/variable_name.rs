//! What the notebook calls a strategy: the name of the variable that holds its handle.
//!
//! Only this name distinguishes two strategies of one type. A variable is known when its cell has stored it; until
//! then the kernel, which has the text of the cell, finds it by the line that makes the strategy.

use std::any::Any;
use std::sync::{PoisonError, Weak};

use stratoscope_diagnostics::UnnamedStrategy;
use stratoscope_diagnostics::rules::StrategyName;

use super::list::strategy_in;
use super::{REGISTRY, Strategy};
use crate::origin;

impl Strategy {
    /// The variable that holds it, if the notebook has stored one.
    pub fn variable(&self) -> Option<String> {
        let variable = self.0.variable.lock();
        let variable = variable.unwrap_or_else(PoisonError::into_inner).clone();
        variable.filter(|_| self.is_live())
    }

    /// Its name in a message: that of its variable, else its [label](Self::label).
    pub fn shown(&self) -> String {
        self.variable().unwrap_or_else(|| self.label())
    }

    /// The strategy for whoever has the text of the running cell, if that cell makes it and has not stored it yet.
    pub fn unnamed(&self) -> Option<UnnamedStrategy> {
        let made = &self.0.made;
        let is_of_this_cell = made.cell.is_some() && made.cell == origin::current_cell();
        if !is_of_this_cell || self.variable().is_some() {
            return None;
        }
        Some(UnnamedStrategy {
            label: self.label(),
            line: usize::try_from(made.line?).unwrap_or(usize::MAX),
        })
    }

    /// As messages and fixes name it.
    pub fn named(&self) -> StrategyName {
        let unnamed = self.unnamed();
        StrategyName {
            shown: self.shown(),
            is_made_here: unnamed.is_some(),
            // The label stands for the variable until the kernel has found it.
            variable: self.variable().or_else(|| unnamed.map(|it| it.label)),
        }
    }

    fn set_variable(&self, name: Option<&str>) {
        let mut variable = self
            .0
            .variable
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *variable = name.map(str::to_owned);
    }
}

/// Notes that the notebook's variable `name` holds this value, which may be a strategy.
pub fn note_variable(name: &str, value: &dyn Any) {
    let known: Vec<Strategy> = {
        let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        registry
            .iter()
            .filter_map(Weak::upgrade)
            .map(Strategy)
            .collect()
    };
    for strategy in known
        .iter()
        .filter(|it| it.variable().as_deref() == Some(name))
    {
        strategy.set_variable(None);
    }
    if let Some(strategy) = strategy_in(value) {
        strategy.set_variable(Some(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AsStrategy, MirroredStrategy};

    fn two() -> MirroredStrategy {
        MirroredStrategy::logical(2).expect("two logical devices")
    }

    #[test]
    fn strategies_of_one_type_are_distinguished_by_their_variables() {
        let _turn = origin::taking_turns();
        let (first, second) = (two(), two());
        assert_eq!(first.strategy().shown(), first.strategy().label());
        note_variable("first", &first);
        note_variable("second", &second);
        assert_eq!(first.strategy().shown(), "first");
        assert_eq!(second.strategy().shown(), "second");
    }

    #[test]
    fn a_name_that_was_given_away_or_dropped_is_not_used() {
        let _turn = origin::taking_turns();
        let (first, second) = (two(), two());
        note_variable("strategy_of_two", &first);
        note_variable("strategy_of_two", &second);
        assert_eq!(first.strategy().variable(), None);
        note_variable("strategy_of_two", &5_i32);
        assert_eq!(second.strategy().variable(), None);
        note_variable("dropped", &second);
        let bound = second.strategy();
        drop(second);
        assert_eq!(bound.shown(), bound.label());
    }

    #[test]
    fn the_running_cell_knows_a_strategy_by_its_line() {
        let _turn = origin::taking_turns();
        origin::begin_cell(3);
        origin::set_statement(3, 7);
        let handle = two();
        let strategy = handle.strategy();
        let unnamed = strategy.unnamed().expect("made in this cell");
        assert_eq!((unnamed.label, unnamed.line), (strategy.label(), 7));
        note_variable("named_now", &handle);
        assert!(strategy.unnamed().is_none());
        origin::clear();
    }
}
