//! What joins a member of a group to one of its neighbors, whatever carries it: frames in their order, and a deadline for
//! each.

use std::fmt;

use crate::fault::Outcome;
use crate::frame::Kind;
use crate::link::Frame;

/// The way to one neighbor.
pub trait Hop: Send {
    /// Sends a frame of at most [`MOST_BYTES`](crate::frame::MOST_BYTES).
    ///
    /// # Errors
    /// The neighbor is gone, or takes nothing for too long.
    fn send(&mut self, kind: Kind, step: u64, payload: &[u8]) -> Outcome<()>;

    /// The next frame.
    ///
    /// # Errors
    /// The neighbor is gone or silent, or sends what is refused.
    fn receive(&mut self) -> Outcome<Frame>;

    /// What closes it from another thread.
    ///
    /// # Errors
    /// The process has no more file descriptors.
    fn closer(&self) -> Outcome<Closer>;

    /// The bytes of all payloads that were sent.
    fn bytes_sent(&self) -> u64;
}

/// Closes a hop or a link from another thread: whoever sends or receives there gets an error at once.
pub struct Closer(Box<dyn Fn() + Send + Sync>);

impl Closer {
    pub(crate) fn new(close: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(close))
    }

    /// Closes it. Nothing happens where it is closed.
    pub fn close(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closer")
    }
}
