//! Accepts the connections of clients in front of the ZeroMQ library, and enforces limits that the library
//! does not have.
//!
//! Each ZeroMQ socket is bound to a Unix socket in a folder that only this user may enter. A [`Listener`]
//! listens on the public address. Every client gets a connection of its own to the private socket, and a task
//! that forwards bytes ([`super::proxy`]) and validates the protocol ([`super::zmtp`]). This limits what a
//! client may send, how long it may take, how much is queued for it, and how many clients there are. The
//! limits apply to everyone: any process of the machine can connect to a loopback port, and signatures are
//! checked only later.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use zeromq::Socket;

use super::super::connection::{Address, Channel, Connection};
use super::log::Log;
use super::proxy::{self, ConnectionContext, ConnectionLimits, PartialMessages, SlowReaders};
use super::zmtp::MessageLimits;
use stratoscope_os::private_folder::{self, PrivateFolder};
use stratoscope_os::temporary_folder;

/// Connections of one socket. Each takes three file descriptors, of which a process often has 1024.
const MAX_CONNECTIONS: usize = 50;

/// The pause after `accept` failed, for instance because there were no file descriptors left.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// All listeners of a kernel.
pub struct Listeners {
    folder: Sockets,
    partial_messages: Arc<PartialMessages>,
    closing: watch::Sender<bool>,
    listeners: JoinSet<()>,
}

impl Listeners {
    /// No listener yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            folder: Sockets::make()?,
            partial_messages: Arc::default(),
            closing: watch::Sender::new(false),
            listeners: JoinSet::new(),
        })
    }

    /// Creates the socket of a channel and starts to listen at the channel's address.
    pub async fn open<S: Socket>(
        &mut self,
        connection: &Connection,
        channel: Channel,
    ) -> anyhow::Result<S> {
        let private = self.folder.socket(channel);
        let listener = std::os::unix::net::UnixListener::bind(&private)
            .with_context(|| format!("cannot listen on {}", private.display()))?;
        let mut socket = S::new();
        socket.bind_listener(listener).await?;
        let address = connection.address(channel);
        let public = Public::listen(address)
            .await
            .with_context(|| format!("cannot listen on {address} ({} channel)", channel.name()))?;
        let listener = Listener {
            public,
            private,
            limits: limits(channel),
            slow_readers: Arc::default(),
            partial_messages: self.partial_messages.clone(),
            connections: JoinSet::new(),
            handshaking: VecDeque::new(),
            log: Log::new(channel.name()),
            closing: self.closing.subscribe(),
        };
        self.listeners.spawn(listener.run());
        Ok(socket)
    }

    /// Stops listening and waits, at most `limit`, until clients have received what the sockets sent last.
    /// Nothing may be sent afterwards.
    pub async fn close(mut self, limit: Duration) {
        let _ = self.closing.send(true);
        let _ = tokio::time::timeout(limit, async {
            while self.listeners.join_next().await.is_some() {}
        })
        .await;
    }
}

/// The limits of a channel's clients.
fn limits(channel: Channel) -> ConnectionLimits {
    match channel {
        // Messages of notebooks; the buffers of widgets can be large. Slow readers stay connected, since
        // replies would be lost: a front end may send many requests before it reads.
        Channel::Shell | Channel::Control | Channel::Stdin => ConnectionLimits {
            messages: MessageLimits {
                message_bytes: 64 << 20,
                frames: 4096,
                messages: u64::MAX,
            },
            queue_bytes: 64 << 20,
            drops_slow_readers: false,
        },
        // Subscriptions: a byte and a topic.
        Channel::Iopub => ConnectionLimits {
            messages: MessageLimits {
                message_bytes: 1024,
                frames: 1,
                messages: 1024,
            },
            queue_bytes: 4 << 20,
            drops_slow_readers: true,
        },
        Channel::Heartbeat => ConnectionLimits {
            messages: MessageLimits {
                message_bytes: 1024,
                frames: 8,
                messages: u64::MAX,
            },
            queue_bytes: 64 << 10,
            drops_slow_readers: false,
        },
    }
}

struct Listener {
    public: Public,
    /// The path of the ZeroMQ socket.
    private: PathBuf,
    limits: ConnectionLimits,
    slow_readers: Arc<SlowReaders>,
    partial_messages: Arc<PartialMessages>,
    connections: JoinSet<()>,
    /// Connections whose handshake was incomplete at the last check, oldest first.
    handshaking: VecDeque<Handshake>,
    log: Log,
    closing: watch::Receiver<bool>,
}

struct Handshake {
    task: AbortHandle,
    is_ready: Arc<AtomicBool>,
}

impl Listener {
    async fn run(mut self) {
        loop {
            tokio::select! {
                client = self.public.accept() => match client {
                    Ok(client) => self.admit(client),
                    Err(error) => {
                        self.log.warn(&format!("a client could not be let in: {error}"));
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_) = self.connections.join_next() => {}
                _ = self.closing.changed() => break,
            }
        }
        drop(self.public);
        while self.connections.join_next().await.is_some() {}
    }

    fn admit(&mut self, client: Box<dyn Stream>) {
        while self.connections.try_join_next().is_some() {}
        self.handshaking
            .retain(|it| !it.task.is_finished() && !it.is_ready.load(Ordering::Relaxed));
        if self.connections.len() >= MAX_CONNECTIONS {
            // A normal handshake takes milliseconds, so the oldest incomplete one is closed.
            match self.handshaking.pop_front() {
                Some(oldest) => {
                    oldest.task.abort();
                    self.log
                        .warn("too many connections; one without handshake was closed");
                }
                None => {
                    self.log.warn("too many connections; a new one was closed");
                    return;
                }
            }
        }
        let is_ready = Arc::new(AtomicBool::new(false));
        let context = ConnectionContext {
            limits: self.limits,
            slow_readers: self.slow_readers.clone(),
            partial_messages: self.partial_messages.clone(),
            is_ready: is_ready.clone(),
            closing: self.closing.clone(),
        };
        let connection = connect(client, self.private.clone(), context, self.log.clone());
        let task = self.connections.spawn(connection);
        self.handshaking.push_back(Handshake { task, is_ready });
    }
}

/// The task of one connection.
async fn connect(client: Box<dyn Stream>, private: PathBuf, context: ConnectionContext, log: Log) {
    match UnixStream::connect(private).await {
        Ok(socket) => {
            if let Err(reason) = proxy::forward(client, socket, &context).await {
                log.warn(&format!("a connection was closed: {reason}"));
            }
        }
        Err(error) => log.warn(&format!("a client could not be let in: {error}")),
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The public address.
enum Public {
    Tcp(TcpListener),
    Ipc(UnixListener),
}

impl Public {
    async fn listen(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Address::Ipc(path) => {
                let listener = UnixListener::bind(path)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                Ok(Self::Ipc(listener))
            }
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Fails when the client has disconnected already; reading reports that.
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
            Self::Ipc(listener) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// The longest path of a Unix socket that every system accepts, in bytes.
const MAX_PATH_BYTES: usize = 100;

/// The folder of the private sockets; removed when it is dropped.
struct Sockets {
    folder: PrivateFolder,
    open: fs::File,
}

impl Sockets {
    fn make() -> io::Result<Self> {
        let temporary = temporary_folder::find().map_err(io::Error::other)?;
        Self::make_at(temporary.folder.join(private_folder::fresh_name()))
    }

    fn make_at(path: PathBuf) -> io::Result<Self> {
        let folder = PrivateFolder::make(path)?;
        let open = fs::File::open(folder.path())?;
        Ok(Self { folder, open })
    }

    /// The path of a socket in the folder. Where temporary folders have long paths, as on clusters, the path
    /// is too long for a socket; then it goes through the open folder's entry in `/proc`.
    fn socket(&self, channel: Channel) -> PathBuf {
        let path = self.folder.path().join(channel.name());
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.open.as_raw_fd()));
        match path.as_os_str().len() > MAX_PATH_BYTES && open.exists() {
            true => open.join(channel.name()),
            false => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deep_folder_has_sockets_too() {
        let root = std::env::temp_dir().join(format!("listener-{}", std::process::id()));
        let mut deep = root.clone();
        for _ in 0..6 {
            deep.push("a-folder-of-temporary-files");
        }
        fs::create_dir_all(&deep).expect("is made");
        for parent in [&root, &deep] {
            let folder = Sockets::make_at(parent.join("private")).expect("is made");
            let socket = folder.socket(Channel::Heartbeat);
            let listener = UnixListener::bind(&socket).expect("is bound");
            let connected = tokio::join!(listener.accept(), UnixStream::connect(&socket));
            assert!(connected.0.is_ok() && connected.1.is_ok());
            assert!(folder.folder.path().join("heartbeat").exists());
            drop(folder);
            assert!(!parent.join("private").exists());
        }
        fs::remove_dir_all(root).expect("is removed");
    }
}
