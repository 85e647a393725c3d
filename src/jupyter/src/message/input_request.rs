//! `input_request`: asks the user for a line. Stdin, to the sender of the running cell.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#messages-on-the-stdin-router-dealer-channel>

use serde::Serialize;

use super::Content;

/// Asks for a line.
#[derive(Debug, Serialize)]
pub struct InputRequest {
    /// Shown before the field.
    pub prompt: String,
    /// Do not echo what is typed.
    pub password: bool,
}

impl Content for InputRequest {
    const TYPE: &'static str = "input_request";
}
