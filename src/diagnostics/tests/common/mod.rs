//! What the tests of the pages share.

use stratoscope_diagnostics::check::CellContext;
use stratoscope_diagnostics::{Entry, Profile};

/// The notebook as the cells before a page's two leave it.
pub fn context(entry: &Entry) -> CellContext {
    let profiles = entry
        .given
        .iter()
        .filter_map(|cell| cell.strip_prefix("%profile "));
    CellContext {
        profile: profiles.filter_map(Profile::parse).next_back(),
        ..CellContext::default()
    }
}
