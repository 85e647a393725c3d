//! Forwards the bytes of one connection between a client and a ZeroMQ socket of the kernel.
//!
//! - **To the kernel**, through a [`ZmtpValidator`], and only as fast as the socket reads.
//! - **To the client**, through a bounded queue per connection, so that the socket, which sends to its clients
//!   one after another, does not wait for this one. While the queue is full the socket waits, which slows down
//!   the cell that prints; where the limits say so, a client that reads nothing at all is disconnected. While
//!   the queue is full nothing is read from the client, so it cannot pile up replies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::zmtp::{MessageLimits, Violation, ZmtpValidator};

/// The limits of every connection of a socket.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// What a client may send.
    pub messages: MessageLimits,
    /// Bytes that may be queued for a client.
    pub queue_bytes: usize,
    /// Whether a client that reads nothing while its queue is full is disconnected.
    pub drops_slow_readers: bool,
}

/// Shared by the connections of a socket: when a slow reader was disconnected.
#[derive(Debug, Default)]
pub struct SlowReaders {
    last_disconnect: Mutex<Option<Instant>>,
}

/// What the task of a connection needs.
#[derive(Debug)]
pub struct ConnectionContext {
    /// The limits of its socket.
    pub limits: ConnectionLimits,
    /// Shared by the connections of its socket.
    pub slow_readers: Arc<SlowReaders>,
    /// Shared by the connections of all sockets.
    pub partial_messages: Arc<PartialMessages>,
    /// Becomes true when the handshake is complete.
    pub is_ready: Arc<AtomicBool>,
    /// Becomes true when the kernel ends.
    pub closing: watch::Receiver<bool>,
}

/// The bytes of incomplete messages, over all sockets.
#[derive(Debug, Default)]
pub struct PartialMessages(AtomicU64);

/// Why the kernel closed a connection before it shut down.
#[derive(Debug, Error)]
pub enum CloseReason {
    /// The client broke the protocol or a limit.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The handshake took too long.
    #[error("the handshake was not over after {} s", HANDSHAKE_LIMIT.as_secs())]
    NoHandshake,
    /// A message took too long.
    #[error("a message was not complete after {} s", MESSAGE_LIMIT.as_secs())]
    MessageTimeout,
    /// All incomplete messages together are too large, and this connection has one of them.
    #[error("more than {} bytes of unfinished messages", PARTIAL_BYTES)]
    NoRoom,
    /// The client did not read.
    #[error("it has not read for {} s", .patience.as_secs())]
    NotReading {
        /// How long the kernel waited.
        patience: Duration,
    },
}

/// How long the handshake of ZeroMQ's protocol may take.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// How long one message may take to arrive.
const MESSAGE_LIMIT: Duration = Duration::from_secs(60);

/// The most bytes that [`PartialMessages`] may count.
const PARTIAL_BYTES: u64 = 256 << 20;

/// Incomplete messages up to this size are not counted, so that small messages always get through.
const UNCOUNTED_BYTES: u64 = 1 << 20;

/// How long a client whose queue is full may read nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same, shortly after a disconnect: such a client reconnects by itself and stalls again.
const PATIENCE_AFTER_DISCONNECT: Duration = Duration::from_secs(1);

/// How long a disconnect counts as recent.
const RECENT_DISCONNECT: Duration = Duration::from_secs(60);

/// A client that reads less than this within its time counts as one that does not read.
const MIN_READ_BYTES: usize = 64 << 10;

const CHUNK_BYTES: usize = 64 << 10;

/// An empty queue with more capacity than this is freed.
const MAX_IDLE_BYTES: usize = 1 << 20;

/// While the kernel shuts down, a socket that sends nothing for this long has sent everything.
const QUIET: Duration = Duration::from_millis(100);

/// Forwards bytes both ways until one side closes, or the kernel shuts down and everything is sent.
///
/// # Errors
/// The client broke a limit; the connection is closed.
pub async fn forward(
    client: impl AsyncRead + AsyncWrite,
    socket: impl AsyncRead + AsyncWrite,
    context: &ConnectionContext,
) -> Result<(), CloseReason> {
    let (client_reads, client_writes) = tokio::io::split(client);
    let (socket_reads, socket_writes) = tokio::io::split(socket);
    let (room, has_room) = watch::channel(true);
    tokio::select! {
        ended = to_kernel(client_reads, socket_writes, context, has_room) => ended,
        ended = to_client(socket_reads, client_writes, context, room) => ended,
    }
}

/// Client to kernel.
async fn to_kernel(
    mut client: impl AsyncRead + Unpin,
    mut socket: impl AsyncWrite + Unpin,
    context: &ConnectionContext,
    mut has_room: watch::Receiver<bool>,
) -> Result<(), CloseReason> {
    let mut validator = ZmtpValidator::new(context.limits.messages);
    let mut share = Share {
        of: &context.partial_messages,
        bytes: 0,
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut message = None;
    let mut until = Some(Instant::now() + HANDSHAKE_LIMIT);
    loop {
        // Fails when the other direction has ended, which ends this one.
        if has_room.wait_for(|has_room| *has_room).await.is_err() {
            return Ok(());
        }
        let read = match until {
            Some(until) => timeout_at(until, client.read(&mut chunk)).await,
            None => Ok(client.read(&mut chunk).await),
        };
        let read = match read {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            Ok(Ok(read)) => read,
            Err(_) if validator.is_ready() => return Err(CloseReason::MessageTimeout),
            Err(_) => return Err(CloseReason::NoHandshake),
        };
        validator.validate(&chunk[..read])?;
        share.set(validator.partial_bytes())?;
        if validator.is_ready() {
            let now = validator.current_message();
            if !context.is_ready.swap(true, Ordering::Relaxed) || now != message {
                until = now.map(|_| Instant::now() + MESSAGE_LIMIT);
                message = now;
            }
        }
        if socket.write_all(&chunk[..read]).await.is_err() {
            // The socket is closed. What it sent before may still be on its way to the client.
            std::future::pending::<()>().await;
        }
    }
}

/// Kernel to client.
async fn to_client(
    mut socket: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    context: &ConnectionContext,
    room: watch::Sender<bool>,
) -> Result<(), CloseReason> {
    let ConnectionContext {
        limits,
        slow_readers,
        ..
    } = context;
    let mut closing = context.closing.clone();
    let mut queue: VecDeque<u8> = VecDeque::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut stall: Option<Stall> = None;
    let mut is_open = true;
    while is_open || !queue.is_empty() {
        let is_full = queue.len() >= limits.queue_bytes;
        room.send_if_modified(|has_room| std::mem::replace(has_room, !is_full) == is_full);
        if is_full && limits.drops_slow_readers && stall.is_none() {
            stall = Some(Stall::begin(slow_readers.patience()));
        }
        if queue.is_empty() && queue.capacity() > MAX_IDLE_BYTES {
            queue = VecDeque::new();
        }
        let is_closing = *closing.borrow();
        tokio::select! {
            read = socket.read(&mut chunk), if is_open && !is_full => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(read) => queue.extend(&chunk[..read]),
            },
            written = client.write_buf(&mut queue), if !queue.is_empty() => match written {
                Ok(0) | Err(_) => return Ok(()),
                Ok(written) => stall = stall.and_then(|stall| stall.after(written)),
            },
            patience = Stall::over(&stall) => {
                if is_full {
                    slow_readers.remember_disconnect();
                    return Err(CloseReason::NotReading { patience });
                }
                stall = None;
            }
            _ = closing.changed(), if !is_closing => {}
            () = sleep(QUIET), if is_closing && queue.is_empty() => is_open = false,
        }
    }
    let _ = client.shutdown().await;
    Ok(())
}

/// A client whose queue has been full for a while.
#[derive(Clone, Copy)]
struct Stall {
    until: Instant,
    patience: Duration,
    /// Bytes it has read since.
    read: usize,
}

impl Stall {
    fn begin(patience: Duration) -> Self {
        Self {
            until: Instant::now() + patience,
            patience,
            read: 0,
        }
    }

    /// `None` when the client has read enough to start over.
    fn after(self, written: usize) -> Option<Self> {
        let read = self.read + written;
        (read < MIN_READ_BYTES).then_some(Self { read, ..self })
    }

    /// Waits until the time is over; forever without a stall.
    async fn over(this: &Option<Self>) -> Duration {
        match this {
            Some(stall) => {
                sleep_until(stall.until).await;
                stall.patience
            }
            None => std::future::pending().await,
        }
    }
}

impl SlowReaders {
    fn patience(&self) -> Duration {
        match *self.last_disconnect.lock() {
            Some(at) if at.elapsed() < RECENT_DISCONNECT => PATIENCE_AFTER_DISCONNECT,
            _ => PATIENCE,
        }
    }

    fn remember_disconnect(&self) {
        *self.last_disconnect.lock() = Some(Instant::now());
    }
}

/// The bytes of [`PartialMessages`] that belong to one connection; subtracted when it is dropped.
struct Share<'a> {
    of: &'a PartialMessages,
    bytes: u64,
}

impl Share<'_> {
    fn set(&mut self, partial: u64) -> Result<(), CloseReason> {
        let bytes = if partial > UNCOUNTED_BYTES {
            partial
        } else {
            0
        };
        let all = &self.of.0;
        let others = all.fetch_sub(self.bytes, Ordering::Relaxed) - self.bytes;
        all.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = bytes;
        if bytes > 0 && others + bytes > PARTIAL_BYTES {
            return Err(CloseReason::NoRoom);
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
