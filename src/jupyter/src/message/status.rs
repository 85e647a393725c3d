//! `status`: what the kernel does. Iopub.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#kernel-status>

use serde::Serialize;

use super::Content;

/// Sent around the handling of every request on shell and control.
#[derive(Debug, Serialize)]
pub struct Status {
    /// `starting`, `busy` or `idle`.
    pub execution_state: &'static str,
}

impl Status {
    /// Once, before the first request.
    pub fn starting() -> Self {
        Self {
            execution_state: "starting",
        }
    }

    /// Before everything that answers a request.
    pub fn busy() -> Self {
        Self {
            execution_state: "busy",
        }
    }

    /// After everything that answers a request.
    pub fn idle() -> Self {
        Self {
            execution_state: "idle",
        }
    }
}

impl Content for Status {
    const TYPE: &'static str = "status";
}
