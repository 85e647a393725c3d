//! `display_data`: something a cell draws. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#display-data>

use serde::Serialize;
use stratoscope_wire::MimeBundle;

use super::Content;

/// Added below the cell.
#[derive(Debug, Serialize)]
pub struct DisplayData {
    /// Its representations, by MIME type.
    pub data: MimeBundle,
    /// About the representations.
    pub metadata: MimeBundle,
    /// Holds the display's name, if it can be updated.
    pub transient: Transient,
}

/// What notebooks do not keep.
#[derive(Debug, Default, Serialize)]
pub struct Transient {
    /// The name by which `update_display_data` finds the display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_id: Option<String>,
}

impl Content for DisplayData {
    const TYPE: &'static str = "display_data";
}
