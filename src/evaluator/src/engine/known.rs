//! What the checks of a cell know of the notebook.

use stratoscope_diagnostics::check::CellContext;
use stratoscope_diagnostics::{Diagnostic, Profile};
use stratoscope_session::{Cell, CellOutcome};

use super::Engine;
use crate::lost_variables::{Cause, bound_in};
use crate::show;

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

    /// The outcome of a cell of which nothing has run: a later cell may ask for what it binds.
    pub(super) fn refused_by_checks(
        &mut self,
        errors: &[Diagnostic],
        cell: &Cell<'_>,
    ) -> CellOutcome {
        self.relay.end();
        let known = self.variable_names();
        for name in bound_in(cell.code).filter(|name| !known.contains(*name)) {
            self.lost_variables
                .note_if_new(name, Cause::NotMade, cell.number);
        }
        CellOutcome::Error(show::error_of(errors, cell.code, cell.number))
    }
}
