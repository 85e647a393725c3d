//! What the checks of a cell know of the notebook.

use stratoscope_diagnostics::Profile;
use stratoscope_diagnostics::check::CellContext;

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
}
