//! What goes wrong between processes of a job.

use std::io;
use std::time::Duration;

/// Why a connection or a collective has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The chief, or a failure elsewhere, has ended the collective.
    #[error("the collective was aborted")]
    Aborted,
    /// Nothing came, or nothing was taken, for so long.
    #[error("nothing was heard for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The other side has closed the connection, or its process has ended.
    #[error("the connection was closed")]
    Closed,
    /// Nobody answers at an address, as long as nobody listens there.
    #[error("{0}")]
    Unreachable(String),
    /// The operating system or TLS reports an error.
    #[error("{0}")]
    Broken(String),
    /// What came is not what must come: another job, generation, step or number, too many bytes, unknown kinds.
    #[error("refused: {0}")]
    Refused(String),
    /// The work of a command failed at the other side.
    #[error("{0}")]
    Failed(String),
}

/// A result of this crate's transport.
pub type Outcome<T> = std::result::Result<T, Fault>;

impl Fault {
    /// Something that must not come.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused(what.into())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Broken(error.to_string()),
        }
    }
}
