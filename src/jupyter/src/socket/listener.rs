//! Where clients arrive: the kernel listens by itself, and lets through what the ZeroMQ library can
//! be trusted with.
//!
//! Each ZeroMQ socket is bound to a Unix socket in a folder that only this user may enter. A
//! [`Door`] listens on the public address in front of it. Every connection gets one of its own to
//! the private socket, and a task that passes bytes ([`super::passage`]) and follows the protocol
//! ([`super::zmtp`]). So there are bounds on what a client may send, on how long it may take, on
//! what waits for it, and on how many there are, whoever they are: on a loopback port every process
//! of the machine can connect, and no signature has been checked yet. (Unix sockets are no new
//! demand: the wire needs them too.)

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
use super::passage::{self, Common, Known, Rules, Unfinished};
use super::zmtp::Limits;
use stratoscope_os::private_folder::{self, PrivateFolder};
use stratoscope_os::temporary_folder;

/// Connections of one socket. Each costs three file descriptors, and 1024 are often all there are.
const MOST_CONNECTIONS: usize = 50;

/// After `accept` failed, for instance for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// The doors of a kernel.
pub struct Doors {
    folder: Sockets,
    unfinished: Arc<Unfinished>,
    closing: watch::Sender<bool>,
    doors: JoinSet<()>,
}

impl Doors {
    /// Without a door yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            folder: Sockets::make()?,
            unfinished: Arc::default(),
            closing: watch::Sender::new(false),
            doors: JoinSet::new(),
        })
    }

    /// Makes the socket of a channel; from now on clients reach it at the connection's address.
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
        let door = Door {
            public,
            private,
            rules: rules(channel),
            common: Arc::default(),
            unfinished: self.unfinished.clone(),
            connections: JoinSet::new(),
            at_the_door: VecDeque::new(),
            log: Log::new(channel.name()),
            closing: self.closing.subscribe(),
        };
        self.doors.spawn(door.run());
        Ok(socket)
    }

    /// Lets nobody in any more, and waits until clients have got what the sockets said last, for
    /// those that do not read no longer than `limit`. Nothing may be sent any more.
    pub async fn close(mut self, limit: Duration) {
        let _ = self.closing.send(true);
        let _ = tokio::time::timeout(limit, async {
            while self.doors.join_next().await.is_some() {}
        })
        .await;
    }
}

/// What clients of a channel may do.
fn rules(channel: Channel) -> Rules {
    match channel {
        // Messages of notebooks; the buffers of widgets can be large. Nobody is cut off, since
        // replies would be lost: a front end may send many requests before it reads.
        Channel::Shell | Channel::Control | Channel::Stdin => Rules {
            limits: Limits {
                message_bytes: 64 << 20,
                frames: 4096,
                messages: u64::MAX,
            },
            waiting_bytes: 64 << 20,
            cut_off: false,
        },
        // Subscriptions: a byte and a topic.
        Channel::Iopub => Rules {
            limits: Limits {
                message_bytes: 1024,
                frames: 1,
                messages: 1024,
            },
            waiting_bytes: 4 << 20,
            cut_off: true,
        },
        Channel::Heartbeat => Rules {
            limits: Limits {
                message_bytes: 1024,
                frames: 8,
                messages: u64::MAX,
            },
            waiting_bytes: 64 << 10,
            cut_off: false,
        },
    }
}

struct Door {
    public: Public,
    /// The path of the ZeroMQ socket.
    private: PathBuf,
    rules: Rules,
    common: Arc<Common>,
    unfinished: Arc<Unfinished>,
    connections: JoinSet<()>,
    /// Connections whose handshake was not over when it was last looked at, oldest first.
    at_the_door: VecDeque<Arrival>,
    log: Log,
    closing: watch::Receiver<bool>,
}

struct Arrival {
    task: AbortHandle,
    is_ready: Arc<AtomicBool>,
}

impl Door {
    async fn run(mut self) {
        loop {
            tokio::select! {
                client = self.public.accept() => match client {
                    Ok(client) => self.let_in(client),
                    Err(error) => {
                        self.log.warn(&format!("a client could not be let in: {error}"));
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(_) = self.connections.join_next() => {}
                _ = self.closing.changed() => break,
            }
        }
        drop(self.public);
        while self.connections.join_next().await.is_some() {}
    }

    fn let_in(&mut self, client: Box<dyn Stream>) {
        while self.connections.try_join_next().is_some() {}
        self.at_the_door
            .retain(|it| !it.task.is_finished() && !it.is_ready.load(Ordering::Relaxed));
        if self.connections.len() >= MOST_CONNECTIONS {
            // An honest client's handshake is over in a moment, so whoever has been at the door
            // for longest is the one to go.
            match self.at_the_door.pop_front() {
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
        let known = Known {
            rules: self.rules,
            common: self.common.clone(),
            unfinished: self.unfinished.clone(),
            is_ready: is_ready.clone(),
            closing: self.closing.clone(),
        };
        let connection = connect(client, self.private.clone(), known, self.log.clone());
        let task = self.connections.spawn(connection);
        self.at_the_door.push_back(Arrival { task, is_ready });
    }
}

/// The task of one connection.
async fn connect(client: Box<dyn Stream>, private: PathBuf, known: Known, log: Log) {
    match UnixStream::connect(private).await {
        Ok(socket) => {
            if let Err(ended) = passage::pass(client, socket, &known).await {
                log.warn(&format!("a connection was closed: {ended}"));
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
                // Fails when the client has gone again, which reading will tell.
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
            Self::Ipc(listener) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// The longest path of a Unix socket that every system takes, in bytes.
const LONGEST_PATH: usize = 100;

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

    /// The path of a socket in it. Where folders of temporary files lie deep, as on clusters, the
    /// path is too long for a socket; this process then goes through the open folder.
    fn socket(&self, channel: Channel) -> PathBuf {
        let path = self.folder.path().join(channel.name());
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.open.as_raw_fd()));
        match path.as_os_str().len() > LONGEST_PATH && open.exists() {
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
        let root = std::env::temp_dir().join(format!("door-{}", std::process::id()));
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
