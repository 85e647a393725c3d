//! One connection of a client: its bytes go to the ZeroMQ socket, and the socket's to the client.
//!
//! - **In**, through a [`Follower`], and no faster than the socket takes them.
//! - **Out**, through a queue of the connection's own, so that the socket, which serves its clients
//!   one after the other, need not wait for this one. The queue is bounded: while it is full the
//!   socket waits, which is how a slow reader slows down whoever prints; a client that does not read
//!   at all is cut off, where the rules say so. Who does not read is not listened to either: a
//!   client cannot have answers piled up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::zmtp::{Follower, Limits, Refusal};

/// What holds for the connections of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What a client may send.
    pub limits: Limits,
    /// Bytes that may wait for a client.
    pub waiting_bytes: usize,
    /// Whether a client that reads nothing while so much waits is cut off.
    pub cut_off: bool,
}

/// What the connections of a socket share.
#[derive(Debug, Default)]
pub struct Common {
    /// When a client was last cut off.
    last_cut: Mutex<Option<Instant>>,
}

/// What a connection is told.
#[derive(Debug)]
pub struct Known {
    /// Of its socket.
    pub rules: Rules,
    /// With the other connections of its socket.
    pub common: Arc<Common>,
    /// With the connections of all sockets.
    pub unfinished: Arc<Unfinished>,
    /// Becomes true with the handshake's end.
    pub is_ready: Arc<AtomicBool>,
    /// Becomes true when the kernel ends.
    pub closing: watch::Receiver<bool>,
}

/// Of all sockets together: bytes of messages that have begun and not ended.
#[derive(Debug, Default)]
pub struct Unfinished(AtomicU64);

/// Why a connection ended other than by its client or by the kernel.
#[derive(Debug, Error)]
pub enum Ended {
    /// It sent what it may not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The handshake was not over in time.
    #[error("the handshake was not over after {} s", HANDSHAKE_LIMIT.as_secs())]
    NoHandshake,
    /// A message did not end in time.
    #[error("a message was not complete after {} s", MESSAGE_LIMIT.as_secs())]
    Unfinished,
    /// There are too many bytes in unfinished messages, its own among them.
    #[error("more than {} bytes of unfinished messages", UNFINISHED_BYTES)]
    NoRoom,
    /// It did not read.
    #[error("it has not read for {} s", .patience.as_secs())]
    NotReading {
        /// How long it was waited for.
        patience: Duration,
    },
}

/// How long a client may take until it is known to speak ZeroMQ's protocol.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// How long a client may take to send one message.
const MESSAGE_LIMIT: Duration = Duration::from_secs(60);

/// [`Unfinished`] may hold so much.
const UNFINISHED_BYTES: u64 = 256 << 20;

/// Unfinished messages up to this size are not counted, so that those of others always get through.
const UNCOUNTED_BYTES: u64 = 1 << 20;

/// How long a client for which too much waits may read nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same, soon after one was cut off: it connects again by itself and stalls again.
const PATIENCE_AFTER_CUT: Duration = Duration::from_secs(1);

/// How long it is remembered that one was cut off.
const REMEMBER_CUT: Duration = Duration::from_secs(60);

/// Who reads less than this while somebody waits counts as one that does not read.
const LEAST_READ: usize = 64 << 10;

const CHUNK_BYTES: usize = 64 << 10;

/// A queue that was longer than this gives its memory back when it is empty.
const KEPT_BYTES: usize = 1 << 20;

/// When the kernel ends, a socket that has said nothing for so long has said everything.
const QUIET: Duration = Duration::from_millis(100);

/// Passes bytes both ways until one side ends, or the kernel and all has been said.
pub async fn pass(
    client: impl AsyncRead + AsyncWrite,
    socket: impl AsyncRead + AsyncWrite,
    known: &Known,
) -> Result<(), Ended> {
    let (client_reads, client_writes) = tokio::io::split(client);
    let (socket_reads, socket_writes) = tokio::io::split(socket);
    let (room, has_room) = watch::channel(true);
    tokio::select! {
        ended = inwards(client_reads, socket_writes, known, has_room) => ended,
        ended = outwards(socket_reads, client_writes, known, room) => ended,
    }
}

async fn inwards(
    mut client: impl AsyncRead + Unpin,
    mut socket: impl AsyncWrite + Unpin,
    known: &Known,
    mut has_room: watch::Receiver<bool>,
) -> Result<(), Ended> {
    let mut follower = Follower::new(known.rules.limits);
    let mut share = Share {
        of: &known.unfinished,
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
            Err(_) if follower.is_ready() => return Err(Ended::Unfinished),
            Err(_) => return Err(Ended::NoHandshake),
        };
        follower.follow(&chunk[..read])?;
        share.set(follower.unfinished_bytes())?;
        if follower.is_ready() {
            let now = follower.message_under_way();
            if !known.is_ready.swap(true, Ordering::Relaxed) || now != message {
                until = now.map(|_| Instant::now() + MESSAGE_LIMIT);
                message = now;
            }
        }
        if socket.write_all(&chunk[..read]).await.is_err() {
            // The socket has gone. What it said before may still be on its way to the client.
            std::future::pending::<()>().await;
        }
    }
}

async fn outwards(
    mut socket: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    known: &Known,
    room: watch::Sender<bool>,
) -> Result<(), Ended> {
    let Known { rules, common, .. } = known;
    let mut closing = known.closing.clone();
    let mut queue: VecDeque<u8> = VecDeque::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut stall: Option<Stall> = None;
    let mut is_open = true;
    while is_open || !queue.is_empty() {
        let is_full = queue.len() >= rules.waiting_bytes;
        room.send_if_modified(|has_room| std::mem::replace(has_room, !is_full) == is_full);
        if is_full && rules.cut_off && stall.is_none() {
            stall = Some(Stall::begin(common.patience()));
        }
        if queue.is_empty() && queue.capacity() > KEPT_BYTES {
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
                    common.remember_cut();
                    return Err(Ended::NotReading { patience });
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

/// A client for which too much waits, since a while.
#[derive(Clone, Copy)]
struct Stall {
    until: Instant,
    patience: Duration,
    /// What it has read meanwhile.
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

    /// `None` when it has read enough to be given time again.
    fn after(self, written: usize) -> Option<Self> {
        let read = self.read + written;
        (read < LEAST_READ).then_some(Self { read, ..self })
    }

    /// Waits until patience has come to its end.
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

impl Common {
    fn patience(&self) -> Duration {
        match *self.lock() {
            Some(cut) if cut.elapsed() < REMEMBER_CUT => PATIENCE_AFTER_CUT,
            _ => PATIENCE,
        }
    }

    fn remember_cut(&self) {
        *self.lock() = Some(Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_cut.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one connection has of [`Unfinished`]; given back when it is dropped.
struct Share<'a> {
    of: &'a Unfinished,
    bytes: u64,
}

impl Share<'_> {
    fn set(&mut self, unfinished: u64) -> Result<(), Ended> {
        let bytes = if unfinished > UNCOUNTED_BYTES {
            unfinished
        } else {
            0
        };
        let all = &self.of.0;
        let others = all.fetch_sub(self.bytes, Ordering::Relaxed) - self.bytes;
        all.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = bytes;
        if bytes > 0 && others + bytes > UNFINISHED_BYTES {
            return Err(Ended::NoRoom);
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
