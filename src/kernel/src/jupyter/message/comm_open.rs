//! `comm_open`: a front end opens a comm. Shell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#opening-a-comm>

use serde::Deserialize;

/// Asks for a channel to a target of the kernel.
#[derive(Debug, Deserialize)]
pub struct CommOpen {
    /// The channel's name.
    pub comm_id: String,
}
