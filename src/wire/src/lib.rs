//! The messages between the kernel and the process that runs the cells. Start reading at [`message`].
//!
//! The two talk over a Unix socket of their own, named by [`SOCKET_VARIABLE`], so that nothing a
//! cell prints can be taken for a message. A message is one JSON object on one line
//! ([`ToKernel`], [`ToCells`]); its `kind` says which. [`Writer`] and [`Reader`] frame them over
//! any stream. The first message in each direction is the [`handshake`].
//!
//! - **Order.** What one thread sends arrives in the order in which it was sent. The plain streams
//!   of the process travel separately; where order matters ([`ToKernel::is_shown`]) the kernel
//!   shows what was printed before, and the cell waits for [`ToCells::Shown`] before it goes on.
//! - **Delivery.** A message that was written may still be lost when the process ends at once;
//!   [`ToCells::Sync`] and its answer confirm that everything before it has arrived.
//! - **Strictness.** An unknown kind or field, a line longer than [`MAX_MESSAGE_BYTES`], and bytes
//!   that are not UTF-8 are errors: both ends are built from this crate.
//!
//! ```
//! use stratoscope_wire::{Reader, ToKernel, Writer};
//!
//! let mut bytes = Vec::new();
//! Writer::new(&mut bytes).send(&ToKernel::Synced { id: 1 })?;
//! let message: ToKernel = Reader::new(&bytes[..]).receive()?;
//! assert_eq!(message, ToKernel::Synced { id: 1 });
//! # Ok::<(), stratoscope_wire::WireError>(())
//! ```
//!
//! The two ends decide what is shown.

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod error;
pub mod handshake;
pub mod inspect;
pub mod message;
pub mod request;
pub mod socket;
pub mod transport;

pub use error::WireError;
pub use inspect::{
    InspectAnswer, InspectQuestion, InspectedValue, RunFrame, StandingRun, ValuePath, Window,
};
pub use message::{Described, KeptVariable, RunAction, RunState, ToCells, ToKernel};
pub use request::{RunAnswer, RunRequest};
pub use transport::{Reader, Writer};

/// The version this crate speaks. 2: [`ToCells::Leave`] is new. 3: [`ToCells::InputReply`] may have no text.
/// 4: [`ToCells::Inspect`] is new. 5: [`InspectQuestion::Runs`] is new. 6: [`ToCells::Request`] is new.
/// 7: frames of a [`StandingRun`] have parts.
pub const VERSION: u32 = 7;

/// The environment variable that names the socket.
pub const SOCKET_VARIABLE: &str = "STRATOSCOPE_WIRE";

/// A line longer than this is refused, by the writer before anything is sent.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Representations of one thing, by MIME type.
pub type MimeBundle = serde_json::Map<String, serde_json::Value>;
