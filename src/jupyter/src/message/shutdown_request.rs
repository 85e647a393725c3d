//! `shutdown_request`: shut down. Control or shell, from whatever manages the kernel.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#kernel-shutdown>

use serde::Deserialize;

/// Asks the kernel to end.
#[derive(Debug, Deserialize)]
pub struct ShutdownRequest {
    /// Another kernel will be started in its place.
    #[serde(default)]
    pub restart: bool,
}
