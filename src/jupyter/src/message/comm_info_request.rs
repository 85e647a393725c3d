//! `comm_info_request`: which comms are open? Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#comm-info>

use serde::Deserialize;

/// Asks for the open comms.
#[derive(Debug, Deserialize)]
pub struct CommInfoRequest {
    /// Only those to this target.
    #[serde(default)]
    pub target_name: Option<String>,
}
