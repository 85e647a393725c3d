//! What the checks of a cell know of the notebook.

use stratoscope_diagnostics::Profile;
use stratoscope_diagnostics::check::{self, CellContext};

use super::Engine;

impl Engine {
    /// The variables, and the names that cells have defined.
    pub(super) fn known_to_checks(&self, profile: Option<Profile>) -> CellContext {
        CellContext {
            profile,
            variables: self
                .list_names()
                .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
                .collect(),
            defined: self.defined_names.clone(),
            ..CellContext::default()
        }
    }

    /// The variable that holds the strategy: the one that the cell makes, or the notebook's only one.
    pub(super) fn strategy_in(&self, code: &str) -> Option<String> {
        let mut names = check::strategies_made_in(code);
        if names.is_empty() {
            let strategies = self
                .list_names()
                .filter(|(_, kind)| kind.ends_with("Strategy"));
            names = strategies.map(|(name, _)| name.to_owned()).collect();
        }
        (names.len() == 1).then(|| names.remove(0))
    }
}
