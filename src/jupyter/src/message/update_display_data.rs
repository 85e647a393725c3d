//! `update_display_data`: replaces displays of a name. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#update-display-data>

use serde::Serialize;
use stratoscope_wire::MimeBundle;

use super::Content;
use super::display_data::Transient;

/// Takes the place of every display with the same name, in whatever cell.
#[derive(Debug, Serialize)]
pub struct UpdateDisplayData {
    /// Its representations, by MIME type.
    pub data: MimeBundle,
    /// About the representations.
    pub metadata: MimeBundle,
    /// Holds the display's name.
    pub transient: Transient,
}

impl Content for UpdateDisplayData {
    const TYPE: &'static str = "update_display_data";
}
