//! `input_reply`: what was typed. Stdin, from a front end.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#messages-on-the-stdin-router-dealer-channel>

use serde::Deserialize;

/// The answer to `input_request`.
#[derive(Debug, Deserialize)]
pub struct InputReply {
    /// What was typed, without the line's end.
    pub value: String,
}
