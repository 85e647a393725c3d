//! What can go wrong between the two processes.

use std::io;

use thiserror::Error;

/// Why a message could not be sent or received.
#[derive(Debug, Error)]
pub enum WireError {
    /// The other end has closed the connection.
    #[error("the other process has closed the connection")]
    Closed,
    /// The other end closed the connection in the middle of a message.
    #[error("the connection ended in the middle of a message, after {received} bytes of it")]
    Truncated {
        /// Bytes of the unfinished line.
        received: usize,
    },
    /// A message is longer than the limit.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// [`crate::MAX_MESSAGE_BYTES`], or the reader's own limit.
        limit: usize,
    },
    /// A line is not a message of this protocol.
    #[error("a line is not a message of this protocol: {0}")]
    Malformed(#[source] serde_json::Error),
    /// A message cannot be written as JSON.
    #[error("a message cannot be written as JSON: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// The two processes were built from different versions.
    #[error(
        "the cell process speaks protocol {theirs}, this one {ours}; rebuild with `stratoscope install`"
    )]
    Version {
        /// What the other end speaks.
        theirs: u32,
        /// [`crate::VERSION`].
        ours: u32,
    },
    /// The first message was not the handshake.
    #[error("the first message was `{kind}`, not `hello`")]
    NoHandshake {
        /// What came instead.
        kind: String,
    },
    /// The socket failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}
