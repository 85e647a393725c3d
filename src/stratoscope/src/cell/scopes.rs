//! The expansion of `scope!` that the kernel writes, so that the `let`s inside it are variables of the notebook.

use stratoscope_diagnostics::Result;
use stratoscope_strategy::scope::ScopeGuard;
use stratoscope_strategy::{AsStrategy, origin, scope};

/// Enters the scope of `strategy`, until [`leave`].
///
/// # Errors
/// SC0204 inside the scope of another strategy.
pub fn enter<S: AsStrategy>(strategy: &S) -> Result<()> {
    scope::push(strategy)
}

/// Leaves the scope that was entered last.
pub fn leave() {
    scope::leave();
}

/// Enters the scope of `strategy` until the guard is dropped, for a `scope!` whose value is used.
///
/// # Errors
/// SC0204 inside the scope of another strategy.
pub fn guard<S: AsStrategy>(strategy: &S) -> Result<ScopeGuard> {
    scope::enter(strategy)
}

/// Leaves every scope: a cell begins or has failed. A default strategy stays.
pub(crate) fn reset() {
    scope::leave_all();
}

/// A cell begins.
pub(crate) fn begin(cell: u64) {
    scope::leave_all();
    origin::begin_cell(cell);
}

/// Sets the cell and line that variables made from now on remember.
pub(crate) fn statement(cell: u64, line: u32) {
    origin::set_statement(cell, line);
}
